"""Records are chained, written once, and stop no slice where they are refused."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from skerry.api.edge import SliceOwner, edge_placement_ref
from skerry.api.errors import Forbidden, InternalError, NotFound
from skerry.api.objects import Object
from skerry.controllers.edge_scheduler.history import Members, Story
from skerry.controllers.edge_scheduler.history_writer import HistoryWriter, recording_of
from skerry.controllers.edge_scheduler.observed import Cause, Gathered
from skerry.kit.clock import SystemClock
from skerry.logic.fleet.history.fold import folded, timeline
from skerry.logic.fleet.history.record import Maker
from skerry.logic.fleet.history.retention import Limits
from skerry.logic.fleet.placement.records import Destination
from skerry.runtime.metrics import RuntimeMetrics
from tests.kit.chain.recording import WHY, A, B, C, P, observed, story


class Server:
    """Keeps records; fails as it is asked to."""

    def __init__(self) -> None:
        self.clock = SystemClock()
        self.records: dict[str, Object] = {}
        self.failure: Exception | None = None
        self.lists = 0

    def for_cluster(self, cluster: str) -> Server:
        return self

    async def create(self, gvr: object, obj: Object, *args: Any, **more: Any) -> Object:
        if self.failure is not None:
            raise self.failure
        name = obj["metadata"]["name"]
        stored = {**obj, "metadata": {**obj["metadata"], "resourceVersion": "99"}}
        return self.records.setdefault(name, stored)

    async def list(self, *args: Any, **more: Any) -> Any:
        self.lists += 1
        return type("Listed", (), {"items": list(self.records.values())})

    async def get(self, gvr: object, name: str) -> Object:
        return self.records[name]

    @property
    def reported(self) -> set[Destination]:
        line = timeline(self.records.values())
        return set(folded(line, len(line.records)).standings)


def writer(server: Server, **more: Any) -> HistoryWriter:
    client: Any = server
    return HistoryWriter(
        client, Maker("edge-scheduler"), Members(), list, metrics=RuntimeMetrics(), **more
    )


def write(history: HistoryWriter, found: Story | None) -> None:
    assert found is not None
    asyncio.run(history.write(P, found))


def test_a_decision_that_is_repeated_is_recorded_once_by_this_process_and_the_next() -> None:
    server = Server()
    history = writer(server)
    write(history, story(observed(A), A, B))
    write(history, story(observed(A), A, B))
    write(writer(server), story(observed(A), A, B))
    assert [each["change"] for each in server.records.values()] == ["Checkpoint", "Joined"]


def test_who_changes_its_mind_before_the_slice_was_written_says_so() -> None:
    server = Server()
    history = writer(server)
    write(history, story(observed(), A))
    write(history, story(observed(), B))
    assert server.reported == {B}


@pytest.mark.parametrize("error", [Forbidden("full"), NotFound("not served")])
def test_a_record_that_is_refused_stops_nothing_and_the_next_begins_anew(error: Exception) -> None:
    server = Server()
    history = writer(server)
    write(history, story(observed(), A))
    history.settled(P)
    server.failure = error
    write(history, story(observed(A), B))
    history.settled(P)
    server.failure = None
    write(history, story(observed(B), B, C))
    assert server.reported == {B, C}


def test_a_server_that_fails_is_asked_again_before_any_slice_is_written() -> None:
    server = Server()
    server.failure = InternalError("broken")
    with pytest.raises(InternalError):
        write(writer(server), story(observed(), A))


def test_ten_decisions_a_second_are_recorded_at_once_and_the_next_waits() -> None:
    server = Server()
    history = writer(server)
    for number in range(10):
        assert history.wait_seconds(P) == 0
        write(history, story(observed(), Destination("imw", f"l{number}", "t", "u")))
        history.settled(P)
    assert 0 < history.wait_seconds(P) <= 1
    assert history.wait_seconds(edge_placement_ref("wmw", "other")) == 0
    assert server.lists == 1


@pytest.mark.parametrize(
    ("annotation", "kept"), [(None, True), ("0", False), ("90d", True), ("nonsense", True)]
)
def test_a_placement_says_whether_anything_is_kept(annotation: str | None, kept: bool) -> None:
    said = {} if annotation is None else {"edge.kcp.io/history-retention": annotation}
    placement = {"metadata": {"name": "web", "annotations": said}}
    assert (recording_of(writer(Server()), *WHY, placement) is not None) == kept
    off = writer(Server(), limits=Limits()._replace(age=Limits().age * 0))
    assert (recording_of(off, *WHY, placement) is not None) == (annotation == "90d")


def test_of_a_placement_that_we_saw_made_nothing_is_read() -> None:
    server = Server()
    made = Gathered((Cause("EdgePlacement", P, "created"),), 1)
    write(writer(server), story(observed(causes=made), A))
    assert server.lists == 0
    write(writer(server), story(observed(), A))
    assert server.lists == 1
    assert len(server.records) == 1


class Flaky(Server):
    """Fails once, when that many records were taken."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.left = at

    async def create(self, gvr: object, obj: Object, *args: Any, **more: Any) -> Object:
        self.left -= 1
        if self.left == -1:
            raise InternalError("broken")
        return await super().create(gvr, obj, *args, **more)


@pytest.mark.parametrize("at", range(6))
def test_what_stands_before_a_checkpoint_is_recorded_again_wherever_writing_failed(at: int) -> None:
    server = Flaky(at)
    history = writer(server)
    for found in (
        story(observed(A), A, B),
        story(observed(A), B),
        story(observed(A), B),
        story(observed(A), B),
    ):
        with suppress(InternalError):
            write(history, found)
    assert server.reported == {B}
    swapped = Flaky(at)
    history = writer(swapped)
    for found in (story(observed(A)), *[story(observed(A), B)] * 3):
        with suppress(InternalError):
            write(history, found)
    assert swapped.reported == {B}


def test_the_records_of_a_deleted_namesake_are_not_taken_for_those_of_its_successor() -> None:
    server, old = Server(), SliceOwner("web", "uid-old")
    before = replace(observed(), owner=old)
    write(writer(server), story(before, A))
    assert server.reported == {A}
    found = story(observed(A, owner=old))
    assert found is not None
    assert (found.succeeds, found.decisions) == (True, ())
    write(writer(server), found)
    assert server.reported == set()
    assert story(observed()) is None, "nothing was there, and nothing is to be said"
