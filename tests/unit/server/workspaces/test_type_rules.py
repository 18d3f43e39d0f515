"""A WorkspaceType gives nobody what its author, or who uses it, may not have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.kit.server.hub import (
    BINDINGS,
    CONFIG_MAPS,
    WIDGETS,
    WORKSPACES,
    Hub,
    HubPlace,
    binding,
    in_hub,
    widget,
    workspace,
)
from tests.kit.server.tenants import (
    BIND,
    ENTER,
    TYPES,
    USE,
    allow,
    group,
    home,
    shop,
    user,
)

SHOP = {"path": "root:org:shop", "export": "widgets"}


@pytest.fixture
def hub_place(tmp_path: Path) -> HubPlace:
    return HubPlace(tmp_path)


def kind(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "tenancy.kcp.io/v1alpha1",
        "kind": "WorkspaceType",
        "metadata": {"name": name},
        "spec": spec,
    }


def of(cluster: str, name: str) -> dict[str, Any]:
    return workspace("child", {"type": {"name": name, "path": cluster}})


@in_hub
async def test_a_type_of_ones_own_binds_nothing_one_may_not_bind(hub: Hub) -> None:
    where = await shop(hub)
    mine = await home(hub, "alice")
    universal = {"with": [{"name": "universal", "path": "root"}]}
    own = {"with": [{"name": "plain", "path": mine}]}
    types = [
        kind("plain", defaultAPIBindings=[SHOP]),
        kind("extending", extend=universal, defaultAPIBindings=[SHOP]),
        kind("through", extend=own),
        kind("by-name", defaultAPIBindings=[{**SHOP, "path": where}]),
        kind("absent", defaultAPIBindings=[{"path": "root:org:nowhere", "export": "widgets"}]),
        kind("later", defaultAPIBindings=[{**SHOP, "export": "not-yet"}]),
    ]
    for each in types:
        name = each["metadata"]["name"]
        await hub.create(mine, TYPES, each, "alice")
        reply = await hub.ask("alice", "POST", f"/clusters/{mine}{WORKSPACES}", of(mine, name))
        assert reply.status == 403, (name, reply.body)
        assert "no permission to bind" in reply.body["message"], name
    await allow(hub, where, "binders", [BIND, ENTER], user("alice"))
    reply = await hub.ask("alice", "POST", f"/clusters/{mine}{WORKSPACES}", of(mine, "plain"))
    assert reply.status == 201, reply.body
    await hub.create(reply.body["spec"]["cluster"], WIDGETS, widget("w"), "alice")


@in_hub
async def test_a_type_that_changes_after_its_first_use_is_judged_anew(hub: Hub) -> None:
    await shop(hub)
    mine = await home(hub, "alice")
    universal = {"with": [{"name": "universal", "path": "root"}]}
    made = await hub.create(mine, TYPES, kind("t", extend=universal), "alice")
    first = workspace("first", {"type": {"name": "t", "path": mine}})
    await hub.create(mine, WORKSPACES, first, "alice")
    made["spec"]["defaultAPIBindings"] = [SHOP]
    changed = await hub.ask("alice", "PUT", f"/clusters/{mine}{TYPES}/t", made)
    assert changed.status == 200, changed.body
    reply = await hub.ask("alice", "POST", f"/clusters/{mine}{WORKSPACES}", of(mine, "t"))
    assert reply.status == 403, reply.body


@in_hub
async def test_a_child_by_default_is_judged_as_one_by_name(hub: Hub) -> None:
    await shop(hub)
    mine = await home(hub, "alice")
    universal = {"with": [{"name": "universal", "path": "root"}]}
    await hub.create(mine, TYPES, kind("loaded", extend=universal, defaultAPIBindings=[SHOP]),
                     "alice")  # fmt: skip
    parent = kind("parent", extend=universal,
                  defaultChildWorkspaceType={"name": "loaded", "path": mine})  # fmt: skip
    await hub.create(mine, TYPES, parent, "alice")
    made = await hub.create(mine, WORKSPACES, of(mine, "parent"), "alice")
    cluster = made["spec"]["cluster"]
    reply = await hub.ask("alice", "POST", f"/clusters/{cluster}{WORKSPACES}", workspace("c"))
    assert reply.status == 403, reply.body


@in_hub
async def test_extending_a_type_needs_the_right_to_use_it(hub: Hub) -> None:
    """A type may bring exports of its own workspace to whom it may be used by, and no others."""
    where = await shop(hub)
    await hub.create(where, TYPES, kind("customer", defaultAPIBindings=[SHOP]))
    mine = await home(hub, "alice")
    extended = {"with": [{"name": "customer", "path": "root:org:shop"}]}
    await hub.create(mine, TYPES, kind("t", extend=extended), "alice")
    twice = {"with": [{"name": "t", "path": mine}]}
    await hub.create(mine, TYPES, kind("u", extend=twice), "alice")
    for cluster, name in ((where, "customer"), (mine, "t"), (mine, "u")):
        reply = await hub.ask("alice", "POST", f"/clusters/{mine}{WORKSPACES}", of(cluster, name))
        assert reply.status == 403, (name, reply.body)
        assert "missing verb='use'" in reply.body["message"]
    await allow(hub, where, "customers", [USE, ENTER], user("alice"))
    made = await hub.create(mine, WORKSPACES, of(mine, "u"), "alice")
    await hub.create(made["spec"]["cluster"], WIDGETS, widget("w"), "alice")


@in_hub
async def test_an_author_cannot_lend_a_right_of_somebody_else(hub: Hub) -> None:
    """Neither may the author bind, nor the user: that both trust each other changes nothing."""
    await shop(hub, user("carol"))
    mine = await home(hub, "alice")
    await hub.create(mine, TYPES, kind("t", defaultAPIBindings=[SHOP]), "alice")
    await allow(hub, mine, "users", [USE, ENTER], user("bob"))
    theirs = await home(hub, "bob")
    reply = await hub.ask("bob", "POST", f"/clusters/{theirs}{WORKSPACES}", of(mine, "t"))
    assert reply.status == 403, reply.body


@in_hub
async def test_an_initializer_acts_as_the_owner_in_the_new_workspace_only(hub: Hub) -> None:
    """What the owner may elsewhere is not the initializer's."""
    where = await shop(hub, user("bob"))
    mine = await home(hub, "alice")
    universal = {"with": [{"name": "universal", "path": "root"}]}
    await hub.create(mine, TYPES, kind("trap", extend=universal, initializer=True), "alice")
    await allow(hub, mine, "users", [USE, ENTER], group("system:authenticated"))
    theirs = await home(hub, "bob")
    made = await hub.create(theirs, WORKSPACES, of(mine, "trap"), "bob")
    cluster = made["spec"]["cluster"]
    view = f"/services/initializingworkspaces/{mine}:trap/clusters/{cluster}"
    assert (await hub.ask("alice", "GET", f"{view}{CONFIG_MAPS}")).status == 200
    stolen = binding("w", "root:org:shop", "widgets")
    reply = await hub.ask("alice", "POST", f"{view}{BINDINGS}", stolen)
    assert reply.status == 403, reply.body
    child = workspace("grandchild", {"type": {"name": "universal", "path": "root"}})
    reply = await hub.ask("alice", "POST", f"{view}{WORKSPACES}", child)
    assert reply.status == 403, reply.body
    for door in (where, theirs, "root"):
        reply = await hub.ask(
            "alice", "GET", f"/services/initializingworkspaces/{mine}:trap/clusters/{door}"
            f"{CONFIG_MAPS}",
        )  # fmt: skip
        assert reply.status == 403, (door, reply.body)


@in_hub
async def test_a_workspace_without_owner_is_nobodys_to_initialize_blindly(hub: Hub) -> None:
    """Masters own nothing; who initializes their workspaces has no rights to borrow."""
    mine = await home(hub, "alice")
    universal = {"with": [{"name": "universal", "path": "root"}]}
    await hub.create(mine, TYPES, kind("trap", extend=universal, initializer=True), "alice")
    await hub.workspace("root", "org")
    reply = await hub.ask("shard-admin", "POST", f"/clusters/root:org{WORKSPACES}",
                          of(mine, "trap"))  # fmt: skip
    if reply.status == 403:  # organizations hold universal workspaces only
        reply = await hub.ask("shard-admin", "POST", f"/clusters/{mine}{WORKSPACES}",
                              of(mine, "trap"))  # fmt: skip
    assert reply.status == 201, reply.body
    cluster = reply.body["spec"]["cluster"]
    view = f"/services/initializingworkspaces/{mine}:trap/clusters/{cluster}"
    for method, path, body in (("GET", CONFIG_MAPS, None), ("POST", CONFIG_MAPS, {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}})):  # fmt: skip
        reply = await hub.ask("alice", method, f"{view}{path}", body)
        assert reply.status == 403, (method, reply.body)


@in_hub
async def test_administrators_of_the_hub_use_types_as_before(hub: Hub) -> None:
    await shop(hub)
    mine = await home(hub, "alice")
    await hub.create(mine, TYPES, kind("t", defaultAPIBindings=[SHOP]), "alice")
    for asking in ("kcp-admin", "shard-admin"):
        child = workspace(asking, {"type": {"name": "t", "path": mine}})
        reply = await hub.ask(asking, "POST", f"/clusters/{mine}{WORKSPACES}", child)
        assert reply.status == 201, (asking, reply.body)
