"""Extenders filter, score, object to victims and bind, and may fail without taking us along."""

from __future__ import annotations

import base64
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest

from skerry.kit.clock import SystemClock
from skerry.runtime.transport import Answer, AnswerStream, TransportError
from skerry.scheduler.config.errors import ConfigurationError
from skerry.scheduler.config.load import ExtenderSpec, default_configuration
from skerry.scheduler.event_handlers import EventHandlers
from skerry.scheduler.extender import HttpExtender, _tls
from skerry.scheduler.framework.handle import ExtenderError
from skerry.scheduler.outcome import Placed, Refused
from skerry.scheduler.registry import in_tree_registry
from skerry.scheduler.scheduler import Parts, PodScheduler
from skerry.server.security.pki import new_ca
from tests.kit.scheduler.fixtures import Bench, node, pod

Reply = Callable[[str, Any], Any]


class Wire:
    """A server of extenders in a function: path and body to an answer."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self.asked: list[tuple[str, Any]] = []

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> Answer:
        decoded = orjson.loads(body)
        self.asked.append((path, decoded))
        answer = self._reply(path, decoded)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Answer):
            return answer
        return Answer(200, {}, orjson.dumps(answer))

    @asynccontextmanager
    async def stream(self, *_: Any, **__: Any) -> AsyncIterator[AnswerStream]:
        raise TransportError("no streams here")
        yield

    async def close(self) -> None:
        return


def extender(reply: Reply, **fields: Any) -> tuple[HttpExtender, Wire]:
    wire = Wire(reply)
    spec = ExtenderSpec("http://extender.example/api", **fields)
    return HttpExtender(spec, wire), wire


class Desk:
    def __init__(self, *extenders: HttpExtender) -> None:
        self.bench = Bench()
        parts = Parts(extenders=extenders, ties="first")
        self.scheduler = PodScheduler(default_configuration(), in_tree_registry(), parts)
        self.event_handlers = EventHandlers(self.scheduler)
        for name in ("a", "b", "c"):
            self.event_handlers.node(None, node(name))

    async def attempt(self, item: dict[str, Any] | None = None) -> Placed | Refused:
        self.event_handlers.pod(None, item or pod("p"))
        queued = self.scheduler.queue.pop()
        assert queued is not None
        outcome = await self.scheduler.attempt_with_extenders(queued)
        assert outcome is not None
        return outcome


async def test_a_filter_narrows_the_choice() -> None:
    # Answers' keys may be in any case, as Go reads them.
    found, wire = extender(
        lambda *_: {"NodeNames": ["b"], "FailedNodes": {"a": "busy", "c": "busy"}},
        filter_verb="filter",
        node_cache_capable=True,
    )
    outcome = await Desk(found).attempt()
    assert isinstance(outcome, Placed)
    assert outcome.node == "b"
    path, body = wire.asked[0]
    assert path == "/api/filter"
    assert body["NodeNames"] == ["a", "b", "c"]
    assert body["Pod"]["metadata"]["name"] == "p"


async def test_an_extender_without_a_cache_gets_and_returns_whole_nodes() -> None:
    found, wire = extender(
        lambda _, body: {"nodes": {"items": body["Nodes"]["items"][2:]}}, filter_verb="filter"
    )
    outcome = await Desk(found).attempt()
    assert isinstance(outcome, Placed)
    assert outcome.node == "c"
    assert wire.asked[0][1]["NodeNames"] is None


async def test_refusing_everything_is_reported_and_blamed_on_the_extender() -> None:
    found, _ = extender(
        lambda *_: {
            "nodenames": [],
            "failedNodes": {"a": "busy", "b": "busy"},
            "failedAndUnresolvableNodes": {"c": "never"},
        },
        filter_verb="filter",
        node_cache_capable=True,
    )
    desk = Desk(found)
    outcome = await desk.attempt()
    assert isinstance(outcome, Refused)
    assert outcome.diagnosis is not None
    assert outcome.diagnosis.message() == "0/3 nodes are available: 1 never, 2 busy."
    assert outcome.diagnosis.rejectors == {"Extender"}
    await desk.scheduler.refuse(outcome)
    assert desk.scheduler.queue.where("p") == "unschedulable"
    desk.event_handlers.node(None, node("d"))
    assert desk.scheduler.queue.where("p") == "backoff"


async def test_points_decide_between_nodes() -> None:
    found, _ = extender(
        lambda *_: [{"Host": "c", "Score": 10}, {"host": "a", "score": 1}],
        prioritize_verb="prioritize",
        weight=5,
        node_cache_capable=True,
    )
    outcome = await Desk(found).attempt()
    assert isinstance(outcome, Placed)
    assert outcome.node == "c"


@pytest.mark.parametrize(
    "answer",
    [
        TransportError("connection refused"),
        Answer(500, {}, b"boom"),
        Answer(200, {}, b"not json"),
        ["not", "an", "object"],
        {"error": "out of order"},
        {"nodenames": ["stranger"]},
    ],
    ids=["unreachable", "status", "garbage", "shape", "error", "unknown node"],
)
async def test_a_failing_filter_fails_the_attempt_unless_it_may_be_ignored(answer: Any) -> None:
    strict, _ = extender(lambda *_: answer, filter_verb="filter", node_cache_capable=True)
    outcome = await Desk(strict).attempt()
    assert isinstance(outcome, Refused)
    assert not outcome.status.rejected
    lenient, _ = extender(
        lambda *_: answer, filter_verb="filter", node_cache_capable=True, ignorable=True
    )
    assert isinstance(await Desk(lenient).attempt(), Placed)


async def test_a_failing_prioritizer_gives_no_points() -> None:
    found, _ = extender(lambda *_: TransportError("gone"), prioritize_verb="prioritize", weight=1)
    assert isinstance(await Desk(found).attempt(), Placed)


async def test_only_pods_with_managed_resources_are_its_business() -> None:
    found, wire = extender(
        lambda *_: {"nodenames": []},
        filter_verb="filter",
        node_cache_capable=True,
        managed_resources={"example.com/foo": False},
    )
    assert isinstance(await Desk(found).attempt(), Placed)
    assert wire.asked == []
    limited = pod("q")
    limited["spec"]["containers"][0]["resources"]["limits"] = {"example.com/foo": "1"}
    assert isinstance(await Desk(found).attempt(limited), Refused)


async def test_an_extender_may_bind() -> None:
    found, wire = extender(lambda *_: {}, bind_verb="bind")
    desk = Desk(found)
    outcome = await desk.attempt()
    assert isinstance(outcome, Placed)
    await desk.scheduler.bind(outcome)
    assert wire.asked == [
        ("/api/bind", {"PodName": "p", "PodNamespace": "default", "PodUID": "p", "Node": "a"})
    ]


async def test_an_extender_may_spare_victims_but_not_invent_them() -> None:
    reader = Bench().cluster.reader
    victims = {"a": ([reader.read(pod("v"))], 0), "b": ([reader.read(pod("w"))], 1)}
    spares, wire = extender(
        lambda *_: {
            "NodeNameToMetaVictims": {"b": {"Pods": [{"UID": "w"}], "NumPDBViolations": 1}}
        },
        preempt_verb="preempt",
        node_cache_capable=True,
    )
    answer = await spares.process_preemption(reader.read(pod("p")), victims)
    assert {name: [p.name for p in pods] for name, (pods, _) in answer.items()} == {"b": ["w"]}
    assert wire.asked[0][1]["NodeNameToMetaVictims"]["a"]["Pods"] == [{"UID": "v"}]
    invents, _ = extender(
        lambda *_: {"nodeNameToMetaVictims": {"a": {"pods": [{"uid": "stranger"}]}}},
        preempt_verb="preempt",
    )
    with pytest.raises(ExtenderError, match="the pod is not found on that node"):
        await invents.process_preemption(reader.read(pod("p")), victims)


async def test_preemption_asks_extenders_before_evicting() -> None:
    found, wire = extender(
        lambda *_: {"nodeNameToMetaVictims": {"b": {"pods": [{"uid": "low-b"}]}}},
        preempt_verb="preempt",
        node_cache_capable=True,
    )
    desk = Desk(found)
    for name in ("a", "b", "c"):
        desk.event_handlers.pod(None, pod(f"low-{name}", requests={"cpu": "4"}, nodeName=name))
    outcome = await desk.attempt(pod("p", requests={"cpu": "4"}, priority=10))
    assert isinstance(outcome, Refused)
    await desk.scheduler.refuse(outcome)
    assert desk.scheduler.nominations.node_of("p") == "b"
    assert len(wire.asked) == 1


async def test_without_hints_any_registered_event_is_worth_an_attempt() -> None:
    """A node too small for the pod requeues it only when nobody is asked whether it helps."""
    for hints, where in ((True, "unschedulable"), (False, "backoff")):
        parts = Parts(queueing_hints=hints)
        scheduler = PodScheduler(default_configuration(), in_tree_registry(), parts)
        event_handlers = EventHandlers(scheduler)
        event_handlers.node(None, node("a"))
        event_handlers.pod(None, pod("p", requests={"cpu": "8"}))
        queued = scheduler.queue.pop()
        assert queued is not None
        outcome = scheduler.attempt(queued)
        assert isinstance(outcome, Refused)
        await scheduler.refuse(outcome)
        event_handlers.node(None, node("b"))
        assert scheduler.queue.where("p") == where


@pytest.mark.parametrize(
    ("tls", "words"),
    [
        ({"caFile": "/nonexistent/ca.pem"}, "No such file or directory"),
        ({"caData": "!"}, "Only base64 data is allowed"),
        ({"caData": "bm9uc2Vuc2U="}, "tlsConfig"),
    ],
)
def test_an_extender_that_cannot_be_trusted_is_a_bad_configuration(
    tls: dict[str, str], words: str
) -> None:
    spec = ExtenderSpec("https://extender.example/api", tls=tls)
    with pytest.raises(
        ConfigurationError, match=f"extender https://extender.example/api: .*{words}"
    ):
        HttpExtender(spec)


def test_https_without_a_ca_only_encrypts() -> None:
    """As in kube-scheduler; with a CA the certificate must be right."""
    spec = ExtenderSpec("http://extender.example/api", enable_https=True)
    assert _tls(spec).verify_mode is ssl.CERT_NONE
    clock = SystemClock()
    ca = base64.b64encode(new_ca("somebody", clock).certificate).decode()
    trusted = _tls(ExtenderSpec("https://extender.example/api", tls={"caData": ca}))
    assert trusted.verify_mode is ssl.CERT_REQUIRED
