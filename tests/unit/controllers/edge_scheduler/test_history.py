"""What a plan for slices is recorded as, and what becomes of a record that cannot be written."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from skerry.api.edge import SliceOwner, edge_placement_ref, location_ref
from skerry.api.errors import Forbidden, InternalError, NotFound
from skerry.api.objects import Object
from skerry.controllers.edge_scheduler.history import (
    HistoryWriter,
    Members,
    Recording,
    Story,
    changed_by,
    decided,
    ended,
    recording_of,
)
from skerry.controllers.edge_scheduler.observe import Cause, Gathered, Gone, Observed, Result
from skerry.kit.clock import SystemClock
from skerry.logic.fleet.history.fold import folded, timeline
from skerry.logic.fleet.history.record import Maker, Reason
from skerry.logic.fleet.history.retention import Limits
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.placement.slices import Assigned, lean_slice, member, new_slice
from skerry.runtime.metrics import RuntimeMetrics

P, OWNER = edge_placement_ref("wmw", "web"), SliceOwner("web", "uid-web")
A, B, C = (Destination("imw", name, name, f"uid-{name}") for name in "abc")
RELABELLED = Cause("Location", location_ref("imw", "a"), "label env=dr", "9", '{"user":"ann"}')
WHY = (lambda _: Reason("Selected"), lambda _: Reason("NotSelected"))


def observed(
    *held: Destination,
    causes: Gathered | None = None,
    given: Mapping[Destination, Assigned] | None = None,
    owner: SliceOwner = OWNER,
) -> Observed:
    piece = new_slice("web", owner, held, given)
    piece["metadata"]["resourceVersion"] = "12"
    members = Members()
    slices = {"web": members.lean(piece)} if held else {}
    recording = Recording(3, "7", "", members.get, *WHY)
    gathered = causes or Gathered((RELABELLED,), 1)
    return Observed(P, OWNER, Result(3), slices=slices, causes=gathered, history=recording)


def story(
    found: Observed, *wanted: Destination, given: Mapping[int, Assigned] | None = None
) -> Story | None:
    return decided(found, {member(each): each for each in wanted}, given or {})


def test_a_plan_that_changes_no_destination_is_no_decision() -> None:
    assert story(observed(A, B), B, A) is None


def test_who_comes_and_who_goes_is_recorded_with_cause_and_reason() -> None:
    found = story(observed(A, B), B, C)
    assert found is not None
    left, joined = found.decisions
    assert [each.destination for each in left.standings] == [A]
    assert (left.change, left.reason.code) == ("Left", "NotSelected")
    assert (left.causes[0].user, left.causes[0].change) == ("ann", "label env=dr")
    assert [each.destination for each in joined.standings] == [C]
    assert found.follows == 12


def test_what_was_there_at_the_start_caused_nothing() -> None:
    initial = Gathered((RELABELLED._replace(initial=True),), 500)
    found = story(observed(causes=initial), A)
    assert found is not None
    assert [each.kind for each in found.decisions[0].causes] == ["EdgePlacement"]
    assert found.follows == 7
    again = story(observed(A, causes=initial), B)
    assert again is not None
    assert again.decisions[0].causes == ()


def test_slices_of_a_namesake_begin_anew() -> None:
    found = story(observed(A, owner=SliceOwner("web", "another")), A)
    assert found is not None
    assert [each.change for each in found.decisions] == ["Joined"]


def test_another_revision_is_reported_and_slots_beyond_bitmaps_are_not() -> None:
    found = observed(A, B, given={A: Assigned(1, 41), B: Assigned(2, 41)})
    given = {member(A): Assigned(1, 42), member(B): Assigned(2, 41)}
    reported = story(found, A, B, given=given)
    assert reported is not None
    [moved] = reported.decisions
    assert (moved.change, moved.start, moved.to) == ("Revised", 41, 42)
    huge = story(observed(), A, given={member(A): Assigned(1 << 40, 1)})
    assert huge is not None
    assert huge.decisions[0].standings[0].slot is None


def test_the_end_of_a_placement_needs_somebody_who_saw_it() -> None:
    assert ended(Gone(P), 3) is None
    cause = Cause("EdgePlacement", P, "deleted", uid="uid-web")
    found = ended(Gone(P, Gathered((cause,), 1)), 3)
    assert found is not None
    assert found.decisions[0].everybody == 3


@pytest.mark.parametrize("text", ["", "{", "[]", '"ann"', "{}"])
def test_an_annotation_that_says_nobody_is_nobody(text: str) -> None:
    assert changed_by(text) == ("", "")


def test_members_are_forgotten_when_no_slice_holds_them() -> None:
    members = Members()
    members.note(Destination("imw", f"l{n}", "t", "u") for n in range(20_000))
    members.note([A])
    members.prune(lambda: [lean_slice(new_slice("web", OWNER, [A]))])
    assert members.get(member(A)) == A
    assert members.get(member(Destination("imw", "l1", "t", "u"))) is None


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


def test_five_decisions_a_second_are_recorded_at_once_and_the_next_waits() -> None:
    server = Server()
    history = writer(server)
    for number in range(5):
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
