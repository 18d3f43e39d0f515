"""Logs of pods at edges and commands in them, asked for in the console as whoever looks."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest
from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage
from wsproto.utilities import generate_accept_token

from skerry.api.errors import ApiError, Forbidden
from skerry.app.console_pods import MAX_BYTES, MAX_LINES, ConsolePods
from skerry.app.console_questions import Viewer
from skerry.app.core_controllers import embedded_transport
from skerry.kit.ids import SeededIds
from skerry.logic.fleet.console.frames import Typed
from skerry.logic.machinery.edges.tunnel import answer_of, read_opening
from skerry.runtime.embedded import EmbeddedTransport
from skerry.server.http.message import Answer, Request
from skerry.server.user import User
from skerry.web.feed import Feed
from skerry.web.terminal import TabTerminal
from skerry.wire.tunnel import TunnelStream
from tests.kit.server.edges import IMW
from tests.kit.server.hub import BINDERS
from tests.kit.server.tunnels import PODS, TunnelHub, in_tunnel_hub

OPERATOR = User("kcp-admin", groups=("system:masters", "system:authenticated"))
BOB = User("bob", groups=("system:authenticated",))
ASKED = {"ws": IMW, "edge": "florin", "namespace": "shop", "pod": "web"}


def logs(at: TunnelHub) -> ConsolePods:
    api = at.hub.running.api
    viewer = Viewer(lambda user: embedded_transport(api, user), Feed())
    return ConsolePods(viewer, lambda: True, SeededIds(1))


@in_tunnel_hub
async def test_the_last_lines_are_read_by_who_may_and_that_is_recorded(at: TunnelHub) -> None:
    dialled = await at.dial(await (await at.hub.edge()).join())
    with pytest.raises(Forbidden):
        await logs(at).log(BOB, ASKED)
    assert not dialled.opened
    found = await logs(at).log(OPERATOR, ASKED)
    assert found == {"pod": "web", "text": f"hello from {PODS}/web/log\n"}
    assert f"tailLines={MAX_LINES}".encode() in dialled.opened[0].opening
    assert {event["user"]["username"] for event in at.audited()} == {"bob", "kcp-admin"}


@in_tunnel_hub
async def test_a_log_without_end_is_cut_and_shown_as_text(at: TunnelHub) -> None:
    async def endless(stream: TunnelStream) -> None:
        stream.answer(answer_of(200, {"content-type": "text/plain"}))
        while True:
            await stream.write(b"\xff<b>" * 4096)

    await at.dial(await (await at.hub.edge()).join(), endless)
    text = (await logs(at).log(OPERATOR, ASKED))["text"]
    assert len(text) == MAX_BYTES
    assert text.startswith("\ufffd<b>")


@in_tunnel_hub
async def test_without_a_tunnel_the_answer_says_what_to_start(at: TunnelHub) -> None:
    await (await at.hub.edge()).join()
    with pytest.raises(ApiError, match="skerry syncer --tunnel does"):
        await logs(at).log(OPERATOR, ASKED)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"pod": ""}, "pod: want a text"),
        ({"edge": "x" * 513}, "edge: want at most 512 characters"),
        ({"namespace": 3}, "namespace: found int"),
        ({"ws": "../x"}, "want the path of a workspace"),
        ({}, "this hub takes no tunnels: start it with --tunnel"),
    ],
)
async def test_a_question_that_names_nothing_is_refused_in_a_sentence(
    change: dict[str, Any], sentence: str
) -> None:
    nowhere = EmbeddedTransport(_nobody, Request)
    asked = ConsolePods(Viewer(lambda _: nowhere, Feed()), lambda: False, SeededIds(1))
    with pytest.raises(ApiError, match=sentence):
        await asked.log(OPERATOR, {**ASKED, **change})


@dataclass
class Screen:
    """A page's terminal, and what was sent of it."""

    sent: asyncio.Queue[Mapping[str, Any]] = field(default_factory=asyncio.Queue)

    def __post_init__(self) -> None:
        self.terminal = TabTerminal(1, (111, 33), self.sent.put_nowait, lambda: None)

    async def next(self, member: str) -> Any:
        while member not in (frame := await asyncio.wait_for(self.sent.get(), 20)):
            pass
        return frame[member]


async def shell(stream: TunnelStream) -> None:
    """Answer as a cluster whose command says its size, repeats what is typed, and exits with 3."""
    opening, _ = read_opening(stream.opening)
    key = opening.headers["sec-websocket-key"].encode()
    accepted = {"sec-websocket-accept": generate_accept_token(key).decode()}
    chosen = {"upgrade": "websocket", "sec-websocket-protocol": "v5.channel.k8s.io"}
    stream.answer(answer_of(101, accepted | chosen))
    framing = Connection(ConnectionType.SERVER)

    async def say(channel: int, text: bytes) -> None:
        await stream.write(framing.send(BytesMessage(bytes([channel]) + text)))

    while piece := await stream.read():
        framing.receive_data(piece)
        for event in framing.events():
            if not isinstance(event, BytesMessage):
                continue
            channel, text = event.data[0], bytes(event.data[1:])
            if text == b"\x04":
                causes = [{"reason": "ExitCode", "message": "3"}]
                ended = {"status": "Failure", "details": {"causes": causes}}
                await say(3, orjson.dumps(ended))
            elif channel in (0, 4):
                await say(1, text)


RUN = {**ASKED, "command": ["sh", "-c", "a b"], "container": "main"}


@in_tunnel_hub
async def test_a_command_has_its_terminal_and_its_exit_code_and_is_recorded(at: TunnelHub) -> None:
    dialled = await at.dial(await (await at.hub.edge()).join(), shell)
    screen = Screen()
    running = at.begin(logs(at).exec(OPERATOR, RUN, screen.terminal))
    assert await screen.next("running") == {"pod": "web"}
    assert b64decode(await screen.next("out")) == b'{"Width": 111, "Height": 33}'
    screen.terminal.hear(Typed(1, b"ls\r"))
    assert b64decode(await screen.next("out")) == b"ls\r"
    screen.terminal.hear(Typed(1, b"\x04"))
    assert await asyncio.wait_for(running, 20) == 3
    opening, _ = read_opening(dialled.opened[0].opening)
    wanted = "command=sh&command=-c&command=a+b&container=main&stdin=true&stdout=true&tty=true"
    assert opening.query == wanted
    begun, ended = at.audited()
    assert begun["annotations"]["edge.kcp.io/tunnel-command"] == '["sh","-c","a b"]'
    assert (begun["user"]["username"], ended["user"]["username"]) == ("kcp-admin", "kcp-admin")
    assert int(ended["annotations"]["edge.kcp.io/tunnel-sent-bytes"]) > 0


@in_tunnel_hub
async def test_who_leaves_ends_the_command_at_the_edge(at: TunnelHub) -> None:
    dialled = await at.dial(await (await at.hub.edge()).join(), shell)
    screen = Screen()
    running = at.begin(logs(at).exec(OPERATOR, RUN, screen.terminal))
    await screen.next("out")
    over = asyncio.Event()
    dialled.opened[0].over = over.set
    running.cancel()
    await asyncio.wait_for(over.wait(), 20)


@in_tunnel_hub
async def test_a_command_needs_its_own_right_and_ends_when_that_is_taken_away(
    at: TunnelHub,
) -> None:
    await at.dial(await (await at.hub.edge()).join(), shell)
    with pytest.raises(Forbidden, match='cannot create resource "edges/exec"'):
        await logs(at).exec(BOB, RUN, Screen().terminal)
    await at.grant(IMW, "bob", resources=["edges/exec"])
    screen = Screen()
    running = at.begin(_refusal(logs(at).exec(BOB, RUN, screen.terminal)))
    await screen.next("running")
    await at.hub.ask("kcp-admin", "DELETE", f"/clusters/{IMW}{BINDERS}/at-edges-bob")
    assert "edges/pods" in await asyncio.wait_for(running, 20)


@in_tunnel_hub
async def test_pods_are_listed_with_what_can_be_chosen_of_them(at: TunnelHub) -> None:
    container = {"name": "main", "ports": [{"containerPort": 80}, {"containerPort": "x"}]}
    items = [{"metadata": {"name": "web"}, "spec": {"containers": [container]}}]

    async def listing(stream: TunnelStream) -> None:
        stream.answer(answer_of(200, {"content-type": "application/json"}))
        await stream.write(orjson.dumps({"items": items}))
        stream.end()

    await at.dial(await (await at.hub.edge()).join(), listing)
    found = {"name": "web", "containers": ["main"], "ports": [80]}
    asked = logs(at)
    assert await asked.pods(OPERATOR, ASKED) == {"pods": [found], "chosen": "web"}
    other = {**ASKED, "pod": "deployment/web"}
    assert await asked.pods(OPERATOR, other) == {"pods": [found], "chosen": ""}


@pytest.mark.parametrize("command", [None, "sh", [], [""], [1], ["x"] * 65, ["x" * 5000]])
async def test_a_command_that_is_none_is_refused(command: Any) -> None:
    nowhere = EmbeddedTransport(_nobody, Request)
    asked = ConsolePods(Viewer(lambda _: nowhere, Feed()), lambda: True, SeededIds(1))
    with pytest.raises(ApiError, match="command: want"):
        await asked.exec(OPERATOR, {**ASKED, "command": command}, Screen().terminal)


async def _refusal(running: Awaitable[int]) -> str:
    try:
        return f"exit code {await running}"
    except ApiError as error:
        return str(error)


async def _nobody(request: Request) -> Answer:
    raise AssertionError(f"{request.path} was asked for")
