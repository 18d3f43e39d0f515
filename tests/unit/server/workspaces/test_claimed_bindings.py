"""An exporter who claims bindings sees and writes them, as far as that is the exporter's right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.kit.server.hub import (
    BINDINGS,
    EXPORTS,
    SCHEMAS,
    Hub,
    HubPlace,
    binding,
    export,
    in_hub,
    schema,
)
from tests.kit.server.tenants import BIND, allow, home, robot, user

CLAIM = {"group": "apis.kcp.io", "resource": "apibindings", "all": True}
SECRETS = {"group": "", "resource": "secrets", "all": True}
MERGE = {"content_type": "application/merge-patch+json"}


@pytest.fixture
def hub_place(tmp_path: Path) -> HubPlace:
    return HubPlace(tmp_path)


def names(listed: Any) -> list[str]:
    return sorted(item["metadata"]["name"] for item in listed.body["items"])


async def managed(hub: Hub, *claims: dict[str, Any], state: str = "Accepted") -> tuple[str, str]:
    """Let alice export ``mgr``, which bob's home binds; return her view and his cluster."""
    mine, theirs = await home(hub, "alice"), await home(hub, "bob")
    await hub.create(mine, EXPORTS, export("mgr", permissionClaims=list(claims)), "alice")
    await allow(hub, mine, "binders", [BIND], user("bob"))
    answers = [{**claim, "state": state} for claim in claims]
    wanted = binding("mgr", mine, "mgr", permissionClaims=answers)
    await hub.create(theirs, BINDINGS, wanted, "bob")
    return f"/services/apiexport/{mine}/mgr/clusters", theirs


@in_hub
async def test_all_bindings_are_seen_where_the_claim_on_them_was_accepted(hub: Hub) -> None:
    view, theirs = await managed(hub, CLAIM)
    all_of_them = names(await hub.ask("bob", "GET", f"/clusters/{theirs}{BINDINGS}"))
    assert len(all_of_them) == 6
    for where in ("*", theirs):
        assert names(await hub.ask("alice", "GET", f"{view}/{where}{BINDINGS}")) == all_of_them
    other = next(name for name in all_of_them if name.startswith("tenancy"))
    path = f"{view}/{theirs}{BINDINGS}/{other}"
    assert (await hub.ask("alice", "GET", path)).status == 200
    touch = {"metadata": {"labels": {"managed": "yes"}}}
    assert (await hub.ask("alice", "PATCH", path, touch, **MERGE)).status == 200
    found = await hub.ask("alice", "GET", f"{view}/*{BINDINGS}?labelSelector=managed")
    assert names(found) == [other]
    # Status stays the server's.
    reply = await hub.ask("alice", "PATCH", f"{path}/status", {"status": {}}, **MERGE)
    assert reply.status == 403, reply.body
    # Workspaces that do not bind show nothing.
    mine = await home(hub, "alice")
    assert (await hub.ask("alice", "GET", f"{view}/{mine}{BINDINGS}")).status == 404


@in_hub
async def test_without_consent_an_exporter_sees_its_own_bindings_only(hub: Hub) -> None:
    view, theirs = await managed(hub, CLAIM, state="Rejected")
    for where in ("*", theirs):
        assert names(await hub.ask("alice", "GET", f"{view}/{where}{BINDINGS}")) == ["mgr"]
    other = next(n for n in names(await hub.ask("bob", "GET", f"/clusters/{theirs}{BINDINGS}"))
                 if n != "mgr")  # fmt: skip
    for method, path, body in (
        ("GET", f"/{other}", None), ("DELETE", f"/{other}", None),
        ("PATCH", f"/{other}", {"metadata": {"labels": {"a": "b"}}}),
        ("POST", "", binding("x", "root", "topology.kcp.io")),
    ):  # fmt: skip
        reply = await hub.ask("alice", method, f"{view}/{theirs}{BINDINGS}{path}", body, **MERGE)
        assert reply.status == 404, (method, reply.body)
    accepted = {"spec": {"permissionClaims": [{**CLAIM, "state": "Accepted"}]}}
    reply = await hub.ask("alice", "PATCH", f"{view}/{theirs}{BINDINGS}/mgr", accepted, **MERGE)
    assert reply.status == 403, reply.body
    reply = await hub.ask("bob", "PATCH", f"/clusters/{theirs}{BINDINGS}/mgr", accepted, **MERGE)
    assert reply.status == 200
    assert len(names(await hub.ask("alice", "GET", f"{view}/*{BINDINGS}"))) == 6


@in_hub
async def test_a_binding_made_by_a_claim_needs_the_makers_right_to_bind(hub: Hub) -> None:
    view, theirs = await managed(hub, CLAIM)
    await hub.workspace("root", "org")
    where = await hub.workspace("root:org", "restricted")
    await hub.create(where, EXPORTS, export("service"))
    # What bob, whose workspace it is, may bind is not alice's, nor her account's.
    await allow(hub, where, "bobs", [BIND], user("bob"))
    token = await robot(hub, await home(hub, "alice"), "alice")
    path = f"{view}/{theirs}{BINDINGS}"
    wanted = binding("s", "root:org:restricted", "service")
    for asking in ("alice", token):
        reply = await hub.ask(asking, "POST", path, wanted)
        assert reply.status == 403
        assert (
            "unable to create APIBinding: no permission to bind to export"
            in (reply.body["message"])
        )
    await allow(hub, where, "alices", [BIND], user("alice"))
    reply = await hub.ask("alice", "POST", path, wanted)
    assert reply.status == 201, reply.body
    assert reply.body["status"]["phase"] == "Bound"
    # kcp binds through views as nobody in particular; a grant to nobody counts there, only there.
    await hub.create(where, EXPORTS, export("open"))
    opened = {**BIND, "resourceNames": ["open"]}
    await allow(hub, where, "anybody", [opened], user("system:anonymous"))
    wanted = binding("o", "root:org:restricted", "open")
    home_of_alice = await home(hub, "alice")
    reply = await hub.ask(token, "POST", f"/clusters/{home_of_alice}{BINDINGS}", wanted)
    assert reply.status == 403
    assert (await hub.ask(token, "POST", path, wanted)).status == 201


@in_hub
async def test_nobody_accepts_further_claims_through_a_view(hub: Hub) -> None:
    view, theirs = await managed(hub, CLAIM, SECRETS, state="Rejected")
    accepted = [{**CLAIM, "state": "Accepted"}]
    change = {"spec": {"permissionClaims": accepted}}
    own = f"/clusters/{theirs}{BINDINGS}/mgr"
    assert (await hub.ask("bob", "PATCH", own, change, **MERGE)).status == 200
    path = f"{view}/{theirs}{BINDINGS}"
    both = {"spec": {"permissionClaims": [*accepted, {**SECRETS, "state": "Accepted"}]}}
    assert (await hub.ask("alice", "PATCH", f"{path}/mgr", both, **MERGE)).status == 403
    mine = await home(hub, "alice")
    await hub.create(mine, EXPORTS, export("more", permissionClaims=[SECRETS]), "alice")
    sly = [{**SECRETS, "state": "Accepted"}]
    wanted = binding("more", mine, "more", permissionClaims=sly)
    reply = await hub.ask("alice", "POST", path, wanted)
    assert reply.status == 403
    assert "not through a view" in reply.body["message"]
    reply = await hub.ask(
        "alice", "PATCH", f"{path}/more?fieldManager=a", wanted,
        content_type="application/apply-patch+yaml",
    )  # fmt: skip
    assert reply.status == 403, reply.body
    secrets = f"{view}/*/api/v1/secrets"
    assert (await hub.ask("alice", "GET", secrets)).body["items"] == []
    # Taking consent back, or leaving it as it is, is another matter.
    fewer = [{**SECRETS, "state": "Rejected"}]
    wanted = binding("more", mine, "more", permissionClaims=fewer)
    assert (await hub.ask("alice", "POST", path, wanted)).status == 201
    touch = {"metadata": {"labels": {"a": "b"}}}
    assert (await hub.ask("alice", "PATCH", f"{path}/mgr", touch, **MERGE)).status == 200


@in_hub
async def test_claims_on_other_types_of_the_binding_api_show_their_objects(hub: Hub) -> None:
    claims = [{"group": "apis.kcp.io", "resource": each, "all": True}
              for each in ("apiresourceschemas", "apiexports")]  # fmt: skip
    view, theirs = await managed(hub, *claims)
    await hub.create(theirs, SCHEMAS, schema(), "bob")
    await hub.create(theirs, EXPORTS, export("w", "v1.widgets.example.io"), "bob")
    assert names(await hub.ask("alice", "GET", f"{view}/*{EXPORTS}")) == ["w"]
    assert names(await hub.ask("alice", "GET", f"{view}/{theirs}{SCHEMAS}")) == [
        "v1.widgets.example.io"
    ]
    # Bindings were not claimed: the own one, to be read.
    assert names(await hub.ask("alice", "GET", f"{view}/*{BINDINGS}")) == ["mgr"]
    reply = await hub.ask("alice", "POST", f"{view}/{theirs}{BINDINGS}", binding("x", "", "w"))
    assert reply.status == 405
