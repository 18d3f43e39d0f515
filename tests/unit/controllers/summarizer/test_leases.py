"""When Leases lapse, and what that costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

import pytest

from skerry.api.objects import Object
from skerry.api.refs import CLUSTER_ANNOTATION
from skerry.controllers.summarizer.leases import Leases
from skerry.kit.timestamps import rfc3339_micro
from skerry.logic.fleet.placement.heartbeat import lean_lease
from skerry.logic.fleet.summary.freshness import LIVE, Lease, lapsed

START = datetime(2030, 1, 1, tzinfo=UTC)


class Timers:
    """A clock that stands still until it is moved, and the timers that wait for it."""

    def __init__(self) -> None:
        self.elapsed = 0.0
        # Of the wall clock here against the hub's.
        self.skew = 0.0
        self.waiting: list[tuple[float, int, Callable[[], None]]] = []
        self.set = 0

    def now(self) -> datetime:
        return START + timedelta(seconds=self.elapsed + self.skew)

    def monotonic(self) -> float:
        return 1000 + self.elapsed

    async def sleep(self, seconds: float) -> None:
        raise NotImplementedError

    def call_later(self, seconds: float, then: Callable[[], None]) -> Cancellable:
        self.set += 1
        entry = (self.elapsed + seconds, self.set, then)
        self.waiting.append(entry)
        return Cancellable(self.waiting, entry)

    def pass_by(self, seconds: float) -> None:
        until = self.elapsed + seconds
        while self.waiting and min(self.waiting)[0] <= until:
            entry = min(self.waiting)
            self.waiting.remove(entry)
            self.elapsed = max(self.elapsed, entry[0])
            entry[2]()
        self.elapsed = until


class Cancellable:
    def __init__(self, waiting: list[tuple[float, int, Callable[[], None]]], entry: object) -> None:
        self._waiting, self._entry = waiting, entry

    def cancel(self) -> None:
        self._waiting[:] = [each for each in self._waiting if each is not self._entry]


class World:
    def __init__(self) -> None:
        self.timers = Timers()
        self.batches: list[Mapping[str, Lease | None]] = []
        self.following_since: float | None = 0.0
        self.leases = Leases(
            self.timers, self.batches.append, lambda: self.following_since, self.timers.call_later
        )
        self._seen: dict[str, Object] = {}

    def beat(self, cluster: str = "mb", seconds: int = 60, ago: float = 0) -> None:
        renewed = START + timedelta(seconds=self.timers.elapsed - ago)
        metadata = {
            "name": "syncer-heartbeat",
            "namespace": "default",
            "uid": "u",
            "resourceVersion": "1",
            "annotations": {CLUSTER_ANNOTATION: cluster},
        }
        spec = {"leaseDurationSeconds": seconds, "renewTime": rfc3339_micro(renewed)}
        obj = lean_lease({"metadata": metadata, "spec": spec})
        self.leases.lease_changed(self._seen.get(cluster), obj)
        self._seen[cluster] = obj

    def delete(self, cluster: str = "mb") -> None:
        self.leases.lease_changed(self._seen.pop(cluster), None)


def test_a_lease_lives_as_long_as_it_says_and_then_it_lapses_once() -> None:
    world = World()
    world.beat()
    assert world.batches == [{"mb": LIVE}]

    world.timers.pass_by(59)
    assert len(world.batches) == 1
    world.timers.pass_by(1)
    assert world.batches[1:] == [{"mb": lapsed("2030-01-01T00:00:00Z")}]
    world.timers.pass_by(1000)
    assert len(world.batches) == 2


def test_a_renewal_of_a_live_lease_changes_nothing_and_sets_no_timer() -> None:
    world = World()
    world.beat()
    for _ in range(100):
        world.timers.pass_by(0.5)
        world.beat()

    assert world.batches == [{"mb": LIVE}]
    assert world.timers.set == 1
    world.timers.pass_by(59)
    assert world.batches == [{"mb": LIVE}]
    world.timers.pass_by(1)
    assert world.batches[1:] == [{"mb": lapsed("2030-01-01T00:00:50Z")}]


def test_an_edge_that_comes_back_is_live_at_once() -> None:
    world = World()
    world.beat()
    world.timers.pass_by(100)

    world.beat()

    assert world.batches[-1] == {"mb": LIVE}
    world.timers.pass_by(61)
    assert world.batches[-1] == {"mb": lapsed("2030-01-01T00:01:40Z")}


def test_a_thousand_edges_lost_at_once_are_two_batches() -> None:
    world = World()
    for number in range(1000):
        world.beat(f"mb-{number}")
        world.timers.pass_by(0.0005)
    world.batches.clear()

    world.timers.pass_by(62)

    assert len(world.batches) <= 2
    assert sum(len(batch) for batch in world.batches) == 1000


def test_a_lease_that_had_lapsed_when_it_was_first_read_is_never_live() -> None:
    world = World()

    world.beat(ago=90)

    assert world.batches == [{"mb": lapsed("2029-12-31T23:58:30Z")}]


def test_what_is_left_of_a_lease_counts_when_it_is_first_read() -> None:
    world = World()
    world.beat(ago=50)

    world.timers.pass_by(9)
    assert world.batches == [{"mb": LIVE}]
    world.timers.pass_by(1)
    assert len(world.batches) == 2


def test_a_lease_made_shorter_lapses_by_its_new_time() -> None:
    world = World()
    world.beat(seconds=3600)
    world.timers.pass_by(1)
    world.beat(seconds=5)

    world.timers.pass_by(5)

    assert world.batches[-1] == {"mb": lapsed("2030-01-01T00:00:01Z")}
    world.timers.pass_by(4000)
    assert len(world.batches) == 2


def test_a_lease_that_is_deleted_is_as_if_there_had_been_none() -> None:
    world = World()
    world.beat()

    world.delete()

    assert world.batches[-1] == {"mb": None}
    world.timers.pass_by(100)
    assert len(world.batches) == 2


def test_a_lease_deleted_and_made_again_and_again_has_one_place_in_the_heap() -> None:
    world = World()
    for _ in range(100):
        world.beat()
        world.delete()
        world.timers.pass_by(0.01)

    assert len(world.leases._heap) == 1


def test_nothing_lapses_while_leases_are_not_followed_nor_before_what_was_missed_is_read() -> None:
    world = World()
    world.beat()
    world.timers.pass_by(30)
    world.following_since = None

    world.timers.pass_by(600)
    assert world.batches == [{"mb": LIVE}]

    world.following_since = world.timers.monotonic()
    world.timers.pass_by(1)
    world.beat()
    world.timers.pass_by(30)
    assert world.batches == [{"mb": LIVE}]


def test_what_was_not_renewed_lapses_once_leases_are_followed_again() -> None:
    world = World()
    world.beat()
    world.following_since = None
    world.timers.pass_by(600)

    world.following_since = world.timers.monotonic()
    world.timers.pass_by(4)

    assert world.batches[-1] == {"mb": lapsed("2030-01-01T00:00:00Z")}


@pytest.mark.parametrize("hours", [-24, 24])
def test_a_clock_that_is_wrong_calls_no_edge_lost_that_renews_its_lease(hours: int) -> None:
    world = World()
    world.timers.skew = 3600.0 * hours
    world.beat()
    world.timers.pass_by(20)
    world.beat()

    assert world.batches[-1] == {"mb": LIVE}
    world.timers.pass_by(50)
    world.beat()
    world.timers.pass_by(50)
    assert world.batches[-1] == {"mb": LIVE}
    world.timers.pass_by(20)
    assert world.batches[-1] == {"mb": lapsed("2030-01-01T00:01:10Z")}


def test_leases_of_other_names_are_nobodys_heartbeat() -> None:
    world = World()
    metadata = {"name": "other", "namespace": "default", "uid": "u", "resourceVersion": "1"}

    world.leases.lease_changed(None, lean_lease({"metadata": metadata, "spec": {}}))

    assert world.batches == []
