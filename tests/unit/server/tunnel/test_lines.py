"""Tunnels are dialled by edges alone, each has one, and what breaks the rules loses it."""

from __future__ import annotations

import asyncio

import pytest

from skerry.app.hub import hub_flavor
from skerry.app.settings import ServerSettings, StoreSettings
from skerry.app.standalone import StartError, serving
from skerry.logic.machinery.edges.tunnel import TUNNEL_PATH
from skerry.wire.tunnel import DATA, PROTOCOL, frame
from tests.kit.server.edges import IMW, EdgeHub, in_edge_hub
from tests.kit.server.tunnels import PODS, TunnelHub, in_tunnel_hub

UPGRADE = {"upgrade": PROTOCOL, "connection": "Upgrade"}
LOG = f"{PODS}/web/log"


@in_tunnel_hub
async def test_nobody_but_the_edge_dials_its_tunnel(at: TunnelHub) -> None:
    edge = await (await at.hub.edge()).join()
    other = await (await at.hub.edge("guilder")).join()
    path = f"/clusters/{edge.mailbox}{TUNNEL_PATH}"
    for user, code in (("kcp-admin", 403), ("shard-admin", 403), ("alice", 403), ("", 403)):
        reply = await at.hub.ask(user, "GET", path, **UPGRADE)
        assert reply.status == code, (user, reply.body)
    reply = await other.ask("GET", TUNNEL_PATH, None, f"/clusters/{edge.mailbox}", **UPGRADE)
    assert reply.status == 403
    reply = await edge.ask("GET", TUNNEL_PATH)
    assert (reply.status, reply.body["message"]) == (
        400,
        "Upgrade request required: want Upgrade: skerry-tunnel.v1",
    )


@in_edge_hub
async def test_a_hub_without_the_flag_takes_no_tunnel(hub: EdgeHub) -> None:
    edge = await (await hub.edge()).join()
    assert (await edge.ask("GET", TUNNEL_PATH, **UPGRADE)).status == 404
    path = f"/clusters/{IMW}/extensions/v1/edges/florin{LOG}"
    assert (await hub.ask("kcp-admin", "GET", path)).status == 404


async def test_a_hub_takes_no_tunnels_without_an_audit_log(tmp_path: object) -> None:
    settings = ServerSettings(
        data_dir=tmp_path,  # type: ignore[arg-type]
        port=0,
        store=StoreSettings(kind="memory"),
        workers=0,
        tunnel=True,
    )
    with pytest.raises(StartError, match="--tunnel needs --audit-log"):
        async with serving(settings, hub_flavor()):
            pass


@in_tunnel_hub
async def test_an_edge_that_dials_anew_has_the_newer_tunnel(at: TunnelHub) -> None:
    edge = await (await at.hub.edge()).join()
    first = await at.dial(edge)
    going = at.going(await at.ask("kcp-admin", IMW, "florin", LOG, "follow=true"))
    await going.text()
    second = await at.dial(edge)
    await asyncio.wait_for(first.running, 20)
    assert "the edge has dialled anew" in str(await going.ended())
    assert "hello" in await at.text("kcp-admin", IMW, "florin", LOG)
    assert (len(first.opened), len(second.opened)) == (1, 1)


@in_tunnel_hub
async def test_an_edge_that_breaks_the_protocol_loses_its_tunnel_alone(at: TunnelHub) -> None:
    florin = await at.dial(await (await at.hub.edge()).join())
    await at.dial(await (await at.hub.edge("guilder")).join())
    florin.line.write(frame(DATA, 7, b"nobody asked"))
    await asyncio.wait_for(florin.running, 20)
    _, text = await at.refusal("kcp-admin", IMW, "florin", LOG)
    assert text.endswith("the edge broke the protocol: stream 7: was never opened")
    assert "hello" in await at.text("kcp-admin", IMW, "guilder", LOG)
