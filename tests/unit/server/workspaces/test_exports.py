"""Exports and bindings: in force when the write returns, and kept up afterwards."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

import pytest

from skerry.store.open import StoreSettings
from tests.kit.server.hub import (
    BINDINGS,
    CONFIG_MAPS,
    DEFINITIONS,
    EXPORTS,
    SCHEMAS,
    WIDGETS,
    WORKSPACES,
    Hub,
    HubPlace,
    binding,
    config_map,
    definition,
    export,
    in_hub,
    provider,
    running_hub,
    schema,
    widget,
)

MERGE = {"content_type": "application/merge-patch+json"}
GADGETS = "/apis/example.io/v1/gadgets"


@pytest.fixture
def hub_place(tmp_path: Path) -> HubPlace:
    return HubPlace(tmp_path)


async def shop_and_user(hub: Hub, **spec: Any) -> tuple[str, str, dict[str, Any]]:
    await hub.workspace("root", "org")
    shop = await hub.workspace("root:org", "shop")
    made = await provider(hub, shop, **spec)
    return shop, await hub.workspace("root:org", "user"), made


def conditions(obj: Any) -> dict[str, str]:
    return {c["type"]: c["status"] for c in obj["status"]["conditions"]}


@in_hub
async def test_a_bound_type_is_usable_when_the_binding_returns(hub: Hub) -> None:
    shop, user, made = await shop_and_user(hub)
    assert made["metadata"]["annotations"]["kcp.io/path"] == "root:org:shop"
    url = f"{hub.running.url}/services/apiexport/{shop}/widgets"
    assert made["status"]["virtualWorkspaces"] == [{"url": url}]
    bound = await hub.create(user, BINDINGS, binding("w", "root:org:shop", "widgets"))
    assert bound["status"]["phase"] == "Bound"
    assert set(conditions(bound).values()) == {"True"}
    [resource] = bound["status"]["boundResources"]
    assert resource["schema"]["identityHash"] == made["status"]["identityHash"]
    await hub.create(user, WIDGETS, widget("first"))
    identity = made["status"]["identityHash"]
    named = await hub.get(user, f"{WIDGETS}:{identity}/first")
    assert named["metadata"]["name"] == "first"
    assert (
        await hub.ask("kcp-admin", "GET", f"/clusters/{user}{WIDGETS}:0ther/first")
    ).status == 404


@in_hub
async def test_the_identity_is_the_hash_of_a_secret_key(hub: Hub) -> None:
    shop, _, made = await shop_and_user(hub)
    assert made["spec"]["identity"] == {"secretRef": {"name": "widgets", "namespace": "kcp-system"}}
    secret = await hub.get(shop, "/api/v1/namespaces/kcp-system/secrets/widgets")
    key = base64.b64decode(secret["data"]["key"])
    assert hashlib.sha256(key).hexdigest() == made["status"]["identityHash"]


@in_hub
async def test_deleting_a_binding_deletes_its_objects_and_its_type(hub: Hub) -> None:
    _, user, made = await shop_and_user(hub)
    await hub.create(user, BINDINGS, binding("w", "root:org:shop", "widgets"))
    await hub.create(user, WIDGETS, widget("one"))
    held = await hub.create(user, WIDGETS, widget("held", finalizers=["example.io/wait"]))
    await hub.ask("kcp-admin", "DELETE", f"/clusters/{user}{BINDINGS}/w")
    await hub.until(user, f"{WIDGETS}/held", "metadata", "finalizers", ["example.io/wait"])
    assert (await hub.ask("kcp-admin", "GET", f"/clusters/{user}{BINDINGS}/w")).status == 200
    freed = {"metadata": {"finalizers": None, "uid": held["metadata"]["uid"]}}
    await hub.until(user, f"{WIDGETS}/held", "metadata", "deletionGracePeriodSeconds", 0)
    path = f"/clusters/{user}{WIDGETS}/held"
    assert (await hub.ask("kcp-admin", "PATCH", path, freed, **MERGE)).status == 200
    await hub.gone(user, f"{BINDINGS}/w")
    assert (await hub.ask("kcp-admin", "GET", f"/clusters/{user}{WIDGETS}")).status == 404
    assert not [key for key in await hub.keys() if made["status"]["identityHash"] in key]


@in_hub
async def test_a_changed_export_reaches_its_bindings(hub: Hub) -> None:
    shop, user, _ = await shop_and_user(hub)
    await hub.create(user, BINDINGS, binding("w", "root:org:shop", "widgets"))
    await hub.create(shop, SCHEMAS, schema("gadgets"))
    path = f"/clusters/{shop}{EXPORTS}/widgets"
    both = ["v1.widgets.example.io", "v1.gadgets.example.io"]
    await hub.ask("kcp-admin", "PATCH", path, {"spec": {"latestResourceSchemas": both}}, **MERGE)

    async def bound() -> list[str]:
        found = await hub.get(user, f"{BINDINGS}/w")
        return [each["resource"] for each in found["status"]["boundResources"]]

    while await bound() != ["gadgets", "widgets"]:
        await hub.settled()
    await hub.create(user, GADGETS, widget("g", kind="Gadget"))
    only = {"spec": {"latestResourceSchemas": both[:1]}}
    await hub.ask("kcp-admin", "PATCH", path, only, **MERGE)
    await hub.settled()
    # What was bound stays: there are objects of it.
    assert await bound() == ["gadgets", "widgets"]
    await hub.get(user, f"{GADGETS}/g")


@in_hub
async def test_a_binding_outlives_its_export(hub: Hub) -> None:
    shop, user, _ = await shop_and_user(hub)
    await hub.create(user, BINDINGS, binding("w", "root:org:shop", "widgets"))
    await hub.create(user, WIDGETS, widget("one"))
    await hub.ask("kcp-admin", "DELETE", f"/clusters/{shop}{EXPORTS}/widgets")
    while conditions(await hub.get(user, f"{BINDINGS}/w")).get("APIExportValid") != "False":
        await hub.settled()
    await hub.get(user, f"{WIDGETS}/one")
    await hub.create(user, WIDGETS, widget("two"))


@in_hub
async def test_what_a_binding_lacks_may_come_later(hub: Hub) -> None:
    await hub.workspace("root", "org")
    shop = await hub.workspace("root:org", "shop")
    missing = await hub.create(shop, BINDINGS, binding("own", "", "later"))
    assert (missing["status"]["phase"], conditions(missing)["APIExportValid"]) == (
        "Binding", "False"
    )  # fmt: skip
    await hub.create(shop, EXPORTS, export("later", "v1.widgets.example.io"))
    while "not found" not in str(await hub.get(shop, f"{BINDINGS}/own")):
        await hub.settled()
    await hub.create(shop, SCHEMAS, schema())
    await hub.until(shop, f"{BINDINGS}/own", "status", "phase", "Bound")
    await hub.create(shop, WIDGETS, widget("one"))


@in_hub
async def test_names_in_use_stand_against_a_binding_until_they_are_free(hub: Hub) -> None:
    shop, user, _ = await shop_and_user(hub)
    await hub.create(shop, EXPORTS, export("again", "v1.widgets.example.io"))
    await hub.create(user, BINDINGS, binding("a", "root:org:shop", "widgets"))
    second = await hub.create(user, BINDINGS, binding("b", "root:org:shop", "again"))
    found = {c["type"]: c for c in second["status"]["conditions"]}
    assert found["BindingUpToDate"]["reason"] == "NamingConflicts"
    assert found["InitialBindingCompleted"]["message"] == (
        'Unable to bind APIs: naming conflict with APIBinding "a" bound to APIExport '
        "root:org:shop:widgets, spec.names.plural=widgets is forbidden"
    )
    await hub.ask("kcp-admin", "DELETE", f"/clusters/{user}{BINDINGS}/a")
    await hub.until(user, f"{BINDINGS}/b", "status", "phase", "Bound")


@in_hub
async def test_a_local_definition_stands_against_a_binding(hub: Hub) -> None:
    _, user, _ = await shop_and_user(hub)
    await hub.create(user, DEFINITIONS, definition())
    refused = await hub.create(user, BINDINGS, binding("w", "root:org:shop", "widgets"))
    assert 'overlaps with "widgets.example.io" CustomResourceDefinition in' in str(refused)
    await hub.ask("kcp-admin", "DELETE", f"/clusters/{user}{DEFINITIONS}/widgets.example.io")
    await hub.until(user, f"{BINDINGS}/w", "status", "phase", "Bound")


@in_hub
async def test_a_definition_over_a_bound_type_is_not_accepted(hub: Hub) -> None:
    _, user, _ = await shop_and_user(hub)
    await hub.create(user, BINDINGS, binding("w", "root:org:shop", "widgets"))
    late = await hub.create(user, DEFINITIONS, definition())
    assert conditions(late)["NamesAccepted"] == "False"


@pytest.mark.parametrize(
    ("path", "obj", "status", "words"),
    [
        (SCHEMAS, {**schema(), "metadata": {"name": "v1.other"}}, 403, "must end in"),
        (BINDINGS, binding("x", "root:nowhere", "e"), 403, "no permission to bind to export"),
        (BINDINGS, {**binding("x", "", "e"), "spec": {}}, 422, "spec.reference"),
        (EXPORTS, {**export("x"), "spec": {"permissionClaims": [{"group": "g"}]}}, 422, "resource"),
    ],
)
async def test_bad_input_is_refused(
    hub_place: HubPlace, path: str, obj: Any, status: int, words: str
) -> None:
    async def play(hub: Hub) -> None:
        where = await hub.workspace("root", "org")
        before = await hub.keys()
        reply = await hub.ask("kcp-admin", "POST", f"/clusters/{where}{path}", obj)
        assert (reply.status, words in reply.body["message"]) == (status, True), reply.body
        assert await hub.keys() == before

    await in_hub(play)(hub_place)


@in_hub
async def test_schemas_and_references_do_not_change(hub: Hub) -> None:
    shop, user, _ = await shop_and_user(hub)
    await hub.create(user, BINDINGS, binding("w", "root:org:shop", "widgets"))
    changed = {"spec": {"scope": "Namespaced"}}
    path = f"/clusters/{shop}{SCHEMAS}/v1.widgets.example.io"
    reply = await hub.ask("kcp-admin", "PATCH", path, changed, **MERGE)
    assert (reply.status, "is immutable" in reply.body["message"]) == (403, True)
    for other in ({"name": "other"}, {"path": "root"}, {"path": None}):
        moved = {"spec": {"reference": {"export": other}}}
        reply = await hub.ask("kcp-admin", "PATCH", f"/clusters/{user}{BINDINGS}/w", moved, **MERGE)
        assert reply.status == 422
        why = 'spec.reference: Invalid value: "object": APIExport reference must not be changed'
        assert reply.body["message"].endswith(why)


async def test_bound_types_outlive_their_schemas_and_restarts(tmp_path: Path) -> None:
    store = StoreSettings(kind="sqlite", path=tmp_path / "store.db")
    async with running_hub(tmp_path, store) as hub:
        shop, user, _ = await shop_and_user(hub)
        other = await hub.workspace("root:org", "other")
        for where in (user, other):
            await hub.create(where, BINDINGS, binding("w", "root:org:shop", "widgets"))
            await hub.create(where, WIDGETS, widget("one"))
        path = f"/clusters/{shop}{SCHEMAS}/v1.widgets.example.io"
        assert (await hub.ask("kcp-admin", "DELETE", path)).status == 200
        await hub.ask("kcp-admin", "DELETE", f"/clusters/root:org{WORKSPACES}/shop")
        await hub.gone("root:org", f"{WORKSPACES}/shop")
    async with running_hub(tmp_path, store) as hub:
        await hub.get(user, f"{WIDGETS}/one")
        await hub.create(user, WIDGETS, widget("two"))
        for where in (user, other):
            await hub.ask("kcp-admin", "DELETE", f"/clusters/{where}{BINDINGS}/w")
            await hub.gone(where, f"{BINDINGS}/w")
        while [key for key in await hub.keys() if "widgets" in key or key.startswith("/kept")]:
            await hub.settled()


async def test_the_workspace_of_an_export_may_go_before_its_users(tmp_path: Path) -> None:
    store = StoreSettings(kind="sqlite", path=tmp_path / "store.db")
    async with running_hub(tmp_path, store) as hub:
        _, user, _ = await shop_and_user(hub)
        await hub.create(user, BINDINGS, binding("w", "root:org:shop", "widgets"))
        await hub.create(user, WIDGETS, widget("one"))
        await hub.ask("kcp-admin", "DELETE", f"/clusters/root:org{WORKSPACES}/shop")
        await hub.gone("root:org", f"{WORKSPACES}/shop")
    async with running_hub(tmp_path, store) as hub:
        await hub.get(user, f"{WIDGETS}/one")


# -- views -----------------------------------------------------------------------------------


CLAIM = {"group": "", "resource": "configmaps", "all": True}


@in_hub
async def test_an_exporter_sees_its_objects_in_every_workspace_that_binds(hub: Hub) -> None:
    shop, user, _ = await shop_and_user(hub)
    other = await hub.workspace("root:org", "other")
    view = f"/services/apiexport/{shop}/widgets/clusters"
    for where in (user, other):
        await hub.create(where, BINDINGS, binding("w", "root:org:shop", "widgets"))
        await hub.create(where, WIDGETS, widget("same"))
    found = (await hub.ask("kcp-admin", "GET", f"{view}/*{WIDGETS}")).body
    assert {i["metadata"]["annotations"]["kcp.io/cluster"] for i in found["items"]} == {user, other}
    version = found["metadata"]["resourceVersion"]
    watch = await hub.watch("kcp-admin", f"{view}/*{WIDGETS}?watch=1&resourceVersion={version}")
    status = {"status": {"seen": True}, "metadata": {"labels": {"by": "exporter"}}}
    path = f"{view}/{user}{WIDGETS}/same"
    assert (await hub.ask("kcp-admin", "PATCH", path, status, **MERGE)).status == 200
    line = await watch.lines.get()
    assert line["object"]["metadata"]["annotations"]["kcp.io/cluster"] == user
    made = await hub.ask("kcp-admin", "POST", f"{view}/{other}{WIDGETS}", widget("pushed"))
    assert made.status == 201
    await hub.get(other, f"{WIDGETS}/pushed")
    bindings = (await hub.ask("kcp-admin", "GET", f"{view}/*{BINDINGS}")).body["items"]
    assert [item["metadata"]["name"] for item in bindings] == ["w", "w"]
    groups = (await hub.ask("kcp-admin", "GET", f"{view}/*/apis")).body["groups"]
    assert [group["name"] for group in groups] == ["apis.kcp.io", "example.io"]
    assert (await hub.ask("kcp-admin", "GET", f"{view}/*{WIDGETS}/same")).status == 404
    assert (await hub.ask("kcp-admin", "DELETE", f"{view}/{user}{BINDINGS}/w")).status == 405


@in_hub
async def test_a_view_ends_at_workspaces_that_do_not_bind(hub: Hub) -> None:
    shop, user, _ = await shop_and_user(hub)
    view = f"/services/apiexport/{shop}/widgets/clusters/{user}"
    before = await hub.keys()
    for method, path, body in (
        ("GET", WIDGETS, None),
        ("POST", WIDGETS, widget("pushed")),
        ("GET", "/api/v1/configmaps", None),
        ("GET", f"{BINDINGS}/{'tenancy.kcp.io'}", None),
    ):
        assert (await hub.ask("kcp-admin", method, f"{view}{path}", body)).status == 404
    assert await hub.keys() == before
    gone = "/services/apiexport/root/nope/clusters/*/apis/example.io/v1/widgets"
    assert (await hub.ask("kcp-admin", "GET", gone)).status == 404
    assert (await hub.ask("alice", "GET", gone)).status == 403
    path = "/services/apiexport/root:org:shop/widgets/clusters/*/api"
    assert (await hub.ask("kcp-admin", "GET", path)).status == 403


@in_hub
async def test_claimed_objects_are_seen_only_where_the_claim_was_accepted(hub: Hub) -> None:
    shop, user, _ = await shop_and_user(hub, permissionClaims=[CLAIM])
    shy = await hub.workspace("root:org", "shy")
    view = f"/services/apiexport/{shop}/widgets/clusters"
    for where, state in ((user, "Accepted"), (shy, "Rejected")):
        claims = [{**CLAIM, "state": state}]
        made = binding("w", "root:org:shop", "widgets", permissionClaims=claims)
        bound = await hub.create(where, BINDINGS, made)
        assert bound["status"]["exportPermissionClaims"] == [CLAIM]
        await hub.create(where, CONFIG_MAPS, config_map("mine"))
    listed = f"{view}/*/api/v1/configmaps"

    async def seen() -> set[str]:
        found = (await hub.ask("kcp-admin", "GET", listed)).body["items"]
        return {item["metadata"]["annotations"]["kcp.io/cluster"] for item in found}

    assert await seen() == {user}
    watch = await hub.watch("kcp-admin", f"{listed}?watch=1&resourceVersion=1")
    path = f"{view}/{shy}{CONFIG_MAPS}"
    for method, name, body in (
        ("GET", "/mine", None),
        ("DELETE", "/mine", None),
        ("PUT", "/mine", config_map("mine")),
        ("POST", "", config_map("new")),
    ):
        assert (await hub.ask("kcp-admin", method, path + name, body)).status == 404
    new = await hub.ask("kcp-admin", "POST", f"{view}/{user}{CONFIG_MAPS}", config_map("new"))
    assert new.status == 201
    accepted = {"spec": {"permissionClaims": [{**CLAIM, "state": "Accepted"}]}}
    await hub.ask("kcp-admin", "PATCH", f"/clusters/{shy}{BINDINGS}/w", accepted, **MERGE)
    assert await seen() == {user, shy}
    # Whoever watched must look again: objects came into view that did not change.
    lines = [await watch.lines.get()]
    while lines[-1]["type"] != "ERROR":
        lines.append(await watch.lines.get())
    assert lines[-1]["object"]["code"] == 410
    assert shy not in str(lines)


@in_hub
async def test_a_claim_may_be_for_some_objects_only(hub: Hub) -> None:
    some = {"resource": "configmaps", "group": "", "resourceSelector": [{"name": "shared"}]}
    shop, user, _ = await shop_and_user(hub, permissionClaims=[some])
    claims = [{**some, "state": "Accepted"}]
    made = binding("w", "root:org:shop", "widgets", permissionClaims=claims)
    await hub.create(user, BINDINGS, made)
    for name in ("shared", "private"):
        await hub.create(user, CONFIG_MAPS, config_map(name))
    view = f"/services/apiexport/{shop}/widgets/clusters"
    found = (await hub.ask("kcp-admin", "GET", f"{view}/*/api/v1/configmaps")).body["items"]
    assert [item["metadata"]["name"] for item in found] == ["shared"]
    assert (await hub.ask("kcp-admin", "GET", f"{view}/{user}{CONFIG_MAPS}/shared")).status == 200
    assert (await hub.ask("kcp-admin", "GET", f"{view}/{user}{CONFIG_MAPS}/private")).status == 404


@in_hub
async def test_accepting_what_was_not_claimed_shows_nothing(hub: Hub) -> None:
    shop, user, _ = await shop_and_user(hub)
    claims = [{**CLAIM, "state": "Accepted"}]
    made = binding("w", "root:org:shop", "widgets", permissionClaims=claims)
    bound = await hub.create(user, BINDINGS, made)
    assert conditions(bound)["PermissionClaimsValid"] == "False"
    assert "appliedPermissionClaims" not in bound["status"]
    view = f"/services/apiexport/{shop}/widgets/clusters/*/api/v1/configmaps"
    assert (await hub.ask("kcp-admin", "GET", view)).status == 404


@in_hub
async def test_nobody_does_to_a_bound_type_what_its_exporter_forbids(hub: Hub) -> None:
    shop, user, _ = await shop_and_user(hub, maximalPermissionPolicy={"local": {}})
    await hub.create(user, BINDINGS, binding("w", "root:org:shop", "widgets"))
    reply = await hub.ask("kcp-admin", "POST", f"/clusters/{user}{WIDGETS}", widget("x"))
    assert reply.status == 403
    made = await hub.ask("shard-admin", "POST", f"/clusters/{user}{WIDGETS}", widget("x"))
    assert made.status == 201
    assert shop
