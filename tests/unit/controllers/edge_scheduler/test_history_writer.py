"""Records are chained, written once, and stop no slice where they are refused."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.edge import SliceOwner, edge_placement_ref
from skerry.api.errors import Forbidden, InternalError, NotFound
from skerry.api.objects import Object
from skerry.controllers.edge_scheduler.history import DELETED, Members, Story, ended
from skerry.controllers.edge_scheduler.history_writer import HistoryWriter, recording_of
from skerry.controllers.edge_scheduler.observed import Cause, Gathered, Gone, Observed
from skerry.kit.clock import SystemClock
from skerry.logic.fleet.history.fold import folded, timeline
from skerry.logic.fleet.history.observations import seen_in
from skerry.logic.fleet.history.record import Maker
from skerry.logic.fleet.history.retention import Limits
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.placement.slices import member
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


# -- the end of a chain ----------------------------------------------------------------------------


def changes(server: Server) -> list[str]:
    return [each["change"] for each in server.records.values()]


def gone(uid: str = "uid-web") -> Story:
    found = ended(Gone(P, Gathered((Cause("EdgePlacement", P, "deleted", uid=uid),), 1)), 1)
    assert found is not None
    return found


def end(history: HistoryWriter, found: Story | None) -> None:
    asyncio.run(history.end(P, found))


def test_the_end_of_a_placement_is_recorded_where_something_was() -> None:
    server = Server()
    history = writer(server)
    write(history, story(observed(), A))
    history.settled(P)
    end(history, gone())
    assert changes(server) == ["Joined", "Left"]
    assert server.reported == set()


@pytest.mark.parametrize("uid", ["uid-web", "another"])
def test_the_end_is_recorded_by_the_next_process_unless_it_is_a_namesakes(uid: str) -> None:
    server = Server()
    write(writer(server), story(observed(), A))
    end(writer(server), gone(uid))
    assert changes(server)[-1] == ("Left" if uid == "uid-web" else "Joined")
    assert server.reported == (set() if uid == "uid-web" else {A})


def test_of_what_was_never_recorded_there_is_no_end() -> None:
    server = Server()
    end(writer(server), gone())
    end(writer(server), None)
    assert server.records == {}


def test_after_its_end_a_placement_of_that_name_is_another_one() -> None:
    server = Server()
    history = writer(server)
    for _ in range(10):
        write(history, story(observed(), A))
        history.settled(P, seen_in({}))
        write(history, story(observed(), B))
        history.settled(P)
    assert history.wait_seconds(P) > 0
    assert history.seen(P) is not None
    end(history, gone())
    assert (history.wait_seconds(P), history.seen(P), history.released(P)) == (0, None, "")


# -- what makes records doubtful -------------------------------------------------------------------


def test_slices_that_are_older_than_their_history_begin_with_what_they_hold() -> None:
    server = Server()
    write(writer(server), story(observed(A, B), B))
    assert changes(server) == ["Checkpoint", "Left"]
    assert server.reported == {B}


def test_a_new_placement_begins_with_its_first_destination() -> None:
    server = Server()
    write(writer(server), story(observed(), A))
    assert changes(server) == ["Joined"]


@pytest.mark.parametrize(("pages", "found"), [(1, ["Joined", "Left"]), (2, ["Checkpoint", "Left"])])
def test_of_several_slices_nobody_knows_which_the_last_leader_wrote(
    pages: int, found: list[str]
) -> None:
    server = Server()
    write(writer(server), story(observed(), A))
    next_leader, left = writer(server), story(observed(A))
    assert left is not None
    # A slice has been written since that record was: at least one followed.
    write(next_leader, replace(left, pages=pages, follows=120))
    assert changes(server)[-2:] == found
    next_leader.settled(P)
    again = story(observed(), B)
    assert again is not None
    write(next_leader, replace(again, pages=pages, follows=130))
    assert changes(server)[-1] == "Joined", "what it wrote itself it knows"
    assert changes(server).count("Checkpoint") == pages - 1


def test_what_nobody_knows_to_have_left_is_made_good_by_what_is_left() -> None:
    server = Server()
    history = writer(server)
    found = story(observed(A, B), B)
    assert found is not None
    write(history, replace(found, is_incomplete=True))
    history.settled(P)
    write(history, story(observed(B), B, C))
    assert changes(server) == ["Checkpoint", "Left", "Checkpoint", "Joined"]
    history.settled(P)
    write(history, story(observed(B, C), C))
    assert changes(server)[4:] == ["Left"], "and then it is whole again"


def forgetful(*held: Destination, known: set[Destination]) -> Observed:
    """Return slices that hold some destinations, of which only those known have a name."""
    found = observed(*held)
    assert found.history is not None
    names = {member(each): each for each in known}
    return replace(found, history=replace(found.history, destination=names.get))


@pytest.mark.parametrize(
    ("known", "wanted"),
    [({A}, [A]), (set(), [A]), ({A}, []), ({A}, [A, C]), (set(), [C]), (set(), [])],
    ids=["alone", "who stays neither", "with another", "another comes", "replaced", "last"],
)
@pytest.mark.parametrize("next_process", [False, True])
def test_who_leaves_and_has_no_name_has_left_by_the_records_at_once(
    known: set[Destination], wanted: list[Destination], next_process: bool
) -> None:
    server = Server()
    history = writer(server)
    write(history, story(observed(), A, B))
    history.settled(P)
    if next_process:
        history = writer(server)
    found = story(forgetful(A, B, known=known), *wanted)
    assert found is not None
    assert found.is_incomplete
    write(history, replace(found, follows=120))
    assert server.reported == {*wanted}


@pytest.mark.parametrize("wanted", [[A], [A, C], []], ids=["alone", "another comes", "both"])
def test_who_leaves_and_has_no_name_is_recorded_once_however_often_the_slice_fails(
    wanted: list[Destination],
) -> None:
    server = Server()
    history = writer(server)
    write(history, story(observed(), A, B))
    history.settled(P)
    found = story(forgetful(A, B, known={A}), *wanted)
    write(history, found)
    written = len(server.records)
    for again in (history, history, writer(server)):
        write(again, found)
        assert len(server.records) == written
        assert again.wait_seconds(P) == 0


def test_a_decision_made_again_is_not_taken_for_one_that_lets_somebody_else_go_too() -> None:
    server = Server()
    history = writer(server)
    write(history, story(observed(), A, B, C))
    history.settled(P)
    write(history, story(observed(A, B, C), B, C))
    write(history, story(forgetful(A, B, C, known={A, C}), C))
    assert server.reported == {C}


@pytest.mark.parametrize("next_process", [False, True])
def test_who_has_no_name_and_stays_after_all_is_recorded_with_the_next_decision(
    next_process: bool,
) -> None:
    server = Server()
    history = writer(server)
    write(history, story(observed(), A, B))
    history.settled(P)
    write(history, story(forgetful(A, B, known={A}), A))
    assert story(forgetful(A, B, known={A}), A, B) is None
    if next_process:
        history = writer(server)
    write(history, story(forgetful(A, B, known={A}), A, B, C))
    assert server.reported == {A, B, C}


def test_slices_of_a_namesake_are_taken_over_once_however_often_writing_them_fails() -> None:
    server = Server()
    history = writer(server)
    found = story(observed(A, owner=SliceOwner("web", "uid-old")))
    for _ in range(3):
        write(history, found)
    assert changes(server) == ["Checkpoint"]


@pytest.mark.parametrize("error", [Forbidden("no"), NotFound("not served")])
def test_records_that_cannot_be_read_are_as_if_there_were_none(error: Exception) -> None:
    class Unreadable(Server):
        async def list(self, *args: Any, **more: Any) -> Any:
            raise error

    server = Unreadable()
    write(writer(server), story(observed(A), A, B))
    assert changes(server) == ["Checkpoint", "Joined"]


def test_a_server_that_fails_to_list_is_asked_again() -> None:
    class Broken(Server):
        async def list(self, *args: Any, **more: Any) -> Any:
            raise InternalError("broken")

    server = Broken()
    with pytest.raises(InternalError):
        write(writer(server), story(observed(), A))
    assert server.records == {}


def test_another_who_led_meanwhile_has_recorded_what_this_one_does_not_know() -> None:
    server = Server()
    first, second = writer(server), writer(server)
    write(first, story(observed(), A))
    first.settled(P)
    write(second, story(observed(A), A, B))
    second.settled(P)
    first.clear()
    write(first, story(observed(A, B), B))
    assert server.reported == {B}
    assert server.lists == 3


# -- drafts, and what is remembered ----------------------------------------------------------------


def test_a_draft_that_is_never_sent_leaves_nothing_behind() -> None:
    server = Server()
    history = writer(server)
    first = story(observed(), A)
    assert first is not None
    draft = asyncio.run(history.draft(P, first))
    assert [each.object["change"] for each in draft.creations] == ["Joined"]
    assert server.records == {}
    write(history, first)
    assert changes(server) == ["Joined"]
    assert server.lists == 2, "what is not known to be written is read again"


def test_a_draft_of_what_is_recorded_already_is_sent_by_anybody_and_counts_for_nothing() -> None:
    server = Server()
    history = writer(server)
    for _ in range(12):
        found = story(observed(), A)
        assert found is not None
        draft = asyncio.run(history.draft(P, found))
        if not draft.creations:
            history.sent(draft, [])
        asyncio.run(history.send(draft))
    assert (changes(server), history.wait_seconds(P), server.lists) == (["Joined"], 0, 1)
    write(history, story(observed(), B))
    assert server.reported == {B}, "that no slice has followed is still known"


def test_those_about_to_join_keep_their_names_when_those_of_others_are_forgotten() -> None:
    history = writer(Server())
    history.members.note(Destination("imw", f"l{n}", "t", f"u{n}") for n in range(10_000))
    write(history, story(observed(), A))
    assert history.members.get(member(Destination("imw", "l1", "t", "u1"))) is None
    assert history.members.get(member(A)) == A


def test_a_dry_run_takes_nothing_for_written_and_decides_the_same_again() -> None:
    server = Server()
    history = writer(server, dry_run=True)
    for _ in range(2):
        found = story(observed(), A)
        assert found is not None
        assert len(asyncio.run(history.draft(P, found)).creations) == 1
        write(history, found)
    assert history.wait_seconds(P) == 0


def test_the_hold_that_was_confirmed_last_is_remembered_with_its_record() -> None:
    server = Server()
    history = writer(server)
    assert history.released(P) == ""
    found = story(observed(A), B)
    assert found is not None
    write(history, replace(found, released="7f21c0"))
    history.settled(P)
    assert history.released(P) == "7f21c0"
    write(history, story(observed(B), C))
    assert history.released(P) == "7f21c0"
    history.clear()
    assert history.released(P) == ""


def test_what_of_a_rollout_is_recorded_has_the_time_of_its_last_change() -> None:
    history = writer(Server())
    one, other = seen_in({}), seen_in({"phase": "Soaking", "attempt": 2})
    assert history.seen(P) is None
    history.settled(P)
    assert history.seen(P) is None, "a placement without a Rollout"
    history.settled(P, one)
    first = history.seen(P)
    history.settled(P, one)
    again = history.seen(P)
    assert first is not None
    assert again is not None
    assert first[0] == again[0] == one
    assert again[1] >= first[1] >= 0
    history.settled(P, other)
    last = history.seen(P)
    assert last is not None
    assert last[0] == other


def test_a_placement_is_recorded_with_its_generation_and_what_was_recorded_before() -> None:
    server = Server()
    history = writer(server, verified=False)
    found = story(observed(A), B)
    assert found is not None
    write(history, replace(found, released="7f21c0"))
    metadata: Object = {"name": P.name, "generation": 5, "resourceVersion": "31"}
    metadata["annotations"] = {"kcp.io/cluster": P.cluster}
    recording = recording_of(history, *WHY, {"metadata": metadata})
    assert recording is not None
    assert (recording.generation, recording.resource_version) == (5, "31")
    assert (recording.released, recording.verified) == ("7f21c0", False)
    assert recording.why_left is WHY[1]
    going = {**metadata, "deletionTimestamp": "2025-06-06T00:00:00Z", "generation": None}
    deleted = recording_of(history, *WHY, {"metadata": going})
    assert deleted is not None
    assert deleted.generation == 0
    assert deleted.why_left(A) == DELETED


_wishes = st.lists(
    st.tuples(
        st.lists(st.sampled_from([A, B, C]), unique=True),
        st.sampled_from(["done", "lost", "restart"]),
    ),
    max_size=6,
)


@given(_wishes)
def test_folding_the_records_gives_what_the_slices_hold_whatever_failed_on_the_way(
    history: list[tuple[list[Destination], str]],
) -> None:
    """``lost``: the record was written, and the slice was not."""
    server = Server()
    process, held = writer(server), list[Destination]()
    for wanted, outcome in history:
        if outcome == "restart":
            process = writer(server)
        found = story(observed(*held), *wanted)
        if found is None:
            continue
        write(process, found)
        assert server.reported == set(wanted)
        if outcome != "lost":
            held = wanted
            process.settled(P)
