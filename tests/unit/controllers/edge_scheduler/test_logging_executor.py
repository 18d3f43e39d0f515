"""Receivers are written before givers, and what is remembered is what was written."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from skerry.api.edge import (
    EDGE_PLACEMENTS,
    GUARD_FINALIZER,
    SINGLE_PLACEMENT_SLICES,
    SliceOwner,
    edge_placement_ref,
    location_ref,
)
from skerry.api.errors import ApiError, Conflict
from skerry.api.kcp.resources import workspace_ref
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.controllers.edge_scheduler.consent import ConsentState
from skerry.controllers.edge_scheduler.decide import SlicePlan
from skerry.controllers.edge_scheduler.guards import GuardState
from skerry.controllers.edge_scheduler.history import Members
from skerry.controllers.edge_scheduler.history_writer import HistoryWriter
from skerry.controllers.edge_scheduler.logging_executor import LoggingExecutor
from skerry.controllers.edge_scheduler.observed import (
    NO_CAUSE,
    Cause,
    Gathered,
    Gone,
    Kept,
    Observed,
    Result,
)
from skerry.controllers.edge_scheduler.placement_cache import PlacementCache
from skerry.kit import log
from skerry.kit.clock import SystemClock
from skerry.logic.fleet.history.record import Maker
from skerry.logic.fleet.placement.destination import DestinationTable
from skerry.logic.fleet.placement.grants import grant_of
from skerry.logic.fleet.placement.records import Destination, location_of, placement_of
from skerry.logic.machinery.plan import Action, Create, Delete, Plan, Target, Update
from skerry.runtime.client import Client
from skerry.runtime.execute import Outcome
from skerry.runtime.metrics import RuntimeMetrics
from tests.kit.chain import building, recording

NOW = datetime(2025, 6, 6, tzinfo=UTC)

P = edge_placement_ref("wmw", "p")
CAUSE = Cause("Location", location_ref("imw", "l"))
CAUSES = Gathered((CAUSE,), 1)
HERE = (Destination("imw", "l", "t", "u"),)


class Server:
    """Takes writes, and refuses those to some names."""

    def __init__(self, *refused: str) -> None:
        self.clock = SystemClock()
        self.refused = refused
        self.writes: list[str] = []
        # Whether writes may come together, those that did, and what the next are answered with.
        self.offers: dict[str, str] = {}
        self.together: list[list[str]] = []
        self.answers: list[Object] = []
        self.base = ""

    def for_cluster(self, cluster: str) -> Server:
        return self

    async def extensions(self, *, again: bool = False) -> dict[str, str]:
        return self.offers

    def path(self, gvr: Any, namespace: str = "", name: str = "", subresource: str = "") -> str:
        return f"/apis/{gvr.resource}/{name}".rstrip("/")

    async def call(self, method: str, path: str, query: Any, body: Object) -> Object:
        requests = body["requests"]
        self.together.append([f"{each['method']} {each['path'][6:]}" for each in requests])
        metadata = {"resourceVersion": "9"}
        written = [{"code": 200, "body": {"metadata": metadata}} for _ in requests]
        return {"answers": self.answers or written}

    async def create(self, gvr: Any, obj: Object, *args: Any, **options: Any) -> Object:
        await self._take(f"create {obj['metadata']['name']}")
        return {"metadata": {**obj["metadata"], "resourceVersion": "9"}}

    async def update(self, gvr: Any, obj: Object, **options: Any) -> Object:
        await self._take(f"update {obj['metadata']['name']}")
        return {"metadata": {**obj["metadata"], "resourceVersion": "9"}}

    async def delete(self, gvr: Any, name: str, *args: Any) -> Object:
        await self._take(f"delete {name}")
        return {"metadata": {}}

    async def _take(self, write: str) -> None:
        await asyncio.sleep(0)
        if write.split()[1] in self.refused:
            raise Conflict.of("edge.kcp.io", "singleplacementslices", write, "refused")
        self.writes.append(write)


class Recorder:
    """An overlay that keeps nothing."""

    def begin(self, action: Action) -> None: ...
    def done(self, outcome: Outcome) -> None: ...
    def failed(self, action: Action, error: BaseException) -> None: ...


class World:
    def __init__(self, *refused: str, dry_run: bool = False) -> None:
        self.server = Server(*refused)
        self.table = DestinationTable()
        self.reports: list[str] = []
        self.consent = ConsentState(self.table, lambda key: self.reports.append(key.cluster))
        self.cache = PlacementCache(self.consent, GuardState(DestinationTable(), lambda: NOW))
        self.reconciled: list[ObjectRef] = []
        self.executor = LoggingExecutor(
            cast(Client, self.server),
            Recorder(),
            self.cache,
            self.reconciled.append,
            metrics=RuntimeMetrics(),
            dry_run=dry_run,
        )

    def execute(self, plan: Plan) -> list[Outcome]:
        return asyncio.run(self.executor.execute(plan))


def target(name: str) -> Target:
    return Target(SINGLE_PLACEMENT_SLICES, name, cluster="wmw")


def plan(*, tracked: bool = False) -> SlicePlan:
    creates: list[Action] = [
        Create(target(name), {"metadata": {"name": name}}, "SliceMissing") for name in ("b", "c")
    ]
    observed = Observed(P, SliceOwner("p", "u"), Result(1), HERE, causes=CAUSES, tracked=tracked)
    actions = [*creates, Delete(target("a"), "SliceSurplus")]
    return SlicePlan(actions, observed=observed, receivers=2)


def test_a_giver_goes_after_every_receiver() -> None:
    world = World()
    outcomes = world.execute(plan())
    assert world.server.writes[-1] == "delete a"
    assert sorted(world.server.writes[:-1]) == ["create b", "create c"]
    assert len(outcomes) == 3
    assert world.reconciled == [P]


def test_no_giver_goes_if_a_receiver_could_not_be_written() -> None:
    world = World("c")
    with pytest.raises(ApiError):
        world.execute(plan())
    assert world.server.writes == ["create b"]


def test_the_cause_is_discharged_when_the_work_is_done_and_not_when_it_failed() -> None:
    for world, left in ((World(), NO_CAUSE), (World("c"), CAUSES)):
        world.cache.causes.note(P, CAUSE)
        with suppress(ApiError):
            world.execute(plan())
        assert world.cache.causes.of(P) == left


def test_reports_wait_no_longer_for_a_placement_that_others_finalizers_keep() -> None:
    world = World()
    world.table.put_workspace("wmw", {}, workspace_ref("root", "wmw"))
    world.table.put_location(location_of(building.location("l", {}, {})))
    world.table.put_grant(grant_of(building.grant("g", paths=["root:other"], selector={})))
    world.table.put_placement(placement_of(building.placement("p", {})))
    assert world.consent.unreconciled.waits("imw", lambda _: True)
    world.execute(SlicePlan(observed=Kept(P)))
    assert world.reports == ["imw"]
    assert world.server.writes == []
    assert world.reconciled == []


def test_the_cause_stays_for_the_decision_where_none_was_made_yet() -> None:
    world = World()
    world.cache.causes.note(P, CAUSE)
    world.execute(replace(plan(), undecided=True))
    assert world.cache.causes.of(P) == CAUSES
    world.execute(plan())
    assert world.cache.causes.of(P) == NO_CAUSE


def test_what_runs_is_what_was_written_and_unknown_after_a_failure() -> None:
    for world, known in ((World(), True), (World("c"), False)):
        world.cache.running.note(P, ())
        with suppress(ApiError):
            world.execute(plan(tracked=True))
        assert world.cache.running.knows(P) is known
    assert world.cache.result(P) == Result(1), "the status says what was found all the same"


def test_a_dry_run_leaves_what_is_running_alone() -> None:
    world = World(dry_run=True)
    world.cache.running.note(P, HERE)
    world.execute(plan(tracked=True))
    assert world.cache.running.destinations(P) == frozenset(HERE)


def test_a_placement_that_is_gone_is_forgotten_and_nothing_is_written() -> None:
    world = World()
    world.execute(plan())
    world.server.writes.clear()
    assert world.execute(SlicePlan(observed=Gone(P))) == []
    assert (world.cache.result(P), world.server.writes) == (None, [])


def test_every_written_slice_is_logged_with_what_caused_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log.configure(verbosity=2)
    World().execute(plan())
    lines = [each for each in capsys.readouterr().err.splitlines() if "created Single" in each]
    assert len(lines) == 2
    for text in ('triggeringKind="Location"', 'key="imw|l"', 'location="l"'):
        assert all(text in line for line in lines)


@pytest.mark.parametrize(("refused", "dry_run"), [("", False), ("p", False), ("", True)])
def test_the_event_of_a_finalizer_is_expected_where_it_was_written(
    refused: str, dry_run: bool
) -> None:
    world = World(refused, dry_run=dry_run)
    old = {"metadata": {"name": "p"}}
    new = {"metadata": {"name": "p", "finalizers": [GUARD_FINALIZER]}}
    write = Update(Target(EDGE_PLACEMENTS, "p", cluster="wmw"), new, "GuardNeeded")
    with suppress(ApiError):
        world.execute(replace(plan(), before=(write,), finalizes=True))
    expected = world.cache.guards.take_finalizer(P, old, new)
    assert expected is (not refused and not dry_run)


FINALIZER = Update(
    Target(EDGE_PLACEMENTS, "p", cluster="wmw"), {"metadata": {"name": "p"}}, "GuardNeeded"
)


def recorded_world(*answers: Object, together: bool = False) -> tuple[World, SlicePlan]:
    """Return a world with history, and a plan with finalizer, record and slices."""
    world = World()
    if together:
        world.server.offers = {"atomic-batch": "/extensions/v1/atomic-batch"}
    world.server.answers = list(answers)
    client = cast(Client, world.server)
    maker, metrics = Maker("edge-scheduler"), RuntimeMetrics()
    history = HistoryWriter(client, maker, Members(), list, metrics=metrics)
    heard = world.reconciled.append
    world.executor = LoggingExecutor(
        client, Recorder(), world.cache, heard, history, metrics=metrics
    )
    found = recording.story(recording.observed(), recording.A)
    assert found is not None
    story = replace(found, is_first=True)
    return world, replace(plan(), before=(FINALIZER,), finalizes=True, story=story)


def test_a_finalizer_comes_before_the_record_and_that_before_the_slices() -> None:
    """A process that starts anew takes records that are younger than the placement for decisions
    without effect so far; one that the finalizer had made older would be written again."""
    world, given = recorded_world()
    world.execute(given)
    kinds = [each.split("-")[0] for each in world.server.writes]
    assert given.story is not None
    assert kinds[:2] == ["update p", f"create {given.story.subject.name}"]
    assert sorted(kinds[2:]) == ["create b", "create c", "delete a"]


_SLICES = "POST singleplacementslices"
_ALL = ["PUT edgeplacements/p", "POST decisionrecords", _SLICES, _SLICES]


def test_what_a_decision_writes_is_one_request_where_the_server_takes_it() -> None:
    world, given = recorded_world(together=True)
    outcomes = world.execute(given)
    assert world.server.together == [_ALL]
    assert world.server.writes == ["delete a"], "a giver goes after every receiver"
    assert [each.result for each in outcomes] == ["created", "created", "deleted"]


def test_more_slices_than_a_few_follow_what_explains_them() -> None:
    world, given = recorded_world(together=True)
    names = "bcdef"
    creates = [Create(target(name), {"metadata": {"name": name}}, "SliceMissing") for name in names]
    world.execute(replace(given, actions=creates, receivers=len(creates)))
    assert world.server.together == [_ALL[:2]]
    assert sorted(world.server.writes) == [f"create {name}" for name in names]


def test_what_guards_write_goes_between_records_and_slices() -> None:
    world, given = recorded_world(together=True)
    book = Update(Target(EDGE_PLACEMENTS, "p", cluster="wmw"), {"metadata": {"name": "p"}}, "Book")
    world.execute(replace(given, before=(FINALIZER, book)))
    assert world.server.together == [_ALL[:2]]
    assert world.server.writes[0] == "update p"


def test_slices_are_written_though_a_record_is_refused() -> None:
    codes = (424, 422, 424, 424)
    world, given = recorded_world(*({"code": code} for code in codes), together=True)
    world.execute(given)
    assert len(world.server.writes) == 5, "the finalizer, the record once more, and three slices"


def test_nothing_is_written_where_a_slice_is_not_as_it_was_seen() -> None:
    codes = (424, 424, 409, 424)
    world, given = recorded_world(*({"code": code} for code in codes), together=True)
    with pytest.raises(ApiError):
        world.execute(given)
    assert world.server.writes == []
    assert not world.cache.guards.take_finalizer(P, {"metadata": {}}, FINALIZER.object)


def test_a_finalizer_and_slices_go_together_though_their_record_is_there_already() -> None:
    world, given = recorded_world(together=True)
    many = [Create(target(name), {"metadata": {"name": name}}, "SliceMissing") for name in "bcdef"]
    first = replace(given, actions=many, receivers=len(many), before=(), finalizes=False)
    world.server.refused = ("f",)
    with pytest.raises(ApiError):
        world.execute(first)
    world.server.refused = ()
    outcomes = world.execute(given)
    assert world.server.together == [[_ALL[0], _SLICES, _SLICES]]
    assert [each.result for each in outcomes] == ["created", "created", "deleted"]
