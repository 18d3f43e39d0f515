"""Logs of pods at edges, asked for in the console as whoever looks."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.errors import ApiError, Forbidden
from skerry.app.console_pods import MAX_BYTES, MAX_LINES, ConsolePods
from skerry.app.console_questions import Viewer
from skerry.app.core_controllers import embedded_transport
from skerry.kit.ids import SeededIds
from skerry.logic.machinery.edges.tunnel import answer_of
from skerry.runtime.embedded import EmbeddedTransport
from skerry.server.http.message import Answer, Request
from skerry.server.user import User
from skerry.web.feed import Feed
from skerry.wire.tunnel import TunnelStream
from tests.kit.server.edges import IMW
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


async def _nobody(request: Request) -> Answer:
    raise AssertionError(f"{request.path} was asked for")
