"""The queue, in transcripts: what happens, and where everybody is afterwards.

Each line of a transcript is a command; after ``----`` follow the parts of the queue that hold
somebody. ``Fit`` and ``Affinity`` are plugins that may have rejected a pod; ``Fit`` requeues it
when an assigned pod is deleted, ``Affinity`` when a node is added whose name the pod asks for, and
``Gate`` keeps pods out while they have a gate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.scheduler.cache.cluster import Cluster
from skerry.scheduler.cache.pod import PodInfo
from skerry.scheduler.framework.events import (
    ASSIGNED_POD_DELETE,
    NODE,
    NODE_ADD,
    POD,
    Action,
    ClusterEvent,
    Hint,
    Registration,
)
from skerry.scheduler.framework.status import Status, unresolvable
from skerry.scheduler.queue import QueuedPod, QueueProfile, QueueSettings, SchedulingQueue
from tests.kit.scheduler.fixtures import pod


def gate(item: PodInfo) -> Status | None:
    return unresolvable("gated").of("Gate") if item.gates else None


def wants(item: PodInfo, old: Any, new: Any) -> Hint:
    return Hint.QUEUE if new == item.spec.labels.get("wants") else Hint.SKIP


def own(item: PodInfo, old: Any, new: Any) -> Hint:
    return Hint.QUEUE if new.uid == item.uid else Hint.SKIP


def broken(item: PodInfo, old: Any, new: Any) -> Hint:
    raise ZeroDivisionError


PROFILE = QueueProfile(
    {
        "Fit": [Registration(ClusterEvent(POD, Action.DELETE))],
        "Affinity": [Registration(ClusterEvent(NODE, Action.ADD), wants)],
        "Gate": [Registration(ClusterEvent(POD, Action.UPDATE_POD_GATES_ELIMINATED), own)],
        "Broken": [Registration(ClusterEvent(NODE, Action.ADD), broken)],
    },
    gate,
)


class Story:
    """Plays a transcript."""

    def __init__(self) -> None:
        self.now = 0.0
        self.reader = Cluster().reader
        self.queue = SchedulingQueue(
            {"default-scheduler": PROFILE},
            lambda queued: (-queued.pod.priority, queued.timestamp),
            lambda: self.now,
            settings=QueueSettings(1.0, 10.0, 300.0),
        )
        self.pods: dict[str, PodInfo] = {}
        self.flying: dict[str, QueuedPod] = {}
        self.popped: list[str] = []

    def read(self, name: str, *options: str) -> PodInfo:
        given_options = dict(option.split("=") for option in options)
        labels = {"wants": given_options["wants"]} if "wants" in given_options else {}
        spec: dict[str, Any] = {"priority": int(given_options.get("priority", 0))}
        if given_options.get("gate"):
            spec["schedulingGates"] = [{"name": given_options["gate"]}]
        if given_options.get("nominated"):
            spec["status"] = {"nominatedNodeName": given_options["nominated"]}
        self.pods[name] = self.reader.read(pod(name, labels, **spec))
        return self.pods[name]

    def add(self, name: str, *options: str) -> None:
        self.queue.add(self.read(name, *options))

    def update(self, name: str, *options: str) -> None:
        old = self.pods[name]
        self.queue.update(old, self.read(name, *options))

    def delete(self, name: str) -> None:
        self.queue.delete(self.pods[name].uid)

    def pop(self) -> None:
        queued = self.queue.pop()
        assert queued is not None
        self.popped.append(queued.pod.name)
        self.flying[queued.pod.name] = queued

    def reject(self, name: str, *plugins: str) -> None:
        queued = self.flying.pop(name)
        queued.rejectors = {p for p in plugins if not p.startswith("~")}
        queued.pending = {p[1:] for p in plugins if p.startswith("~")}
        self.queue.add_unschedulable(queued)

    def bound(self, name: str) -> None:
        del self.flying[name]
        self.queue.done(self.pods[name].uid)

    def pod_deleted(self) -> None:
        self.queue.move(ASSIGNED_POD_DELETE, object(), None)

    def node_added(self, name: str = "n") -> None:
        self.queue.move(NODE_ADD, None, name)

    def activate(self, name: str) -> None:
        self.queue.activate([self.pods[name]])

    def wait(self, seconds: str) -> None:
        self.now += float(seconds)
        self.queue.flush()
        self.queue.flush_unschedulable()

    def state(self) -> list[str]:
        places: dict[str, list[str]] = {}
        for name, item in self.pods.items():
            place = self.queue.where(item.uid)
            if place:
                places.setdefault(place, []).append(name)
        parts = ("active", "backoff", "unschedulable", "gated", "in flight")
        return [f"{part}: {' '.join(places[part])}" for part in parts if part in places]


TRANSCRIPTS = {
    "the more important goes first, then the one that waited longer": """
        add a
        add b priority=5
        wait 1
        add c
        pop
        pop
        pop
        ----
        in flight: a b c
        popped: b a c
    """,
    "a rejected pod waits until something its rejector cares about happens": """
        add a
        pop
        reject a Fit
        node_added
        ----
        unschedulable: a
    """,
    "the right event moves it, but its back-off still counts": """
        add a
        pop
        reject a Fit
        pod_deleted
        ----
        backoff: a
    """,
    "after the back-off it is active again": """
        add a
        pop
        reject a Fit
        pod_deleted
        wait 1
        ----
        active: a
    """,
    "an event after the back-off makes it active at once": """
        add a
        pop
        reject a Fit
        wait 2
        pod_deleted
        ----
        active: a
    """,
    "the back-off doubles with each attempt": """
        add a
        pop
        reject a Fit
        wait 1
        pod_deleted
        pop
        reject a Fit
        pod_deleted
        wait 1
        ----
        backoff: a
    """,
    "hints look at what changed": """
        add a wants=n1
        pop
        reject a Affinity
        node_added n2
        ----
        unschedulable: a
    """,
    "a hint that says yes requeues only those it is about": """
        add a wants=n1
        add b wants=n2
        pop
        pop
        reject a Affinity
        reject b Affinity
        wait 5
        node_added n2
        ----
        active: b
        unschedulable: a
    """,
    "a hint that fails means try again": """
        add a
        pop
        reject a Broken
        wait 5
        node_added
        ----
        active: a
    """,
    "an event that came while the pod was in flight is not lost": """
        add a
        pop
        pod_deleted
        reject a Fit
        ----
        backoff: a
    """,
    "an event from before it was popped is not its concern": """
        add a
        add b
        pop
        pod_deleted
        pop
        reject b Fit
        ----
        unschedulable: b
        in flight: a
    """,
    "without a rejector something internal failed and it is tried after the back-off": """
        add a
        pop
        reject a
        ----
        backoff: a
    """,
    "a pod that was only asked to wait skips its back-off": """
        add a
        pop
        reject a ~Fit
        pod_deleted
        ----
        active: a
    """,
    "five minutes without an event are long enough": """
        add a
        pop
        reject a Fit
        wait 301
        ----
        active: a
    """,
    "a gated pod stays out, whatever happens": """
        add a gate=later
        pod_deleted
        node_added
        ----
        gated: a
    """,
    "lifting the last gate lets it in": """
        add a gate=later
        update a
        ----
        active: a
    """,
    "activation forces a pod in, back-off or not": """
        add a
        pop
        reject a Fit
        activate a
        ----
        active: a
    """,
    "a deleted pod is nowhere": """
        add a
        add b
        delete a
        pop
        ----
        in flight: b
        popped: b
    """,
    "a bound pod is nowhere either": """
        add a
        pop
        bound a
        ----
    """,
    "a pod changed while in flight is requeued by its own change": """
        add a gate=
        pop
        update a wants=n1
        reject a Fit
        ----
        unschedulable: a
    """,
}


@pytest.mark.parametrize("name", list(TRANSCRIPTS))
def test_transcript(name: str) -> None:
    lines = [line.strip() for line in TRANSCRIPTS[name].strip().splitlines()]
    cut = lines.index("----")
    story = Story()
    for line in lines[:cut]:
        command, *words = line.split()
        getattr(story, command)(*words)
    expected = lines[cut + 1 :]
    transcript = story.state()
    if any(line.startswith("popped:") for line in expected):
        transcript.append(f"popped: {' '.join(story.popped)}")
    assert transcript == expected


@given(st.integers(0, 200))
def test_back_off_doubles_up_to_its_limit(attempts: int) -> None:
    story = Story()
    queued = QueuedPod(story.read("a"), 100.0, attempts=attempts)
    waited = story.queue.backoff_end(queued) - 100.0
    assert waited == (0.0 if attempts == 0 else min(10.0, 2.0 ** (attempts - 1)))


def test_nominations_follow_the_pod() -> None:
    story = Story()
    story.add("a", "nominated=n1")
    assert [item.name for item in story.queue.nominations.nominated("n1")] == ["a"]
    story.delete("a")
    assert not story.queue.nominations.nominated("n1")


def test_sizes_are_counted_as_metrics_name_them() -> None:
    story = Story()
    story.add("a", "gate=later")
    story.add("b")
    assert story.queue.sizes() == {"active": 1, "backoff": 0, "unschedulable": 0, "gated": 1}


def test_whoever_waits_for_work_is_notified() -> None:
    story = Story()
    notified: list[bool] = []
    story.queue.ready = lambda: notified.append(True)
    story.add("a")
    assert notified == [True]


@given(st.lists(st.sampled_from(["add", "pop", "reject", "event", "wait", "bound"]), max_size=40))
def test_no_pod_is_ever_lost_or_doubled(commands: list[str]) -> None:
    story = Story()
    bound: set[str] = set()
    added = 0
    steps: dict[str, Callable[[], None]] = {
        "event": story.pod_deleted,
        "wait": lambda: story.wait("2"),
    }
    for command in commands:
        if command == "add":
            story.add(f"p{added}")
            added += 1
        elif command == "pop" and story.queue.sizes()["active"]:
            story.pop()
        elif command in ("reject", "bound") and story.flying:
            name = next(iter(story.flying))
            if command == "reject":
                story.reject(name, "Fit")
            else:
                story.bound(name)
                bound.add(name)
        elif command in steps:
            steps[command]()
    for name, item in story.pods.items():
        assert bool(story.queue.where(item.uid)) != (name in bound)
    assert sum(story.queue.sizes().values()) + len(story.flying) + len(bound) == added


def test_a_hint_that_fails_is_logged(capsys: pytest.CaptureFixture[str]) -> None:
    story = Story()
    story.add("a")
    story.pop()
    story.reject("a", "Broken")
    story.node_added()
    logged = capsys.readouterr().err
    assert "QueueingHintFn returns error" in logged
    assert "Broken" in logged
