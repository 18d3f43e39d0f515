"""Bound types of several versions are converted as their exporter says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.kit.server.hub import (
    BINDINGS,
    EXPORTS,
    SCHEMAS,
    WORKSPACES,
    Hub,
    HubPlace,
    binding,
    export,
    in_hub,
    schema,
)

CONVERSIONS = "/apis/apis.kcp.io/v1alpha1/apiconversions"
NAME = "v1.widgets.example.io"
V1, V2 = "/apis/example.io/v1/widgets", "/apis/example.io/v2/widgets"
MERGE = {"content_type": "application/merge-patch+json"}


@pytest.fixture
def hub_place(tmp_path: Path) -> HubPlace:
    return HubPlace(tmp_path)


def _version(called: str, storage: bool, /, **fields: Any) -> dict[str, Any]:
    spec = {"type": "object", "properties": fields}
    return {
        "name": called,
        "served": True,
        "storage": storage,
        "schema": {"type": "object", "properties": {"spec": spec}},
    }


def two_versions() -> dict[str, Any]:
    text = {"type": "string"}
    whole = {"type": "object", "properties": {"first": text}}
    versions = [
        _version("v1", True, firstName=text),
        _version("v2", False, name=whole, extra=text),
    ]
    return schema(versions=versions)


def conversion(transformation: str = "self.upperAscii()") -> dict[str, Any]:
    there = {"field": ".spec.firstName", "destination": ".spec.name.first"}
    back = {"field": ".spec.name.first", "destination": ".spec.firstName"}
    return {
        "apiVersion": "apis.kcp.io/v1alpha1",
        "kind": "APIConversion",
        "metadata": {"name": NAME},
        "spec": {
            "conversions": [
                {"from": "v1", "to": "v2", "rules": [there | {"transformation": transformation}]},
                {"from": "v2", "to": "v1", "rules": [back], "preserve": [".spec.extra"]},
            ]
        },
    }


def widget(version: str, called: str, /, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"example.io/{version}",
        "kind": "Widget",
        "metadata": {"name": called},
        "spec": spec,
    }


async def offered(hub: Hub, *, converted: bool = True) -> tuple[str, str]:
    """Offer widgets of two versions and bind them; return exporter and user."""
    shop = await hub.workspace("root", "shop")
    await hub.create(shop, SCHEMAS, two_versions())
    if converted:
        await hub.create(shop, CONVERSIONS, conversion())
    await hub.create(shop, EXPORTS, export("widgets", NAME))
    user = await hub.workspace("root", "user")
    await hub.create(user, BINDINGS, binding("w", "root:shop", "widgets"))
    return shop, user


@in_hub
async def test_each_version_shows_the_object_in_its_own_way(hub: Hub) -> None:
    shop, user = await offered(hub)
    made = await hub.create(user, V2, widget("v2", "a", name={"first": "ann"}, extra="e"))
    assert made["spec"] == {"name": {"first": "ANN"}, "extra": "e"}
    assert (await hub.get(user, f"{V1}/a"))["spec"] == {"firstName": "ann"}
    await hub.create(user, V1, widget("v1", "b", firstName="bea"))
    assert (await hub.get(user, f"{V2}/b"))["spec"] == {"name": {"first": "BEA"}}
    listed = (await hub.get(user, V2))["items"]
    assert [item["spec"].get("extra") for item in listed] == ["e", None]
    seen = await hub.watch("kcp-admin", f"/clusters/{user}{V2}?watch=true&resourceVersion=0")
    event = await seen.lines.get()
    assert event["object"]["apiVersion"] == "example.io/v2"
    assert event["object"]["spec"] == {"name": {"first": "ANN"}, "extra": "e"}
    view = f"/services/apiexport/{shop}/widgets/clusters/*{V2}"
    through = (await hub.ask("kcp-admin", "GET", view)).body["items"]
    assert [item["spec"]["name"]["first"] for item in through] == ["ANN", "BEA"]


@in_hub
async def test_a_change_at_one_version_keeps_what_only_the_other_knows(hub: Hub) -> None:
    _, user = await offered(hub)
    await hub.create(user, V2, widget("v2", "a", name={"first": "ann"}, extra="e"))
    path = f"/clusters/{user}{V1}/a"
    reply = await hub.ask("kcp-admin", "PATCH", path, {"spec": {"firstName": "x"}}, **MERGE)
    assert reply.status == 200, reply.body
    assert (await hub.get(user, f"{V2}/a"))["spec"] == {"name": {"first": "X"}, "extra": "e"}


@in_hub
async def test_a_conversion_counts_from_the_moment_it_is_written(hub: Hub) -> None:
    shop, user = await offered(hub, converted=False)
    await hub.create(user, V1, widget("v1", "a", firstName="ann"))
    assert (await hub.get(user, f"{V2}/a")).get("spec", {}).get("name") is None
    await hub.create(shop, CONVERSIONS, conversion())
    assert (await hub.get(user, f"{V2}/a"))["spec"] == {"name": {"first": "ANN"}}
    changed = {"spec": conversion("self + '!'")["spec"]}
    path = f"/clusters/{shop}{CONVERSIONS}/{NAME}"
    assert (await hub.ask("kcp-admin", "PATCH", path, changed, **MERGE)).status == 200
    assert (await hub.get(user, f"{V2}/a"))["spec"] == {"name": {"first": "ann!"}}


@in_hub
async def test_conversions_outlive_the_workspace_of_their_export(hub: Hub) -> None:
    _, user = await offered(hub)
    await hub.create(user, V1, widget("v1", "a", firstName="ann"))
    await hub.ask("kcp-admin", "DELETE", f"/clusters/root{WORKSPACES}/shop")
    await hub.gone("root", f"{WORKSPACES}/shop")
    assert (await hub.get(user, f"{V2}/a"))["spec"] == {"name": {"first": "ANN"}}


@in_hub
async def test_a_conversion_of_nothing_or_that_makes_no_sense_is_refused(hub: Hub) -> None:
    shop = await hub.workspace("root", "shop")
    path = f"/clusters/{shop}{CONVERSIONS}"
    reply = await hub.ask("kcp-admin", "POST", path, conversion())
    assert reply.status == 403
    assert f"error getting APIResourceSchema {NAME}: " in reply.body["message"]
    await hub.create(shop, SCHEMAS, two_versions())
    reply = await hub.ask("kcp-admin", "POST", path, conversion("self.nonsense()"))
    assert reply.status == 403
    assert "error compiling conversion rules: spec.conversions[0].rules[0]" in reply.body["message"]
