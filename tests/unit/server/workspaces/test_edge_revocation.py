"""Revoking an edge closes its mailbox, whatever was made inside."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import jwt

from skerry.api.keys import ObjectKey
from skerry.server.codec import encode
from skerry.store.base import Write
from tests.kit.server.edges import (
    ACCOUNTS,
    APPROVER,
    CONFIGS,
    IMW,
    LEASES,
    MARK,
    MERGE,
    REQUESTS,
    SECRETS,
    SHOP,
    UP,
    Edge,
    EdgeHub,
    ended,
    in_edge_hub,
    lease_of,
    mark,
    name_for,
    new_key,
    report,
    revoke,
)
from tests.kit.server.hub import (
    BINDERS,
    BINDINGS,
    CLUSTERS,
    CONFIG_MAPS,
    DEFINITIONS,
    ROLES,
    SYNC_TARGETS,
    binding,
    config_map,
    grants,
    provider,
    role,
)

LEGACY = "kubestellar-syncer-florin"


async def token_for(hub: EdgeHub, where: str, name: str, seconds: int = 3600) -> str:
    made = await hub.create(
        where, f"{ACCOUNTS}/{name}/token", {"spec": {"expirationSeconds": seconds}}
    )
    return str(made["status"]["token"])


async def account(hub: EdgeHub, where: str, name: str) -> None:
    body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
    await hub.create(where, ACCOUNTS, body)
    binder = grants(name, "cluster-admin", name)
    binder["subjects"] = [{"kind": "ServiceAccount", "name": name, "namespace": "default"}]
    await hub.create(where, BINDERS, binder)


# -- closing -------------------------------------------------------------------------------------


@in_edge_hub
async def test_revocation_shuts_out_the_edge_and_everything_derived_inside(hub: EdgeHub) -> None:
    edge = await (await hub.edge()).join()
    # What the previous version let an edge make in its mailbox.
    await account(hub, edge.mailbox, "robot")
    robot = await token_for(hub, edge.mailbox, "robot")
    everybody = grants("everybody", "cluster-admin", "x")
    everybody["subjects"][0] |= {"kind": "Group", "name": "system:authenticated"}
    await hub.create(edge.mailbox, BINDERS, everybody)
    pending = await edge.credential(token_id="zzz999")
    mine = f"/clusters/{edge.mailbox}"
    assert (await hub.ask(robot, "GET", f"{mine}{SECRETS}")).status == 200
    assert (await hub.ask("bob", "GET", f"{mine}{SECRETS}")).status == 200
    await revoke(hub, edge)
    assert (await edge.ask("GET", CONFIGS)).status == 401
    assert (await edge.request(key=new_key())).status == 401
    assert (await edge.request(pending, key=new_key())).status == 401
    for user in (robot, "bob", "alice"):
        for method, path in (
            ("GET", SECRETS),
            ("POST", CONFIG_MAPS),
            ("GET", "/api"),
            ("POST", f"{ACCOUNTS}/robot/token"),
            ("POST", "/extensions/v1/watch"),
            ("DELETE", BINDERS),
        ):
            reply = await hub.ask(user, method, mine + path, config_map("x"))
            assert reply.status in (401, 403), (user, method, path)
    # By the bare address, which the token itself completes, too.
    assert (await hub.ask(robot, "GET", SECRETS)).status in (401, 403)
    assert (await hub.ask("kcp-admin", "GET", f"{mine}{SECRETS}")).status == 200
    assert (await hub.ask("shard-admin", "GET", f"{mine}{SECRETS}")).status == 200


@in_edge_hub
async def test_revocation_ends_every_stream_in_the_mailbox_but_administrators(
    hub: EdgeHub,
) -> None:
    edge, other = await (await hub.edge()).join(), await (await hub.edge("guilder")).join()
    await account(hub, edge.mailbox, "robot")
    robot = await token_for(hub, edge.mailbox, "robot")
    place = f"/clusters/{edge.mailbox}"
    watches = {"watches": [{"id": "m", "version": "v1", "resource": "configmaps"}]}
    streams = [
        await edge.watch(f"{CONFIGS}?watch=true"),
        await edge.watch("/api/v1/configmaps?watch=true"),
        await edge.watch("/extensions/v1/watch", watches),
        await hub.watch(robot, f"{place}{CONFIG_MAPS}?watch=true"),
    ]
    spared = [
        await hub.watch("kcp-admin", f"{place}{CONFIG_MAPS}?watch=true"),
        await hub.watch("shard-admin", f"{place}{CONFIG_MAPS}?watch=true"),
        await other.watch("/api/v1/configmaps?watch=true"),
        await hub.watch("kcp-admin", f"/clusters/{IMW}{CONFIG_MAPS}?watch=true"),
    ]
    await revoke(hub, edge)
    for stream in streams:
        await ended(stream)
    await hub.settled()
    assert not any(stream.closed for stream in spared)


@in_edge_hub
async def test_deleting_the_sync_target_closes_the_mailbox_at_once(hub: EdgeHub) -> None:
    edge = await (await hub.edge()).join()
    stream = await edge.watch("/api/v1/configmaps?watch=true")
    await hub.ask("kcp-admin", "DELETE", f"/clusters/{IMW}{SYNC_TARGETS}/florin")
    await ended(stream)
    assert (await edge.ask("GET", CONFIGS)).status == 401
    assert (await edge.request(key=new_key())).status == 401
    # A namesake is another edge.
    target = {"apiVersion": "workload.kcp.io/v1alpha1", "kind": "SyncTarget",
              "metadata": {"name": "florin"}, "spec": {}}  # fmt: skip
    await hub.create(IMW, SYNC_TARGETS, target)
    assert (await edge.ask("GET", CONFIGS)).status == 401


@in_edge_hub
async def test_an_edge_that_joins_again_uses_what_was_issued_since(hub: EdgeHub) -> None:
    edge = await (await hub.edge()).join()
    await account(hub, edge.mailbox, "robot")
    robot = await token_for(hub, edge.mailbox, "robot")
    old = edge.certificate
    await revoke(hub, edge)
    edge.key = new_key()
    await edge.join(token_id="abc124")
    assert (await edge.ask("GET", CONFIGS)).status == 200
    assert (await edge.ask("POST", LEASES, lease_of())).status == 201
    fresh, edge.certificate = edge.certificate, old
    assert (await edge.ask("GET", CONFIGS)).status == 401
    assert (await edge.request(key=new_key())).status == 401
    edge.certificate = fresh
    assert (await edge.request(key=new_key())).status == 201
    # Nobody else comes back with it.
    place = f"/clusters/{edge.mailbox}"
    assert (await hub.ask(robot, "GET", f"{place}{SECRETS}")).status in (401, 403)


@in_edge_hub
async def test_a_request_that_waited_is_gone_with_the_revocation(hub: EdgeHub) -> None:
    edge = await hub.edge()
    token = await edge.credential(approved=False)
    assert (await edge.request(token)).status == 201
    await revoke(hub, edge)
    path = f"/clusters/{edge.mailbox}{REQUESTS}/{name_for(edge.key)}"
    assert (await hub.ask("kcp-admin", "GET", path)).status == 404
    assert (await hub.get(edge.mailbox, SECRETS))["items"] == []


@in_edge_hub
async def test_who_revokes_is_the_hubs_to_say_and_the_hub_writes_the_time(hub: EdgeHub) -> None:
    edge = await (await hub.edge()).join()
    await account(hub, edge.mailbox, "robot")
    robot = await token_for(hub, edge.mailbox, "robot")
    await hub.create(edge.mailbox, BINDERS, grants("bob", "cluster-admin", "bob"))
    for user in (robot, "bob", "alice"):
        assert (await mark(hub, edge, user=user)).status == 403, user
    elsewhere = Edge(hub, "x", edge.name._replace(mailbox="root"))
    assert (await mark(hub, elsewhere)).status == 422
    reply = await mark(hub, edge, "2001-01-01T00:00:00Z")
    written = reply.body["metadata"]["annotations"]["edge.kcp.io/edge-revoked"]
    assert written.startswith(str(hub.clock.now().year))
    assert (await edge.ask("GET", CONFIGS)).status == 401


@in_edge_hub
async def test_whoever_lets_edges_in_may_revoke_them_and_write_nothing_else(hub: EdgeHub) -> None:
    edge = await (await hub.edge()).join()
    enter = {"nonResourceURLs": ["/"], "verbs": ["access"]}
    await hub.create(IMW, ROLES, role("approver", APPROVER, enter))
    await hub.create(IMW, BINDERS, grants("approvers", "approver", "alice"))
    path = f"/clusters/{edge.mailbox}{CLUSTERS}/cluster"
    for change in (
        {"metadata": {"annotations": {"mine": "x"}}},
        {"metadata": {"labels": {"mine": "x"}}},
        {"metadata": {"finalizers": ["a.b/c"]}},
        {"spec": {"directlyDeletable": True}},
    ):
        assert (await hub.ask("alice", "PATCH", path, change, content_type=MERGE)).status == 403
    assert (await mark(hub, edge, user="alice")).status == 200
    assert (await edge.ask("GET", CONFIGS)).status == 401
    assert (await mark(hub, edge, None, user="alice")).status == 403
    assert (await mark(hub, edge, None)).status == 200
    assert (await edge.ask("GET", CONFIGS)).status == 200


@in_edge_hub
async def test_what_an_edge_agreed_to_show_an_exporter_is_hidden_again(hub: EdgeHub) -> None:
    edge = await hub.edge()
    where = await hub.workspace("root", "thief", "universal", admin="bob")
    claim = {"group": "", "resource": "secrets", "all": True}
    await provider(hub, where, "loot", permissionClaims=[claim])
    # In the previous version an edge could bind and accept by itself.
    accepted = [{**claim, "state": "Accepted"}]
    await hub.create(
        edge.mailbox, BINDINGS, binding("loot", "root:thief", "loot", permissionClaims=accepted)
    )
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "copied"}}
    await hub.create(edge.mailbox, SECRETS, secret)
    view = f"/services/apiexport/{where}/loot/clusters"
    one = f"{view}/{edge.mailbox}{SECRETS}/copied"
    assert (await hub.ask("bob", "GET", one)).status == 200
    watch = await hub.watch("bob", f"{view}/*/api/v1/secrets?watch=true")
    await revoke(hub, edge)
    await ended(watch)
    assert (await hub.ask("bob", "GET", one)).status in (403, 404)
    for path in (f"{view}/*/api/v1/secrets", f"{view}/{edge.mailbox}{SECRETS}"):
        assert (await hub.ask("bob", "GET", path)).body["items"] == []


# -- tokens --------------------------------------------------------------------------------------


async def long_lived(hub: EdgeHub, where: str, name: str) -> str:
    """Return a token of a Secret as the previous version made it, stored by its own hand."""
    store, tokens = hub.running.api.store, hub.running.api._facts.tokens  # type: ignore[attr-defined]
    found = await hub.get(where, f"{ACCOUNTS}/{name}")
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "old-token", "namespace": "default", "uid": "u-1",
                     "annotations": {"kubernetes.io/service-account.name": name}},
        "type": "kubernetes.io/service-account-token",
    }  # fmt: skip
    key = ObjectKey("", "secrets", where, "default", "old-token").path()
    await store.commit([Write(key, encode(secret), expected=0)])
    from skerry.server.security.tokens import BoundObject, TokenRequest

    token, _ = tokens.issue(
        TokenRequest(
            "default", name, found["metadata"]["uid"], lifetime_seconds=10 * 365 * 86400,
            bound=BoundObject("Secret", "old-token", "u-1"), cluster=where,
        )
    )  # fmt: skip
    return str(token)


@in_edge_hub
async def test_mailboxes_have_no_tokens_of_secrets(hub: EdgeHub) -> None:
    edge = await hub.edge()
    await account(hub, edge.mailbox, "robot")
    assert (await hub.get(edge.mailbox, SECRETS))["items"] == []
    filled = {
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": {"name": "t", "annotations": {"kubernetes.io/service-account.name": "robot"}},
    }  # fmt: skip
    made = await hub.create(edge.mailbox, SECRETS, filled)
    assert "token" not in (made.get("data") or {})
    old = await long_lived(hub, edge.mailbox, "robot")
    place = f"/clusters/{edge.mailbox}"
    assert (await hub.ask(old, "GET", f"{place}{SECRETS}")).status == 401
    short = await token_for(hub, edge.mailbox, "robot")
    assert (await hub.ask(short, "GET", f"{place}{SECRETS}")).status == 200


@in_edge_hub
async def test_tokens_are_shortened_to_a_day(hub: EdgeHub) -> None:
    edge = await hub.edge()
    imw = (await hub.get(IMW, f"{CLUSTERS}/cluster"))["metadata"]["annotations"]["kcp.io/cluster"]
    for where in (edge.mailbox, imw, "root"):
        await account(hub, where, "robot")
        for seconds in (2**32, 8 * 86400, 86401):
            path = f"/clusters/{where}{ACCOUNTS}/robot/token"
            body = {"spec": {"expirationSeconds": seconds}}
            reply = await hub.ask("kcp-admin", "POST", path, body)
            assert reply.status == 201, reply.body
            assert reply.body["spec"]["expirationSeconds"] == 86400
            claims = jwt.decode(reply.body["status"]["token"], options={"verify_signature": False})
            assert claims["exp"] - claims["iat"] == 86400
            assert "shortened" in str(reply.warnings)
        kept = await hub.ask("kcp-admin", "POST", path, {"spec": {"expirationSeconds": 3600}})
        assert kept.body["spec"]["expirationSeconds"] == 3600
        assert not kept.warnings


@in_edge_hub
async def test_a_token_from_long_ago_does_not_count_in_a_mailbox(hub: EdgeHub) -> None:
    edge = await hub.edge()
    await account(hub, edge.mailbox, "robot")
    tokens = hub.running.api._facts.tokens  # type: ignore[attr-defined]
    from skerry.server.security.tokens import TokenRequest

    uid = (await hub.get(edge.mailbox, f"{ACCOUNTS}/robot"))["metadata"]["uid"]
    eternal, _ = tokens.issue(
        TokenRequest("default", "robot", uid, lifetime_seconds=2**32 - 1, cluster=edge.mailbox)
    )
    place = f"/clusters/{edge.mailbox}{SECRETS}"
    assert (await hub.ask(eternal, "GET", place)).status == 200
    hub.clock.ahead = timedelta(days=8)
    assert (await hub.ask(eternal, "GET", place)).status == 401


# -- edges of the previous version ---------------------------------------------------------------


async def legacy(hub: EdgeHub) -> tuple[Edge, str]:
    """Return an edge as the previous version left it, and its token."""
    edge = await hub.edge()
    await account(hub, edge.mailbox, LEGACY)
    await edge.place(f"{SHOP}/configmaps", config_map("copy"))
    return edge, await token_for(hub, edge.mailbox, LEGACY)


@in_edge_hub
async def test_the_account_of_an_earlier_edge_has_the_rights_of_an_edge(hub: EdgeHub) -> None:
    edge, token = await legacy(hub)
    place = f"/clusters/{edge.mailbox}"

    async def ask(method: str, path: str, obj: Any = None, kind: str = "application/json") -> int:
        reply = await hub.ask(token, method, place + path, obj, content_type=kind)
        return reply.status

    assert await ask("GET", CONFIGS) == 200
    assert await ask("PATCH", f"{SHOP}/configmaps/copy", MARK, MERGE) == 200
    assert await ask("POST", LEASES, lease_of()) == 201
    assert await ask("POST", f"{UP}/configmaps", report("mine")) == 201
    # What its syncer does that later ones do not: renew its token, learn of types, boast.
    assert await ask("GET", BINDINGS) == await ask("GET", DEFINITIONS) == 200
    assert await ask("GET", f"{CLUSTERS}/cluster") == 200
    long = {"spec": {"leaseDurationSeconds": 7200}}
    assert await ask("PATCH", f"{LEASES}/syncer-heartbeat", long, MERGE) == 200
    lease = await hub.get(edge.mailbox, f"{LEASES}/syncer-heartbeat")
    assert lease["spec"]["leaseDurationSeconds"] == 3600
    assert await ask("POST", f"{ACCOUNTS}/{LEGACY}/token", {"spec": {}}) == 201
    for method, path, obj in (
        ("DELETE", f"{BINDINGS}/bind-edge", None),
        ("GET", f"{BINDINGS}/bind-edge", None),
        ("PATCH", f"{CLUSTERS}/cluster", {"metadata": {"annotations": {"a": "b"}}}),
        ("GET", BINDERS, None),
        ("POST", BINDERS, grants("more", "cluster-admin", "bob")),
        ("POST", ACCOUNTS, {"metadata": {"name": "second"}}),
        ("POST", f"{ACCOUNTS}/default/token", {"spec": {}}),
        ("GET", f"{ACCOUNTS}/{LEGACY}", None),
        ("PATCH", f"{SHOP}/configmaps/copy", {"data": {"a": "b"}}),
        ("DELETE", f"{SHOP}/configmaps/copy", None),
        ("POST", CONFIG_MAPS, config_map("x")),
    ):
        kind = MERGE if method == "PATCH" else "application/json"
        assert await ask(method, path, obj, kind) == 403, (method, path)


@in_edge_hub
async def test_the_account_is_exchanged_for_one_key_and_goes_with_the_first_heartbeat(
    hub: EdgeHub,
) -> None:
    edge, token = await legacy(hub)
    place = f"/clusters/{edge.mailbox}"
    made = await hub.ask(token, "POST", place + REQUESTS, edge.signing_request())
    assert made.status == 201, made.body
    other = edge.signing_request(key=new_key())
    assert (await hub.ask(token, "POST", place + REQUESTS, other)).status == 403
    # A syncer that died before it kept the certificate asks for it again.
    path = f"{place}{REQUESTS}/{name_for(edge.key)}"
    again = await hub.ask(token, "GET", path)
    edge.take(again.body)
    assert (await hub.ask(token, "GET", place + CONFIGS)).status == 200
    assert (await edge.ask("POST", LEASES, lease_of())).status == 201
    await hub.settled()
    assert (await hub.ask(token, "GET", place + CONFIGS)).status == 401
    for path in (f"{ACCOUNTS}/{LEGACY}", f"{BINDERS}/{LEGACY}"):
        assert (await hub.ask("kcp-admin", "GET", place + path)).status == 404
    assert (await edge.ask("GET", CONFIGS)).status == 200


@in_edge_hub
async def test_revoking_an_earlier_edge_shuts_its_token_out(hub: EdgeHub) -> None:
    edge, token = await legacy(hub)
    place = f"/clusters/{edge.mailbox}"
    watch = await hub.watch(token, f"{place}{CONFIGS}?watch=true")
    await revoke(hub, edge)
    await ended(watch)
    assert (await hub.ask(token, "GET", place + CONFIGS)).status in (401, 403)
    made = await hub.ask(token, "POST", place + REQUESTS, edge.signing_request())
    assert made.status in (401, 403)
