"""Whom an administrator of one workspace impersonates is that workspace's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skerry.server.http.message import Stream
from tests.kit.server.harness import MemorySender
from tests.kit.server.hub import (
    BINDERS,
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
    ALL,
    ENTER,
    HOME,
    allow,
    granted,
    group,
    home,
    robot,
    shop,
    user,
)

WANTED = binding("w", "root:org:shop", "widgets")
IMPERSONATE: dict[str, Any] = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["impersonate"]}
REVIEWS = "/apis/authorization.k8s.io/v1"
DISGUISES: list[dict[str, str]] = [
    {"impersonate_user": "bob"},
    {"impersonate_user": "x", "impersonate_group": "partners"},
    {"impersonate_user": "x", "impersonate_group": "system:authenticated\npartners"},
    {"impersonate_user": "bob", "impersonate_uid": "bob",
     "impersonate_extra_authentication.kcp.io%2fscopes": "cluster:root"},
    {"impersonate_user": "system:serviceaccount:default:robot"},
    {"impersonate_user": "system:serviceaccount:default:robot", "impersonate_group": "partners"},
]  # fmt: skip


@pytest.fixture
def hub_place(tmp_path: Path) -> HubPlace:
    return HubPlace(tmp_path)


async def partners_shop(hub: Hub, **spec: Any) -> str:
    """Offer widgets to bob, to a group, and to accounts of the shop itself."""
    return await shop(
        hub, user("bob"), group("partners"), group("system:serviceaccounts"),
        user("system:serviceaccount:default:robot"), **spec,
    )  # fmt: skip


async def disguised_home(hub: Hub) -> str:
    """Return alice's home, where everybody she might impersonate may do everything."""
    mine = await home(hub, "alice")
    everybody = [user("bob"), user("x"), user("eve"), group("system:authenticated")]
    everybody.append(user("system:serviceaccount:default:robot"))
    await hub.create(mine, BINDERS, granted("all", "cluster-admin", *everybody), "alice")
    return mine


@in_hub
async def test_nobody_binds_in_the_name_of_another_tenant(hub: Hub) -> None:
    await partners_shop(hub)
    mine = await disguised_home(hub)
    token = await robot(hub, mine, "alice")
    for asking in ("alice", token):
        reply = await hub.ask(asking, "GET", f"/clusters/{mine}{BINDINGS}", impersonate_user="bob")
        assert reply.status == 200, reply.body
        for disguise in DISGUISES:
            reply = await hub.ask(asking, "POST", f"/clusters/{mine}{BINDINGS}", WANTED, **disguise)
            assert reply.status == 403, (asking, disguise, reply.body)
    theirs = await home(hub, "bob")
    assert (await hub.ask("bob", "POST", f"/clusters/{theirs}{BINDINGS}", WANTED)).status == 201


@in_hub
async def test_who_is_impersonated_has_what_its_qualified_name_was_granted(hub: Hub) -> None:
    mine = await disguised_home(hub)
    await shop(hub, user(f"system:kcp:user:{mine}:bob"))
    for disguise, wanted in (("bob", 201), ("eve", 403)):
        reply = await hub.ask("alice", "POST", f"/clusters/{mine}{BINDINGS}",
                              WANTED, impersonate_user=disguise)  # fmt: skip
        assert reply.status == wanted, (disguise, reply.body)
    # A name that looks like the qualified one is another name.
    reply = await hub.ask(
        "alice", "POST", f"/clusters/{mine}{BINDINGS}", binding("v", "root:org:shop", "widgets"),
        impersonate_user=f"system:kcp:user:{mine}:bob",
    )  # fmt: skip
    assert reply.status == 403, reply.body


@in_hub
async def test_nobody_writes_past_a_policy_in_the_name_of_another(hub: Hub) -> None:
    where = await shop(hub, group("system:authenticated"), maximalPermissionPolicy={"local": {}})
    bound = "apis.kcp.io:binding:"
    await allow(hub, where, "max", [ALL], user(f"{bound}bob"), group(f"{bound}partners"),
                user(f"{bound}system:serviceaccount:default:robot"))  # fmt: skip
    mine = await disguised_home(hub)
    await hub.create(mine, BINDINGS, WANTED, "alice")
    path = f"/clusters/{mine}{WIDGETS}"
    for number, disguise in enumerate([{}, *DISGUISES]):
        reply = await hub.ask("alice", "POST", path, widget(f"w{number}"), **disguise)
        assert reply.status == 403, (disguise, reply.body)


@in_hub
async def test_groups_that_the_hub_gives_out_are_not_impersonated(hub: Hub) -> None:
    mine = await disguised_home(hub)
    groups = ("system:masters", "system:kcp:admin", "system:kcp:anything", "system:kcp:scoped",
              "system:edges", "system:edge-bootstrappers")  # fmt: skip
    path = f"/clusters/{mine}{CONFIG_MAPS}"
    assert (await hub.ask("alice", "GET", path, impersonate_user="x")).status == 200
    for name in groups:
        for asking in ("alice", "kcp-admin"):
            for wanted in (name, f"harmless\n{name}"):
                reply = await hub.ask(
                    asking, "GET", path, impersonate_user="x", impersonate_group=wanted
                )
                assert reply.status == 403, (asking, wanted, reply.body)
    for name in ("system:edge:m:u", "system:edge-bootstrap:m:t"):
        assert (await hub.ask("alice", "GET", path, impersonate_user=name)).status == 403, name
    # Masters may: nothing is above them.
    reply = await hub.ask("shard-admin", "GET", path, impersonate_user="x",
                          impersonate_group="system:masters")  # fmt: skip
    assert reply.status == 200


@in_hub
async def test_at_home_impersonation_means_what_the_workspace_grants(hub: Hub) -> None:
    mine = await home(hub, "alice")
    path = f"/clusters/{mine}{CONFIG_MAPS}"
    assert (await hub.ask("alice", "GET", path, impersonate_user="eve")).status == 403
    await hub.create(mine, BINDERS, granted("eve", "cluster-admin", user("eve")), "alice")
    assert (await hub.ask("alice", "GET", path, impersonate_user="eve")).status == 200


@in_hub
async def test_a_right_of_the_hub_to_impersonate_is_not_scoped(hub: Hub) -> None:
    """Operators look at what a user sees: as that user, everywhere."""
    await partners_shop(hub)
    theirs = await home(hub, "bob")
    for asking, name in (("kcp-admin", "v"), ("shard-admin", "w")):
        reply = await hub.ask(
            asking, "POST", f"/clusters/{theirs}{BINDINGS}",
            binding(name, "root:org:shop", "widgets"), impersonate_user="bob",
        )  # fmt: skip
        assert reply.status == 201, (asking, reply.body)
        # An account is one cluster's whoever impersonates it.
        reply = await hub.ask(
            asking, "POST", f"/clusters/{theirs}{BINDINGS}", WANTED,
            impersonate_user="system:serviceaccount:default:robot",
        )  # fmt: skip
        assert reply.status == 403, (asking, reply.body)


@in_hub
async def test_a_right_given_in_root_is_roots(hub: Hub) -> None:
    await partners_shop(hub)
    await allow(hub, "root", "impersonators", [IMPERSONATE], user("alice"))
    theirs, mine = await home(hub, "bob"), await home(hub, "alice")
    found = await hub.ask("alice", "GET", HOME, impersonate_user="bob")
    # Neither bob's home, nor hers: whom she impersonates in root has none.
    assert found.status == 403, found.body
    for door in (theirs, "user:bob"):
        reply = await hub.ask("alice", "GET", f"/clusters/{door}{CONFIG_MAPS}",
                              impersonate_user="bob")  # fmt: skip
        assert reply.status == 403, door
    assert (await hub.ask("bob", "GET", HOME)).body["spec"]["cluster"] == theirs
    assert (await hub.ask("alice", "GET", HOME)).body["spec"]["cluster"] == mine


@in_hub
async def test_the_owner_of_a_workspace_is_who_really_made_it(hub: Hub) -> None:
    mine = await home(hub, "alice")
    name = f"system:kcp:user:{mine}:bob"
    await allow(hub, "root", "uses", [ALL, ENTER], user(name))
    await hub.create(mine, BINDERS, granted("bob", "cluster-admin", user("bob")), "alice")
    made = await hub.ask("alice", "POST", f"/clusters/{mine}{WORKSPACES}", workspace("c"),
                         impersonate_user="bob")  # fmt: skip
    assert made.status == 201, made.body
    cluster = made.body["spec"]["cluster"]
    admins = await hub.get(cluster, f"{BINDERS}/workspace-admin")
    assert [each["name"] for each in admins["subjects"]] == [name]
    assert (await hub.ask("bob", "GET", f"/clusters/{cluster}{CONFIG_MAPS}")).status == 403


@in_hub
async def test_views_are_seen_with_the_rights_of_who_really_asks(hub: Hub) -> None:
    """A right to impersonate in the exporter's workspace ends there, in a view too."""
    where = await partners_shop(hub)
    await allow(hub, where, "imp", [IMPERSONATE, ENTER], user("alice"))
    content = {"apiGroups": ["apis.kcp.io"], "resources": ["apiexports/content"], "verbs": ["*"]}
    await allow(hub, where, "content", [content, ENTER], user("bob"))
    theirs = await home(hub, "bob")
    await hub.create(theirs, BINDINGS, WANTED, "bob")
    view = f"/services/apiexport/{where}/widgets/clusters"
    # Held where the export is, so it counts for the export's view.
    reply = await hub.ask("alice", "GET", f"{view}/*{WIDGETS}", impersonate_user="bob")
    assert reply.status == 200, reply.body
    # Held in her own workspace, it does not.
    mine = await home(hub, "alice")
    await hub.ask("kcp-admin", "DELETE", f"/clusters/{where}{BINDERS}/imp")
    for door in (f"{view}/*", f"{view}/{theirs}", f"{view}/{mine}"):
        reply = await hub.ask("alice", "GET", f"{door}{WIDGETS}", impersonate_user="bob")
        assert reply.status == 403, (door, reply.body)


@in_hub
async def test_a_batch_is_carried_out_as_the_scoped_principal(hub: Hub) -> None:
    await partners_shop(hub)
    mine = await disguised_home(hub)
    batch = {"requests": [{"method": "POST", "path": BINDINGS, "body": WANTED}]}
    for disguise in DISGUISES:
        answer = await hub.answer(
            "alice", "POST", f"/clusters/{mine}/extensions/v1/batch", batch,
            dict(disguise),
        )  # fmt: skip
        if not isinstance(answer, Stream):
            assert answer.status == 403, disguise
            continue
        sender = MemorySender()
        await answer.run(sender)
        codes = [each["code"] for each in sender.lines.get_nowait()["answers"]]
        assert codes == [403], disguise


@in_hub
async def test_self_reviews_answer_for_the_scoped_principal(hub: Hub) -> None:
    where = await partners_shop(hub)
    await hub.create(where, BINDERS, granted("imp", "cluster-admin", user("alice")))
    asked = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
             "spec": {"resourceAttributes": {
                 "verb": "bind", "group": "apis.kcp.io", "resource": "apiexports"}}}  # fmt: skip
    # Asked in the shop, bob's rights there are what is asked for.
    path = f"/clusters/{where}{REVIEWS}/selfsubjectaccessreviews"
    reply = await hub.ask("alice", "POST", path, asked, impersonate_user="bob")
    assert reply.body["status"]["allowed"] is True
    rules = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview",
             "spec": {"namespace": "default"}}  # fmt: skip
    mine = await home(hub, "alice")
    path = f"/clusters/{mine}{REVIEWS}/selfsubjectrulesreviews"
    await hub.create(mine, BINDERS, granted("bob", "system:kcp:workspace:access", user("bob")),
                     "alice")  # fmt: skip
    found = await hub.ask("alice", "POST", path, rules, impersonate_user="bob")
    assert found.status == 201, found.body
    assert not any("bind" in each["verbs"] for each in found.body["status"]["resourceRules"])
