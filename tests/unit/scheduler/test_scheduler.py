"""Attempts from the queue to the binding, and everything that can go wrong on the way."""

from __future__ import annotations

import asyncio
import random
from functools import partial
from typing import Any

import pytest

from skerry.api.errors import Conflict, InternalError
from skerry.api.objects import Object
from skerry.kit.clock import LoopClock
from skerry.kit.ids import SeededIds
from skerry.scheduler.cache.pod import PodInfo
from skerry.scheduler.config.errors import ConfigurationError
from skerry.scheduler.config.load import complete, default_configuration
from skerry.scheduler.event_handlers import EventHandlers
from skerry.scheduler.framework.registry import Registry
from skerry.scheduler.framework.status import Code, Status, unschedulable
from skerry.scheduler.outcome import Placed, Refused, pod_status_change
from skerry.scheduler.registry import in_tree_registry
from skerry.scheduler.scheduler import Parts, PodScheduler
from tests.kit.scheduler.fixtures import node, pod


class Server:
    """Agrees to everything unless configured otherwise, and remembers."""

    def __init__(self) -> None:
        self.bindings: dict[str, str] = {}
        self.statuses: dict[str, Any] = {}
        self.deleted: list[str] = []
        self.events: list[tuple[str, str]] = []
        self.refuse: Exception | None = None

    async def bind(self, pod: PodInfo, node: str) -> None:
        if self.refuse is not None:
            raise self.refuse
        assert pod.uid not in self.bindings, "bound twice"
        self.bindings[pod.uid] = node

    async def delete_pod(self, pod: PodInfo) -> None:
        self.deleted.append(pod.name)

    async def patch_pod_status(self, pod: PodInfo, status: Any) -> None:
        self.statuses[pod.name] = status

    async def update(self, kind: str, obj: Object) -> Object:
        return obj

    def event(self, pod: Object, type_: str, reason: str, action: str, note: str) -> None:
        self.events.append((reason, note))


class Desk:
    """A scheduler, its event_handlers and a server."""

    def __init__(self, *plugins: Any, **configuration: Any) -> None:
        self.server = Server()
        registry = in_tree_registry()
        registry.merge(Registry({plugin.name: plugin for plugin in plugins}))
        config = default_configuration()
        if plugins or configuration:
            enabled = {"multiPoint": {"enabled": [{"name": p.name} for p in plugins]}}
            config = complete({"profiles": [{"plugins": enabled}], **configuration})
        parts = Parts(self.server, self.server, LoopClock(), SeededIds(1), ties="first")
        self.scheduler = PodScheduler(config, registry, parts)
        self.event_handlers = EventHandlers(self.scheduler)

    async def run(self) -> None:
        """Attempt everything that is active, bindings included."""
        async with asyncio.TaskGroup() as tasks:
            while (queued := self.scheduler.queue.pop()) is not None:
                await self.scheduler.step(queued, partial(_spawn, tasks))

    def where(self, name: str) -> str:
        return self.scheduler.queue.where(name)


def _spawn(tasks: asyncio.TaskGroup, work: Any) -> None:
    tasks.create_task(_all(work))


async def _all(work: Any) -> None:
    await work


async def test_a_pod_is_bound_and_people_are_notified() -> None:
    desk = Desk()
    desk.event_handlers.node(None, node("a"))
    desk.event_handlers.pod(None, pod("p"))
    await desk.run()
    assert desk.server.bindings == {"p": "a"}
    assert desk.server.events == [("Scheduled", "Successfully assigned default/p to a")]
    assert desk.scheduler.cluster.is_assumed("p")
    assert desk.scheduler.metrics.attempts.value(("scheduled", "default-scheduler")) == 1


async def test_a_tenth_of_the_calls_to_plugins_are_timed() -> None:
    desk = Desk()
    desk.event_handlers.node(None, node("a"))
    for index in range(20):
        desk.event_handlers.pod(None, pod(f"p{index}"))
    await desk.run()
    metrics = desk.scheduler.metrics
    timed = sum(
        metrics.plugin_duration.count(labels) for labels in metrics.plugin_duration.series()
    )
    assert timed > 0
    points = {labels[0] for labels in metrics.point_duration.series()}
    assert {"PreFilter", "Filter", "Reserve", "Bind"} <= points


async def test_the_servers_word_confirms_the_assumption() -> None:
    desk = Desk()
    desk.event_handlers.node(None, node("a"))
    desk.event_handlers.pod(None, pod("p"))
    await desk.run()
    desk.event_handlers.pod(pod("p"), pod("p", nodeName="a"))
    assert not desk.scheduler.cluster.is_assumed("p")
    assert desk.scheduler.cluster.counts == {"nodes": 1, "pods": 1, "assumed_pods": 0}
    desk.event_handlers.pod(pod("p", nodeName="a"), None)
    assert desk.scheduler.cluster.counts["pods"] == 0


async def test_a_pod_that_fits_nowhere_waits_and_its_condition_says_why() -> None:
    desk = Desk()
    desk.event_handlers.node(None, node("a", allocatable={"cpu": "0"}))
    desk.event_handlers.pod(None, pod("p"))
    await desk.run()
    assert desk.where("p") == "unschedulable"
    text = (
        "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: "
        "1 No preemption victims found for incoming pod."
    )
    assert desk.server.events == [("FailedScheduling", text)]
    condition = desk.server.statuses["p"]["conditions"][0]
    assert (condition["reason"], condition["message"]) == ("Unschedulable", text)


async def test_a_better_node_requeues_it() -> None:
    desk = Desk()
    desk.event_handlers.node(None, node("a", allocatable={"cpu": "0"}))
    desk.event_handlers.pod(None, pod("p"))
    await desk.run()
    desk.event_handlers.node(None, node("small", allocatable={"cpu": "10m"}))
    assert desk.where("p") == "unschedulable"
    desk.event_handlers.node(None, node("b"))
    assert desk.where("p") == "backoff"


async def test_pods_of_other_schedulers_are_ignored() -> None:
    desk = Desk()
    desk.event_handlers.node(None, node("a"))
    desk.event_handlers.pod(None, pod("p", schedulerName="another"))
    await desk.run()
    assert desk.server.bindings == {}
    assert desk.where("p") == ""


@pytest.mark.parametrize("problem", [InternalError("broken"), Conflict("too late")])
async def test_a_failed_binding_is_undone_and_retried(problem: Exception) -> None:
    desk = Desk()
    desk.event_handlers.node(None, node("a", allocatable={"cpu": "100m"}))
    desk.event_handlers.pod(None, pod("p"))
    desk.server.refuse = problem
    await desk.run()
    assert desk.scheduler.cluster.counts["pods"] == 0
    assert desk.where("p") == "backoff"
    assert desk.server.statuses["p"]["conditions"][0]["reason"] == "SchedulerError"
    desk.server.refuse = None
    queue = desk.scheduler.queue
    queue.activate([queue.pods()[0]])
    await desk.run()
    assert desk.server.bindings == {"p": "a"}


async def test_a_pod_bound_by_another_meanwhile_is_not_retried() -> None:
    desk = Desk()
    desk.event_handlers.node(None, node("a"))
    desk.event_handlers.pod(None, pod("p"))
    desk.server.refuse = Conflict("bound already")
    queued = desk.scheduler.queue.pop()
    assert queued is not None
    outcome = desk.scheduler.attempt(queued)
    assert isinstance(outcome, Placed)
    desk.scheduler.cluster.forget("p")
    desk.event_handlers.pod(pod("p"), pod("p", nodeName="a"))
    await desk.scheduler.bind(outcome)
    assert desk.where("p") == ""
    assert desk.scheduler.cluster.counts["pods"] == 1


async def test_a_deleted_pod_is_skipped() -> None:
    desk = Desk()
    desk.event_handlers.node(None, node("a"))
    item = pod("p")
    item["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    desk.event_handlers.pod(None, item)
    await desk.run()
    assert desk.server.bindings == {}
    assert desk.server.events == [("FailedScheduling", "skip schedule deleting pod: default/p")]


class Reserver:
    name = "Reserver"
    log: list[str]

    def __init__(self, args: Any, handle: Any) -> None:
        Reserver.log = []

    def reserve(self, state: Any, item: Any, target: str) -> Status | None:
        self.log.append("reserve")
        return None

    def unreserve(self, state: Any, item: Any, target: str) -> None:
        self.log.append("unreserve")

    async def pre_bind(self, state: Any, item: Any, target: str) -> Status | None:
        return unschedulable("not after all")


async def test_a_refusal_before_binding_gives_back_what_was_reserved() -> None:
    desk = Desk(Reserver)
    desk.event_handlers.node(None, node("a"))
    desk.event_handlers.pod(None, pod("p"))
    await desk.run()
    assert Reserver.log == ["reserve", "unreserve"]
    assert desk.scheduler.cluster.counts["pods"] == 0
    assert desk.where("p") == "unschedulable"
    assert desk.server.events == [("FailedScheduling", "0/1 nodes are available: 1 not after all.")]


class Holder:
    name = "Holder"

    def __init__(self, args: Any, handle: Any) -> None:
        pass

    def permit(self, state: Any, item: Any, target: str) -> tuple[Status | None, float]:
        return Status(Code.WAIT), 5.0


@pytest.mark.looptime
async def test_a_held_pod_is_bound_once_allowed() -> None:
    desk = Desk(Holder)
    desk.event_handlers.node(None, node("a"))
    desk.event_handlers.pod(None, pod("p"))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(desk.run())
        await asyncio.sleep(0.01)
        held = desk.scheduler.waiting.get("p")
        assert held is not None
        assert held.pending == ["Holder"]
        held.allow("Holder")
    assert desk.server.bindings == {"p": "a"}


@pytest.mark.looptime
async def test_a_held_pod_is_turned_down_when_time_is_up() -> None:
    desk = Desk(Holder)
    desk.event_handlers.node(None, node("a"))
    desk.event_handlers.pod(None, pod("p"))
    await desk.run()
    assert desk.server.bindings == {}
    assert desk.where("p") == "unschedulable"
    assert "rejected due to timeout after waiting 5s at plugin Holder" in desk.server.events[0][1]


@pytest.mark.looptime
async def test_a_held_pod_that_is_deleted_is_let_go() -> None:
    desk = Desk(Holder)
    desk.event_handlers.node(None, node("a"))
    desk.event_handlers.pod(None, pod("p"))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(desk.run())
        await asyncio.sleep(0.01)
        desk.event_handlers.pod(pod("p"), None)
    assert desk.server.bindings == {}
    assert desk.scheduler.cluster.counts["pods"] == 0
    assert desk.where("p") == ""


async def test_preemption_nominates_and_the_pod_gets_its_room() -> None:
    desk = Desk()
    desk.event_handlers.node(None, node("a", allocatable={"cpu": "1"}))
    desk.event_handlers.pod(None, pod("old", requests={"cpu": "1"}, nodeName="a"))
    desk.event_handlers.pod(None, pod("new", requests={"cpu": "1"}, priority=5))
    await desk.run()
    assert desk.server.deleted == ["old"]
    assert desk.server.statuses["new"]["nominatedNodeName"] == "a"
    assert desk.scheduler.nominations.node_of("new") == "a"
    desk.event_handlers.pod(None, pod("thief", requests={"cpu": "1"}))
    desk.event_handlers.pod(pod("old", nodeName="a"), None)
    await desk.run()
    assert desk.server.bindings == {}
    queue = desk.scheduler.queue
    queue.activate([p for p in queue.pods() if p.name == "new"])
    await desk.run()
    assert desk.server.bindings == {"new": "a"}
    assert desk.scheduler.nominations.node_of("new") == ""


async def test_an_attempt_that_raises_is_an_error_and_the_next_goes_on() -> None:
    class Raises:
        name = "Raises"

        def __init__(self, args: Any, handle: Any) -> None:
            pass

        def pre_filter(self, state: Any, item: Any) -> Any:
            if item.name == "bad":
                raise KeyError("bug")
            return None, None

    desk = Desk(Raises)
    desk.event_handlers.node(None, node("a"))
    desk.event_handlers.pod(None, pod("bad"))
    desk.event_handlers.pod(None, pod("good"))
    await desk.run()
    assert desk.server.bindings == {"good": "a"}
    assert desk.server.statuses["bad"]["conditions"][0]["reason"] == "SchedulerError"


def test_an_unknown_plugin_is_refused_in_kube_schedulers_words() -> None:
    plugins = {"score": {"enabled": [{"name": "Nope"}]}}
    config = complete({"profiles": [{"schedulerName": "a", "plugins": plugins}]})
    with pytest.raises(ConfigurationError) as caught:
        PodScheduler(config, in_tree_registry())
    assert str(caught.value) == (
        "initializing profiles: creating profile for scheduler name a: "
        'ScorePlugin "Nope" does not exist'
    )


async def test_reconfiguring_keeps_pods_and_refuses_nonsense() -> None:
    desk = Desk()
    desk.event_handlers.node(None, node("a"))
    desk.event_handlers.pod(None, pod("p"))
    bad = {"score": {"enabled": [{"name": "Nope"}]}}
    registry = in_tree_registry()
    with pytest.raises(ConfigurationError):
        desk.scheduler.reconfigure(complete({"profiles": [{"plugins": bad}]}), registry)
    without = {"multiPoint": {"disabled": [{"name": "ImageLocality"}]}}
    desk.scheduler.reconfigure(complete({"profiles": [{"plugins": without}]}), registry)
    names = [p.name for p in desk.scheduler.profiles["default-scheduler"].framework.score]
    assert "ImageLocality" not in names
    await desk.run()
    assert desk.server.bindings == {"p": "a"}


class Churn:
    """Nodes and pods come and go, bindings fail at random, the server's word arrives late."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.desk = Desk()
        self.nodes: dict[str, Object] = {}
        self.pods: dict[str, Object] = {}
        self.reported: set[str] = set()
        self.made = 0
        for index in range(4):
            self._add_node(f"n{index}")

    async def step(self) -> None:
        choices = [self.pod, self.pod, self.pod, self.delete, self.node, self.report]
        action = self.dice.choice([*choices, self.run, self.fail])
        result = action()
        if result is not None:
            await result

    def pod(self) -> None:
        name = f"p{self.made}"
        self.made += 1
        cpu = self.dice.choice(["100m", "300m", "600m"])
        self.pods[name] = pod(name, requests={"cpu": cpu})
        self.desk.event_handlers.pod(None, self.pods[name])

    def delete(self) -> None:
        if self.pods:
            name = self.dice.choice(sorted(self.pods))
            last, home = self.pods.pop(name), self.desk.server.bindings.get(name)
            self.desk.event_handlers.pod(last if home is None else _on(last, home), None)

    def node(self) -> None:
        name = f"n{self.dice.randrange(4)}"
        homes = {self.desk.server.bindings.get(pod) for pod in self.pods}
        if name in self.nodes and len(self.nodes) > 1 and name not in homes:
            self.desk.event_handlers.node(self.nodes.pop(name), None)
        else:
            self._add_node(name)

    def _add_node(self, name: str) -> None:
        self.nodes[name] = node(name, allocatable={"cpu": "1", "pods": "5"})
        self.desk.event_handlers.node(None, self.nodes[name])

    def report(self) -> None:
        for name, home in self.desk.server.bindings.items():
            if name in self.pods and name not in self.reported:
                self.desk.event_handlers.pod(self.pods[name], _on(self.pods[name], home))
                self.reported.add(name)

    async def run(self) -> None:
        await self.desk.run()

    async def fail(self) -> None:
        self.desk.server.refuse = InternalError("chance")
        await self.desk.run()
        self.desk.server.refuse = None


@pytest.mark.parametrize("seed", range(8))
async def test_churn_never_overbooks_loses_or_doubles(seed: int) -> None:
    churn = Churn(seed)
    desk = churn.desk
    for _ in range(150):
        await churn.step()
        _check(desk)
    desk.scheduler.queue.activate(desk.scheduler.queue.pods())
    await desk.run()
    _check(desk)
    waiting = {p.name for p in desk.scheduler.queue.pods()}
    for name in churn.pods:
        assert (name in waiting) != (name in desk.server.bindings)
    placed = {item.name for item in desk.scheduler.cluster.pods()}
    assert placed == {name for name in churn.pods if name in desk.server.bindings}


def _on(item: Object, home: str) -> Object:
    return {**item, "spec": {**item["spec"], "nodeName": home}}


def _check(desk: Desk) -> None:
    for info in desk.scheduler.cluster.table.nodes():
        used = sum(item.spec.requests["cpu"] for item in info.pods.values())
        assert used <= info.allocatable["cpu"]
        assert used == info.requested.get("cpu", 0)
        row = info.row
        column = desk.scheduler.cluster.table.requested.get("cpu")
        assert column is None or column[row] == used


async def test_explaining_names_the_refusing_plugin_and_scores_by_plugin() -> None:
    desk = Desk()
    desk.event_handlers.node(None, node("a"))
    desk.event_handlers.node(None, node("b"))
    desk.event_handlers.node(None, node("c", unschedulable=True))
    desk.event_handlers.pod(None, pod("old", nodeName="a"))
    info = desk.scheduler.cluster.reader.read(pod("p"))
    found = desk.scheduler.explain(info)
    assert found.chosen == "b"
    text = found.text()
    assert text.startswith("pod default/p: would go to b\n  b: ")
    assert "c: refused by NodeUnschedulable: node(s) were unschedulable" in text
    verdict = next(item for item in found.nodes if item.node == "b")
    assert verdict.scores["TaintToleration"] == 300
    assert desk.scheduler.cluster.counts["pods"] == 1


async def test_refusals_report_only_what_changed() -> None:
    desk = Desk()
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "m",
        "lastTransitionTime": "t",
    }
    desk.event_handlers.pod(None, pod("p", status={"conditions": [condition]}))
    queued = desk.scheduler.queue.pop()
    assert queued is not None
    profile = desk.scheduler.profiles["default-scheduler"]
    refused = Refused(queued, profile, unschedulable("x"), "m", 0.0, nominated=None)
    assert pod_status_change(queued.pod, "Unschedulable", refused, "now") == {}
    refused.message = "other"
    changed = pod_status_change(queued.pod, "Unschedulable", refused, "now")
    assert changed["conditions"][0]["lastTransitionTime"] == "t"
