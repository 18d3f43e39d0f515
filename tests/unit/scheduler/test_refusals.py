"""What becomes of a pod that was not placed: retried as it is now, or not at all."""

from __future__ import annotations

from typing import Any

from skerry.api.errors import InternalError
from skerry.api.objects import Object
from skerry.kit.clock import LoopClock
from skerry.kit.ids import SeededIds
from skerry.scheduler.cache.pod import PodInfo
from skerry.scheduler.config.load import default_configuration
from skerry.scheduler.framework.handle import NoWriter
from skerry.scheduler.outcome import Refused
from skerry.scheduler.registry import in_tree_registry
from skerry.scheduler.scheduler import Parts, PodScheduler
from tests.kit.scheduler.fixtures import node, pod


class Witness(NoWriter):
    """Keeps what is written and recorded; refuses to write when asked to."""

    def __init__(self) -> None:
        self.statuses: list[Any] = []
        self.notes: list[str] = []
        self.refuses = False

    async def patch_pod_status(self, pod: PodInfo, status: Any) -> None:
        if self.refuses:
            raise InternalError("the server is ill")
        self.statuses.append(status)

    def event(self, pod: Object, type_: str, reason: str, action: str, note: str) -> None:
        self.notes.append(note)


class Desk:
    """A scheduler over one node that is too small for the pod ``large``."""

    def __init__(self) -> None:
        self.witness = Witness()
        parts = Parts(self.witness, self.witness, LoopClock(), SeededIds(1), ties="first")
        self.scheduler = PodScheduler(default_configuration(), in_tree_registry(), parts)
        self.scheduler.cluster.set_node(node("a"))

    def refused(self, **spec: Any) -> Refused:
        item = pod("large", requests={"cpu": "99"}, **spec)
        info = self.scheduler.cluster.reader.read(item)
        self.scheduler.unscheduled[info.uid] = info
        self.scheduler.queue.add(info)
        queued = self.scheduler.queue.pop()
        assert queued is not None
        outcome = self.scheduler.attempt(queued)
        assert isinstance(outcome, Refused)
        return outcome

    async def settle(self, refused: Refused) -> str:
        refusals = self.scheduler.refusals
        await refusals.settle(refused, refusals.make_room(refused))
        return self.scheduler.queue.where("large")


async def test_a_pod_that_fits_nowhere_waits_and_says_why() -> None:
    desk = Desk()
    assert await desk.settle(desk.refused()) == "unschedulable"
    (note,) = desk.witness.notes
    assert note.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    (status,) = desk.witness.statuses
    (condition,) = status["conditions"]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "False")
    assert condition["reason"] == "Unschedulable"


async def test_a_pod_that_was_deleted_meanwhile_is_not_retried() -> None:
    desk = Desk()
    refused = desk.refused()
    del desk.scheduler.unscheduled["large"]
    assert await desk.settle(refused) == ""


async def test_a_pod_that_somebody_else_bound_meanwhile_is_not_retried() -> None:
    desk = Desk()
    refused = desk.refused()
    del desk.scheduler.unscheduled["large"]
    bound = pod("large", requests={"cpu": "1"}, nodeName="a")
    desk.scheduler.cluster.set_pod(desk.scheduler.cluster.reader.read(bound))
    assert await desk.settle(refused) == ""


async def test_a_pod_that_changed_meanwhile_is_retried_as_it_is_now() -> None:
    desk = Desk()
    refused = desk.refused()
    smaller = desk.scheduler.cluster.reader.read(pod("large", requests={"cpu": "1"}))
    desk.scheduler.unscheduled["large"] = smaller
    assert await desk.settle(refused) == "unschedulable"
    assert refused.queued.pod is smaller


async def test_a_status_that_cannot_be_written_keeps_no_pod_from_its_queue() -> None:
    desk = Desk()
    desk.witness.refuses = True
    assert await desk.settle(desk.refused()) == "unschedulable"
    assert desk.witness.statuses == []


async def test_a_long_message_is_cut_to_what_an_event_may_hold() -> None:
    desk = Desk()
    refused = desk.refused()
    assert refused.diagnosis is not None
    room = desk.scheduler.refusals.make_room(refused)
    refused.message = "x" * 2000
    await desk.scheduler.refusals.settle(refused, room)
    assert desk.witness.notes == ["x" * 1020 + " ..."]


async def test_a_pod_that_no_preemption_can_help_is_promised_nothing() -> None:
    desk = Desk()
    refused = desk.refused()
    assert desk.scheduler.refusals.make_room(refused) is None
    assert len(desk.scheduler.nominations) == 0
    assert refused.message.endswith(
        "0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )
