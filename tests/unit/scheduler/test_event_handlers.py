"""What the server reports becomes beliefs, and events for pods that wait."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.kit.clock import LoopClock
from skerry.kit.ids import SeededIds
from skerry.scheduler.config.load import default_configuration
from skerry.scheduler.event_handlers import EventHandlers
from skerry.scheduler.framework.events import NODE, PVC, Action, ClusterEvent
from skerry.scheduler.framework.handle import NoEvents, NoWriter
from skerry.scheduler.registry import in_tree_registry
from skerry.scheduler.scheduler import Parts, PodScheduler
from tests.kit.scheduler.fixtures import node, pod


class Desk:
    """A scheduler, its handlers, and the events its queue was given."""

    def __init__(self) -> None:
        parts = Parts(NoWriter(), NoEvents(), LoopClock(), SeededIds(1), ties="first")
        self.scheduler = PodScheduler(default_configuration(), in_tree_registry(), parts)
        self.handlers = EventHandlers(self.scheduler)
        self.moved: list[ClusterEvent] = []
        move = self.scheduler.queue.move

        def noted(event: ClusterEvent, *rest: Any) -> None:
            self.moved.append(event)
            move(event, *rest)

        self.scheduler.queue.move = noted  # type: ignore[method-assign,assignment]

    def waiting_pod(self) -> None:
        """Let one pod wait for something to change."""
        self.handlers.pod(None, pod("waits", requests={"cpu": "900"}))
        queued = self.scheduler.queue.pop()
        assert queued is not None
        queued.rejectors = {"NodeResourcesFit"}
        self.scheduler.queue.add_unschedulable(queued)


async def test_a_pod_with_a_node_is_the_caches_and_one_without_the_queues() -> None:
    desk = Desk()
    desk.handlers.pod(None, pod("placed", nodeName="a"))
    desk.handlers.pod(None, pod("free"))
    desk.handlers.pod(None, pod("foreign", schedulerName="other"))
    assert desk.scheduler.cluster.pod("placed") is not None
    assert desk.scheduler.queue.holds("free")
    assert not desk.scheduler.queue.holds("foreign")


async def test_a_pod_that_another_has_bound_leaves_the_queue() -> None:
    desk = Desk()
    desk.handlers.pod(None, pod("p"))
    desk.handlers.pod(pod("p"), pod("p", nodeName="a"))
    assert not desk.scheduler.queue.holds("p")
    assert desk.scheduler.cluster.pod("p") is not None
    desk.handlers.pod(pod("p", nodeName="a"), None)
    assert desk.scheduler.cluster.pod("p") is None


async def test_a_pod_that_makes_no_sense_is_left_alone() -> None:
    desk = Desk()
    desk.handlers.pod(None, pod("odd", requests={"cpu": "lots"}))
    assert not desk.scheduler.queue.holds("odd")
    desk.handlers.pod(None, None)


async def test_a_deleted_pod_waits_no_more() -> None:
    desk = Desk()
    desk.handlers.pod(None, pod("p"))
    desk.handlers.pod(pod("p"), None)
    assert not desk.scheduler.queue.holds("p")
    assert desk.scheduler.unscheduled == {}


@pytest.mark.parametrize(
    ("new", "action"),
    [
        (node("a", allocatable={"cpu": "8"}), Action.UPDATE_NODE_ALLOCATABLE),
        (node("a", {"x": "y"}), Action.UPDATE_NODE_LABEL),
        (node("a", taints=[{"key": "k", "effect": "NoSchedule"}]), Action.UPDATE_NODE_TAINT),
        (node("a", unschedulable=True), Action.UPDATE_NODE_TAINT),
    ],
)
async def test_a_change_of_a_node_is_split_into_what_changed(new: Any, action: Action) -> None:
    desk = Desk()
    desk.handlers.node(None, node("a"))
    desk.waiting_pod()
    desk.moved.clear()
    desk.handlers.node(node("a"), new)
    assert desk.moved == [ClusterEvent(NODE, action)]


async def test_conditions_and_annotations_are_changes_too_and_heartbeats_are_not() -> None:
    def described(status: str, beat: str, note: str) -> Any:
        made = node("a")
        made["status"]["conditions"] = [
            {"type": "Ready", "status": status, "lastHeartbeatTime": beat}
        ]
        made["metadata"]["annotations"] = {"note": note}
        return made

    desk = Desk()
    desk.handlers.node(None, described("True", "1", "x"))
    desk.waiting_pod()
    desk.moved.clear()
    desk.handlers.node(described("True", "1", "x"), described("True", "2", "x"))
    assert desk.moved == []
    desk.handlers.node(described("True", "2", "x"), described("False", "2", "y"))
    assert [event.action for event in desk.moved] == [
        Action.UPDATE_NODE_CONDITION,
        Action.UPDATE_NODE_ANNOTATION,
    ]


async def test_a_node_that_goes_is_reported() -> None:
    desk = Desk()
    desk.handlers.node(None, node("a"))
    desk.handlers.node(node("a"), None)
    desk.handlers.node(None, None)
    assert len(desk.scheduler.cluster.table) == 0
    assert desk.moved[-1] == ClusterEvent(NODE, Action.DELETE)


async def test_a_placed_pod_that_shrinks_makes_room() -> None:
    desk = Desk()
    desk.handlers.node(None, node("a"))
    desk.handlers.pod(None, pod("p", nodeName="a"))
    desk.waiting_pod()
    desk.moved.clear()
    smaller = pod("p", {"new": "label"}, nodeName="a", requests={"cpu": "1m"})
    desk.handlers.pod(pod("p", nodeName="a"), smaller)
    assert [event.action for event in desk.moved] == [
        Action.UPDATE_POD_LABEL,
        Action.UPDATE_POD_SCALE_DOWN,
    ]


async def test_what_plugins_look_up_is_kept_and_reported_where_it_helps() -> None:
    desk = Desk()
    claim = {"metadata": {"name": "c", "namespace": "n"}}
    handle = desk.handlers.other("claims")
    handle(None, claim)
    handle(claim, claim)
    handle(claim, None)
    assert [(event.resource, event.action) for event in desk.moved] == [
        (PVC, Action.ADD),
        (PVC, Action.UPDATE_OTHER),
        (PVC, Action.DELETE),
    ]
    assert len(desk.scheduler.cluster.objects.claims) == 0
    desk.moved.clear()
    desk.handlers.other("services")(None, claim)
    assert desk.moved == []
    assert len(desk.scheduler.cluster.objects.services) == 1


async def test_durations_are_noted_by_resource_and_kind_of_change() -> None:
    desk = Desk()
    handle = desk.handlers.measured(desk.handlers.node, "Node")
    handle(None, node("a"))
    handle(node("a"), node("a"))
    handle(node("a"), None)
    duration = desk.scheduler.metrics.event_duration
    assert {labels[0] for labels in duration.series()} == {"NodeAdd", "NodeUpdate", "NodeDelete"}
