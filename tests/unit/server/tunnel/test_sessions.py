"""Sessions through a tunnel: whose they are, how they end, and that they are recorded."""

from __future__ import annotations

import asyncio

from skerry.logic.machinery.edges.tunnel import answer_of
from skerry.server.http.message import Response, Stream, Upgrade
from skerry.server.security.audit import WORKSPACE_ANNOTATION
from skerry.server.tunnel.sessions import SessionLimits
from skerry.wire.tunnel import WINDOW_BYTES, TunnelStream
from tests.kit.server.edges import IMW, revoke
from tests.kit.server.hub import BINDERS
from tests.kit.server.tunnels import PODS, WEBSOCKET, TunnelHub, in_tunnel_hub

ADMIN = "kcp-admin"
LOG, EXEC = f"{PODS}/web/log", f"{PODS}/web/exec"
LIMITS = SessionLimits()


@in_tunnel_hub
async def test_an_operator_reads_a_log_through_the_tunnel(at: TunnelHub) -> None:
    await at.dial(await (await at.hub.edge()).join())
    assert await at.text(ADMIN, IMW, "florin", LOG) == f"hello from {LOG}\n"


@in_tunnel_hub
async def test_a_connection_is_handed_over_both_ways(at: TunnelHub) -> None:
    await at.dial(await (await at.hub.edge()).join())
    answer = await at.ask(ADMIN, IMW, "florin", EXEC, "command=sh", **WEBSOCKET)
    assert isinstance(answer, Upgrade)
    going = at.going(answer)
    for word in ("one", "two"):
        going.line.write(word.encode())
        assert await going.text() == word
    going.line.close()
    assert await going.ended() is None


@in_tunnel_hub
async def test_an_edge_refuses_in_its_own_words(at: TunnelHub) -> None:
    async def refusing(stream: TunnelStream) -> None:
        stream.answer(answer_of(404, {"content-type": "application/json"}))
        await stream.write(b'{"kind": "Status", "message": "pods \\"web\\" not found"}')
        stream.end()

    await at.dial(await (await at.hub.edge()).join(), refusing)
    assert await at.refusal(ADMIN, IMW, "florin", LOG) == (404, 'pods "web" not found')


@in_tunnel_hub
async def test_without_a_tunnel_the_sentence_names_the_edge_and_the_cause(at: TunnelHub) -> None:
    edge = await (await at.hub.edge()).join()
    code, text = await at.refusal(ADMIN, IMW, "florin", LOG)
    assert code == 503
    assert text == (
        'edge "root:imw:florin" has no tunnel: its syncer has not dialled one; '
        "skerry syncer --tunnel does"
    )
    dialled = await at.dial(edge)
    going = at.going(await at.ask(ADMIN, IMW, "florin", LOG, "follow=true"))
    await going.text()
    dialled.line.close()
    lost = await going.ended()
    assert isinstance(lost, ConnectionError)
    assert "its tunnel was lost: the connection has ended" in str(lost)
    code, text = await at.refusal(ADMIN, IMW, "florin", LOG)
    assert code == 503
    assert text.startswith('edge "root:imw:florin" has no tunnel: it was lost at 20')
    assert text.endswith(": the connection has ended")


@in_tunnel_hub
async def test_revoking_the_edge_ends_its_tunnel_and_every_session(at: TunnelHub) -> None:
    edge = await (await at.hub.edge()).join()
    dialled = await at.dial(edge)
    going = at.going(await at.ask(ADMIN, IMW, "florin", LOG, "follow=true"))
    await going.text()
    await revoke(at.hub, edge)
    assert isinstance(await going.ended(), ConnectionError)
    await asyncio.wait((dialled.running,))
    code, text = await at.refusal(ADMIN, IMW, "florin", LOG)
    assert (code, "shut out" in text) == (503, True)


@in_tunnel_hub
async def test_taking_a_right_away_ends_the_sessions_it_allowed(at: TunnelHub) -> None:
    await at.dial(await (await at.hub.edge()).join())
    await at.grant(IMW, "alice")
    going = at.going(await at.ask("alice", IMW, "florin", LOG, "follow=true"))
    kept = at.going(await at.ask(ADMIN, IMW, "florin", LOG, "follow=true"))
    assert "hello" in await going.text()
    assert "hello" in await kept.text()
    reply = await at.hub.ask(ADMIN, "DELETE", f"/clusters/{IMW}{BINDERS}/at-edges-alice")
    assert reply.status == 200
    await going.ended()
    assert not kept.task.done()


@in_tunnel_hub
async def test_losing_the_namespace_ends_the_sessions_of_its_workspace(at: TunnelHub) -> None:
    edge = await (await at.hub.edge()).join()
    await at.dial(edge)
    shop = await at.hub.workspace("root", "shop", "universal", admin="alice")
    await at.placed(edge, "books", shop)
    path = "/api/v1/namespaces/books/pods/web/log"
    going = at.going(await at.ask("alice", shop, "root:imw:florin", path, "follow=true"))
    kept = at.going(await at.ask(ADMIN, IMW, "florin", path, "follow=true"))
    await going.text()
    await kept.text()
    change = {"metadata": {"annotations": {"edge.kcp.io/owner-workspace": "another"}}}
    reply = await at.hub.ask(
        ADMIN,
        "PATCH",
        f"/clusters/{edge.mailbox}/api/v1/namespaces/books",
        change,
        content_type="application/merge-patch+json",
    )
    assert reply.status == 200, reply.body
    lost = await going.ended()
    assert "does not own the namespace any longer" in str(lost)
    assert not kept.task.done()


@in_tunnel_hub
async def test_a_client_that_reads_nothing_holds_a_window_and_stalls_nobody(at: TunnelHub) -> None:
    sent = 0

    async def flooding(stream: TunnelStream) -> None:
        nonlocal sent
        stream.answer(answer_of(200, {}))
        if b"stuck" not in stream.opening:
            await stream.write(b"lively")
            stream.end()
            return
        for _ in range(1000):
            await stream.write(bytes(16 << 10))
            sent += 16 << 10

    await at.dial(await (await at.hub.edge()).join(), flooding)
    answer = await at.ask(ADMIN, IMW, "florin", f"{PODS}/stuck/log", "follow=true")
    stuck = at.going(answer)
    stuck.line.takes.clear()
    while sent < WINDOW_BYTES:
        await asyncio.sleep(0)
    for _ in range(20):
        assert await at.text(ADMIN, IMW, "florin", LOG) == "lively"
    assert sent <= 2 * WINDOW_BYTES


@in_tunnel_hub
async def test_sessions_are_limited_for_an_edge_and_for_a_user(at: TunnelHub) -> None:
    await at.dial(await (await at.hub.edge()).join())
    for user in ("alice", "bob"):
        await at.grant(IMW, user)
    held = [
        at.going(await at.ask("alice", IMW, "florin", LOG, "follow=true"))
        for _ in range(LIMITS.per_user)
    ]
    code, text = await at.refusal("alice", IMW, "florin", LOG)
    assert (code, text) == (429, "you have 8 sessions at edges, which is the most")
    held += [
        at.going(await at.ask("bob", IMW, "florin", LOG, "follow=true"))
        for _ in range(LIMITS.per_edge - LIMITS.per_user)
    ]
    code, text = await at.refusal(ADMIN, IMW, "florin", LOG)
    assert (code, text) == (
        429, 'edge "root:imw:florin" has 16 sessions, which is the most'
    )  # fmt: skip
    held[0].task.cancel()
    await asyncio.wait((held[0].task,))
    assert "hello" in await at.text("alice", IMW, "florin", LOG)


@in_tunnel_hub
async def test_an_edge_that_says_nothing_sensible_costs_its_own_session(at: TunnelHub) -> None:
    async def garbling(stream: TunnelStream) -> None:
        stream.answer(b"<html>")

    await at.dial(await (await at.hub.edge()).join(), garbling)
    code, text = await at.refusal(ADMIN, IMW, "florin", LOG)
    assert (code, text.startswith('edge "root:imw:florin": want a JSON object')) == (503, True)


@in_tunnel_hub
async def test_only_pods_are_asked_for_whatever_the_right(at: TunnelHub) -> None:
    await at.dial(await (await at.hub.edge()).join())
    for path in (
        "/api/v1/namespaces/shop/secrets",
        "/api/v1/nodes",
        "/apis/apps/v1/deployments",
        f"{PODS}/web/proxy",
        "",
    ):
        code, text = await at.refusal(ADMIN, IMW, "florin", path)
        assert (code, "want /api/v1/namespaces" in text) == (404, True), path
    assert (await at.refusal(ADMIN, IMW, "florin", EXEC))[0] == 400
    assert (await at.refusal(ADMIN, IMW, "florin", PODS, method="DELETE"))[0] == 400


@in_tunnel_hub
async def test_every_session_is_recorded_when_it_begins_and_when_it_ends(at: TunnelHub) -> None:
    await at.dial(await (await at.hub.edge()).join())
    query = "command=sh&command=-c&command=id&container=main"
    going = at.going(await at.ask(ADMIN, IMW, "florin", EXEC, query, **WEBSOCKET))
    going.line.write(b"12345")
    await going.text()
    going.line.close()
    await going.ended()
    begun, ended = at.audited()
    assert (begun["stage"], ended["stage"]) == ("ResponseStarted", "ResponseComplete")
    assert begun["auditID"] == ended["auditID"]
    assert ended["user"]["username"] == ADMIN
    notes = {
        name.removeprefix("edge.kcp.io/tunnel-"): value
        for name, value in ended["annotations"].items()
    }
    assert notes == {
        "authorization.k8s.io/decision": "allow",
        WORKSPACE_ANNOTATION: await at.hub.cluster_of(IMW),
        "edge": "root:imw:florin",
        "namespace": "shop",
        "pod": "web",
        "container": "main",
        "action": "exec",
        "command": '["sh","-c","id"]',
        "sent-bytes": "5",
        "received-bytes": "5",
    }


@in_tunnel_hub
async def test_an_answer_that_nobody_takes_does_not_keep_its_place(at: TunnelHub) -> None:
    dialled = await at.dial(await (await at.hub.edge()).join())
    answer = await at.ask(ADMIN, IMW, "florin", LOG, "follow=true")
    assert isinstance(answer, Stream)
    await asyncio.sleep(0)
    (stream,) = dialled.opened
    assert stream.opening
    refused = await at.ask("alice", IMW, "florin", LOG)
    assert isinstance(refused, Response)
    assert len(dialled.opened) == 1
