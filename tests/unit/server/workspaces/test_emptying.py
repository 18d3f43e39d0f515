"""What is being deleted and cannot go says why, takes nothing new, and lets people clear it up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.kit.server.hub import (
    BINDINGS,
    CLUSTERS,
    CONFIG_MAPS,
    DEFINITIONS,
    WIDGETS,
    WORKSPACES,
    Hub,
    HubPlace,
    binding,
    config_map,
    definition,
    in_hub,
    provider,
    widget,
)

MERGE = {"content_type": "application/merge-patch+json"}
HELD = "BindingResourceDeleteSuccess"
CONTENT = "WorkspaceContentDeleted"


@pytest.fixture
def hub_place(tmp_path: Path) -> HubPlace:
    return HubPlace(tmp_path)


def condition(obj: Any, kind: str) -> dict[str, Any]:
    found = [each for each in obj["status"]["conditions"] if each["type"] == kind]
    return {key: value for key, value in (found or [{}])[0].items() if key != "lastTransitionTime"}


async def said(hub: Hub, where: str, path: str, kind: str, message: str) -> dict[str, Any]:
    """Wait until the object at *path* says *message*; return the condition."""
    while True:
        found = condition(await hub.get(where, path), kind)
        if found.get("message") == message:
            return found
        await hub.settled()


async def bound(hub: Hub) -> tuple[str, str]:
    await hub.workspace("root", "org")
    shop = await hub.workspace("root:org", "shop")
    await provider(hub, shop)
    user = await hub.workspace("root:org", "user", admin="alice")
    await hub.create(user, BINDINGS, binding("w", "root:org:shop", "widgets"))
    return shop, user


async def verbs(hub: Hub, where: str) -> list[list[str]]:
    """Return the verbs of widgets in both forms of discovery."""
    plain = await hub.get(where, "/apis/example.io/v1")
    reply = await hub.ask(
        "kcp-admin", "GET", f"/clusters/{where}/apis",
        accept="application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
    )  # fmt: skip
    group = next(i for i in reply.body["items"] if i["metadata"]["name"] == "example.io")
    return [sorted(plain["resources"][0]["verbs"]),
            sorted(group["versions"][0]["resources"][0]["verbs"])]  # fmt: skip


@in_hub
async def test_a_binding_says_whose_finalizers_hold_its_objects(hub: Hub) -> None:
    shop, user = await bound(hub)
    await hub.create(user, WIDGETS, widget("one", finalizers=["x.io/y"]))
    path = f"/clusters/{user}{BINDINGS}/w"
    assert (await hub.ask("alice", "DELETE", path)).status == 200
    expected = (
        "Some content in the workspace has finalizers remaining: x.io/y in 1 resource instances"
    )
    found = await said(hub, user, f"{BINDINGS}/w", HELD, expected)
    assert found == {"type": HELD, "status": "False", "severity": "Error",
                     "reason": "SomeFinalizersRemain", "message": expected}  # fmt: skip
    binding_now = await hub.get(user, f"{BINDINGS}/w")
    kinds = [each["type"] for each in binding_now["status"]["conditions"]]
    assert kinds == ["Ready", *sorted(kinds[1:])]
    assert await verbs(hub, user) == [["delete", "deletecollection", "get", "list", "watch"]] * 2
    view = f"/services/apiexport/{shop}/widgets/clusters/{user}"
    for door in (f"/clusters/{user}", view):
        for method, below, body, headers in (
            ("POST", "", widget("new"), {}),
            ("PATCH", "/new?fieldManager=f", widget("new"),
             {"content_type": "application/apply-patch+yaml"}),
        ):  # fmt: skip
            reply = await hub.ask("kcp-admin", method, f"{door}{WIDGETS}{below}", body, **headers)
            assert reply.status == 405, (door, method, reply.body)
            assert reply.body["reason"] == "MethodNotAllowed"
            assert reply.body["message"] == (
                "create not allowed while custom resource definition is terminating"
            )
    # What is there can be changed, or it could never go.
    existing = await hub.get(user, f"{WIDGETS}/one")
    existing["spec"]["size"] = 2
    reply = await hub.ask("alice", "PUT", f"/clusters/{user}{WIDGETS}/one", existing)
    assert reply.status == 200
    free: dict[str, Any] = {"metadata": {"finalizers": []}}
    reply = await hub.ask("alice", "PATCH", f"/clusters/{user}{WIDGETS}/one", free, **MERGE)
    assert reply.status == 200
    await hub.gone(user, f"{BINDINGS}/w")
    # Bound anew it takes objects again.
    await hub.create(user, BINDINGS, binding("w", "root:org:shop", "widgets"))
    assert "create" in (await verbs(hub, user))[0]
    await hub.create(user, WIDGETS, widget("one"), "alice")


@in_hub
async def test_finalizers_are_counted_and_listed_in_order(hub: Hub) -> None:
    _, user = await bound(hub)
    await hub.create(user, WIDGETS, widget("one", finalizers=["b.io/x", "a.io/x"]))
    await hub.create(user, WIDGETS, widget("two", finalizers=["b.io/x"]))
    await hub.create(user, WIDGETS, widget("free"))
    await hub.ask("alice", "DELETE", f"/clusters/{user}{BINDINGS}/w")
    expected = "Some content in the workspace has finalizers remaining: "
    both = f"{expected}a.io/x in 1 resource instances, b.io/x in 2 resource instances"
    await said(hub, user, f"{BINDINGS}/w", HELD, both)
    free = {"metadata": {"finalizers": None}}
    await hub.ask("alice", "PATCH", f"/clusters/{user}{WIDGETS}/one", free, **MERGE)
    await said(hub, user, f"{BINDINGS}/w", HELD, f"{expected}b.io/x in 1 resource instances")
    # Another workspace that binds the same notices nothing.
    other = await hub.workspace("root:org", "other")
    await hub.create(other, BINDINGS, binding("w", "root:org:shop", "widgets"))
    assert "create" in (await verbs(hub, other))[0]
    await hub.create(other, WIDGETS, widget("one"))


@in_hub
async def test_a_workspace_says_what_is_left_in_it_and_its_people_may_clear_it(hub: Hub) -> None:
    _, user = await bound(hub)
    held = config_map("held")
    held["metadata"]["finalizers"] = ["x.io/y"]
    await hub.create(user, CONFIG_MAPS, held)
    await hub.create(user, WIDGETS, widget("one", finalizers=["x.io/z"]))
    await hub.ask("kcp-admin", "DELETE", f"/clusters/root:org{WORKSPACES}/user")
    expected = (
        "Some resources are remaining: configmaps. has 1 resource instances, widgets.example.io "
        "has 1 resource instances; Some content in the logical cluster has finalizers remaining: "
        "x.io/y in 1 resource instances, x.io/z in 1 resource instances"
    )
    for where, path in (("root:org", f"{WORKSPACES}/user"), (user, f"{CLUSTERS}/cluster")):
        found = await said(hub, where, path, CONTENT, expected)
        assert found == {"type": CONTENT, "status": "False", "severity": "Info",
                         "reason": "SomeResourcesRemain", "message": expected}  # fmt: skip
    # Who may do so is let in while something is left, and nothing new comes.
    free = {"metadata": {"finalizers": None}}
    assert (await hub.ask("alice", "POST", f"/clusters/{user}{CONFIG_MAPS}", config_map("n"))
            ).status == 403  # fmt: skip
    reply = await hub.ask("alice", "PATCH", f"/clusters/{user}{WIDGETS}/one", free, **MERGE)
    assert reply.status == 200, reply.body
    fewer = (
        "Some resources are remaining: configmaps. has 1 resource instances; Some content in the "
        "logical cluster has finalizers remaining: x.io/y in 1 resource instances"
    )
    await said(hub, "root:org", f"{WORKSPACES}/user", CONTENT, fewer)
    reply = await hub.ask("alice", "PATCH", f"/clusters/{user}{CONFIG_MAPS}/held", free, **MERGE)
    assert reply.status == 200, reply.body
    await hub.gone("root:org", f"{WORKSPACES}/user")
    assert not [key for key in await hub.keys() if f"/{user}/" in key]


@in_hub
async def test_a_definition_stays_while_one_of_its_objects_is_held(hub: Hub) -> None:
    await hub.workspace("root", "org")
    user = await hub.workspace("root:org", "user", admin="alice")
    await hub.create(user, DEFINITIONS, definition())
    await hub.create(user, WIDGETS, widget("one", finalizers=["x.io/z"]))
    await hub.ask("kcp-admin", "DELETE", f"/clusters/root:org{WORKSPACES}/user")
    expected = (
        "Some resources are remaining: widgets.example.io has 1 resource instances; Some content "
        "in the logical cluster has finalizers remaining: x.io/z in 1 resource instances"
    )
    await said(hub, "root:org", f"{WORKSPACES}/user", CONTENT, expected)
    free = {"metadata": {"finalizers": None}}
    reply = await hub.ask("alice", "PATCH", f"/clusters/{user}{WIDGETS}/one", free, **MERGE)
    assert reply.status == 200, reply.body
    await hub.gone("root:org", f"{WORKSPACES}/user")
    assert not [key for key in await hub.keys() if f"/{user}/" in key]


@in_hub
async def test_a_home_that_is_given_up_says_what_is_left_in_it(hub: Hub) -> None:
    reply = await hub.ask("alice", "GET", f"/clusters/root{WORKSPACES}/~")
    mine = reply.body["spec"]["cluster"]
    held = config_map("held")
    held["metadata"]["finalizers"] = ["x.io/y"]
    await hub.create(mine, CONFIG_MAPS, held, "alice")
    reply = await hub.ask("alice", "DELETE", f"/clusters/{mine}{CLUSTERS}/cluster")
    assert reply.status == 200
    expected = (
        "Some resources are remaining: configmaps. has 1 resource instances; Some content in the "
        "logical cluster has finalizers remaining: x.io/y in 1 resource instances"
    )
    await said(hub, mine, f"{CLUSTERS}/cluster", CONTENT, expected)
    free = {"metadata": {"finalizers": None}}
    reply = await hub.ask("alice", "PATCH", f"/clusters/{mine}{CONFIG_MAPS}/held", free, **MERGE)
    assert reply.status == 200
    while any(f"/{mine}/" in key for key in await hub.keys()):
        await hub.settled()
