"""Heartbeats are passed on, not too often, and nonsense is not."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.edge import (
    HEARTBEAT_LEASE,
    HEARTBEAT_LEASE_SECONDS,
    HEARTBEAT_NAMESPACE,
    Mailbox,
)
from skerry.api.kcp.resources import SYNC_TARGETS, WORKSPACES
from skerry.api.objects import Object
from skerry.controllers.mailbox.events import BY_CONTENT, BY_UID, by_content, by_uid
from skerry.controllers.mailbox.relay import (
    UNKNOWN_AGE,
    Age,
    Heartbeat,
    HeartbeatExecutor,
    HeartbeatObserver,
    MailboxContent,
    RelayTimes,
    decide,
    enqueue_on_lease,
    enqueue_on_mailbox,
)
from skerry.kit.clock import LoopClock
from skerry.kit.timestamps import rfc3339_micro
from skerry.logic.fleet.placement.heartbeat import LEASES, lean_lease
from skerry.logic.machinery.plan import Patch, Plan
from skerry.runtime.batching import BatchingTransport
from skerry.runtime.client import Client
from skerry.runtime.facts import ServerFacts
from skerry.runtime.index import Key
from skerry.runtime.transport import NO_HEADERS, Answer
from tests.kit.answering import AnsweringTransport
from tests.kit.caches import cache
from tests.kit.sim.loop import virtual

NOW = datetime(2030, 1, 1, 12, 0, 30, tzinfo=UTC)
KEY = Key("imw", "", "florin")


def heartbeat(renewed: str, relayed: str = "") -> Heartbeat:
    return Heartbeat(KEY, (renewed,), relayed)


def test_the_first_heartbeat_is_passed_on_at_once() -> None:
    (action,) = decide(heartbeat("2030-01-01T12:00:29.500000Z"), NOW)
    assert isinstance(action, Patch)
    assert action.subresource == "status"
    assert action.patch == {"status": {"lastSyncerHeartbeatTime": "2030-01-01T12:00:29Z"}}
    assert (action.target.cluster, action.target.name) == ("imw", "florin")


def test_a_newer_heartbeat_is_passed_on() -> None:
    assert decide(heartbeat("2030-01-01T12:00:29Z", "2030-01-01T12:00:00Z"), NOW)


def test_a_heartbeat_already_reported_is_not_reported_again() -> None:
    plan = decide(heartbeat("2030-01-01T12:00:00.700000Z", "2030-01-01T12:00:00Z"), NOW)
    assert not plan
    assert plan.requeue_after_seconds is None


def test_a_hasty_heartbeat_waits_for_its_turn() -> None:
    plan = decide(heartbeat("2030-01-01T12:00:28Z", "2030-01-01T12:00:25Z"), NOW)
    assert not plan
    assert plan.requeue_after_seconds == 7.0


def test_a_hasty_heartbeat_waits_no_longer_where_the_hub_is_a_day_ahead() -> None:
    behind = NOW - timedelta(days=1)
    plan = decide(heartbeat("2030-01-01T12:00:28Z", "2030-01-01T12:00:25Z"), behind)
    assert not plan
    assert plan.requeue_after_seconds == 7.0


@pytest.mark.parametrize("now", [NOW, NOW - timedelta(days=1), NOW + timedelta(hours=1)])
def test_what_was_held_back_arrives_though_nothing_follows_it(now: datetime) -> None:
    hasty = heartbeat("2030-01-01T12:00:28Z", "2030-01-01T12:00:25Z")
    for seconds, exact, left in ((3.0, True, 7.0), (0.0, False, 7.0), (9.5, True, 1.0)):
        plan = decide(replace(hasty, age=Age(seconds, exact)), now)
        assert (list(plan), plan.requeue_after_seconds) == ([], left)
        plan = decide(replace(hasty, age=Age(seconds + left, exact)), now)
        (action,) = plan
        assert isinstance(action, Patch)
        assert action.patch == {"status": {"lastSyncerHeartbeatTime": "2030-01-01T12:00:28Z"}}
        assert plan.requeue_after_seconds is None
        written = heartbeat("2030-01-01T12:00:28Z", "2030-01-01T12:00:28Z")
        after = decide(replace(written, age=Age(3600.0, exact)), now)
        assert (list(after), after.requeue_after_seconds) == ([], None)


def test_what_follows_soon_after_something_held_back_waits_as_long() -> None:
    """However much later it is: the one before has only just been written."""
    late = heartbeat("2030-01-01T12:00:29Z", "2030-01-01T12:00:05Z")
    plan = decide(replace(late, age=Age(0.5, is_exact=True)), NOW)
    assert (list(plan), plan.requeue_after_seconds) == ([], 9.5)


@given(st.lists(st.floats(0.1, 40.0), min_size=1, max_size=30))
def test_no_more_is_passed_on_than_once_in_ten_seconds_and_the_last_always(
    gaps: list[float],
) -> None:
    """Of an edge whose renewals come at any times, and then end."""
    beats = [sum(gaps[: n + 1]) for n in range(len(gaps))]
    relayed, written, later = "", list[float](), list[float]()
    while beats or later:
        at = min([*beats[:1], *later])
        if beats and beats[0] == at:
            renewed = stamp(beats.pop(0))
        later = [each for each in later if each > at]
        age = Age(at - written[-1], is_exact=True) if written else UNKNOWN_AGE
        plan = decide(replace(heartbeat(renewed, relayed), age=age), NOW + timedelta(seconds=at))
        if plan.actions:
            relayed, written = renewed, [*written, at]
        if plan.requeue_after_seconds is not None and not later:
            later = [at + plan.requeue_after_seconds]
    assert relayed[:19] == renewed[:19], "the last has arrived"
    assert all(after - before > 9.9 for before, after in pairwise(written))


def stamp(seconds: float) -> str:
    return rfc3339_micro(NOW + timedelta(seconds=seconds))


@virtual
async def test_for_how_long_a_sync_target_says_something_is_counted_from_its_change() -> None:
    times = RelayTimes(LoopClock())
    assert times.age(KEY) == UNKNOWN_AGE
    first, other = sync_target(), sync_target()
    other["status"] = {"lastSyncerHeartbeatTime": "2030-01-01T12:00:10Z"}
    times.sync_target_changed(None, first)
    await asyncio.sleep(4)
    assert times.age(KEY).seconds == pytest.approx(4.0)
    assert not times.age(KEY).is_exact, "it may have said so for longer"
    times.sync_target_changed(first, other)
    await asyncio.sleep(5)
    times.sync_target_changed(other, {**other, "spec": {}})
    assert times.age(KEY).seconds == pytest.approx(5.0)
    assert times.age(KEY).is_exact
    times.sync_target_changed(other, None)
    assert times.age(KEY) == UNKNOWN_AGE, "one in its place is another"


def test_a_short_lease_is_passed_on_more_often() -> None:
    hasty = replace(
        heartbeat("2030-01-01T12:00:28Z", "2030-01-01T12:00:25Z"), lasts=12, reported=12
    )
    assert decide(hasty, NOW)


def test_how_long_a_lease_lasts_is_reported_where_it_is_unusual() -> None:
    known = heartbeat("2030-01-01T12:00:28Z", "2030-01-01T12:00:28Z")
    (action,) = decide(replace(known, lasts=600), NOW)
    assert isinstance(action, Patch)
    assert action.subresource == ""
    assert action.patch == {"metadata": {"annotations": {HEARTBEAT_LEASE_SECONDS: "600"}}}
    assert not decide(replace(known, lasts=600, reported=600), NOW)
    (action,) = decide(replace(known, reported=600), NOW)
    assert isinstance(action, Patch)
    assert action.patch == {"metadata": {"annotations": {HEARTBEAT_LEASE_SECONDS: None}}}


def test_an_older_heartbeat_never_replaces_a_newer() -> None:
    assert not decide(heartbeat("2030-01-01T11:00:00Z", "2030-01-01T12:00:00Z"), NOW)


def test_what_is_no_time_is_passed_over() -> None:
    assert not decide(heartbeat(""), NOW)
    assert not decide(heartbeat("yesterday"), NOW)
    assert decide(heartbeat("2030-01-01T12:00:29Z", "nonsense"), NOW)


def test_a_forged_time_is_not_passed_on_and_one_that_was_is_replaced() -> None:
    forged, renewed = "2099-01-01T00:00:00Z", "2030-01-01T12:00:29Z"
    assert not decide(heartbeat(forged, "2030-01-01T12:00:00Z"), NOW)
    (action,) = decide(heartbeat(renewed, forged), NOW)
    assert isinstance(action, Patch)
    assert action.patch == {"status": {"lastSyncerHeartbeatTime": renewed}}
    (action,) = decide(Heartbeat(KEY, (forged, forged, renewed), ""), NOW)
    assert isinstance(action, Patch)
    assert action.patch == {"status": {"lastSyncerHeartbeatTime": renewed}}


CONTENT = MailboxContent("xq5f")
MAILBOX = Mailbox("imw", "0e395079-f849-41e9-bd4f-0bcc07a16d3a")


def lease(name: str = HEARTBEAT_LEASE, namespace: str = HEARTBEAT_NAMESPACE) -> Object:
    notes = {"kcp.io/cluster": CONTENT.cluster}
    spec = {"renewTime": "2030-01-01T12:00:29.000000Z", "leaseDurationSeconds": 240}
    metadata = {"name": name, "namespace": namespace, "annotations": notes}
    return {"metadata": metadata, "spec": spec}


def space(content: str = CONTENT.cluster) -> Object:
    return {"metadata": {"name": MAILBOX.workspace}, "spec": {"cluster": content}}


def sync_target() -> Object:
    notes = {"kcp.io/cluster": MAILBOX.cluster, HEARTBEAT_LEASE_SECONDS: "120"}
    metadata = {"name": "florin", "uid": MAILBOX.uid, "annotations": notes}
    status = {"lastSyncerHeartbeatTime": "2030-01-01T12:00:00Z"}
    return {"metadata": metadata, "status": status}


async def test_a_heartbeat_is_that_of_the_sync_target_whose_mailbox_it_is_in() -> None:
    leases = cache(LEASES)
    spaces = cache(WORKSPACES, indexes={BY_CONTENT: by_content})
    targets = cache(SYNC_TARGETS, indexes={BY_UID: by_uid})
    observer = HeartbeatObserver(leases, spaces, targets, lambda _: Age(7.0, is_exact=True))
    assert await observer.observe(CONTENT) is None, "no Lease yet"
    leases.apply("ADDED", lean_lease(lease()))
    assert await observer.observe(CONTENT) is None, "no mailbox of that content"
    spaces.apply("ADDED", space())
    assert await observer.observe(CONTENT) is None, "no SyncTarget"
    targets.apply("ADDED", sync_target())
    found = await observer.observe(CONTENT)
    assert found is not None
    assert (found.sync_target, found.relayed) == (KEY, "2030-01-01T12:00:00Z")
    assert (found.lasts, found.reported) == (240, 120)
    assert found.age == Age(7.0, is_exact=True)
    assert "2030-01-01T12:00:29.000000Z" in found.renewals


def test_only_heartbeat_leases_are_enqueued() -> None:
    added: list[MailboxContent] = []
    handle = enqueue_on_lease(added.append)
    handle(lease(), None)
    handle(None, lease("other"))
    handle(None, lease(namespace="kube-system"))
    assert added == []
    handle(None, lease())
    assert added == [CONTENT]
    assert str(added[0]) == "xq5f"


def test_a_mailbox_is_enqueued_when_it_gets_its_content() -> None:
    added: list[MailboxContent] = []
    handle = enqueue_on_mailbox(added.append)
    handle(None, space(""))
    handle(space(), None)
    handle(space(), space())
    assert added == []
    handle(None, space())
    handle(space(""), space())
    assert added == [CONTENT, CONTENT]


class Hub(AnsweringTransport):
    """A hub that offers batches or does not, and notes what it is asked."""

    def __init__(self, offers: Object | int) -> None:
        self.offers = offers
        self.asked: list[str] = []

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        self.asked.append(f"{method} {path}")
        if path.endswith("/batch"):
            parts = orjson.loads(body)["requests"]
            return Answer(200, {}, orjson.dumps({"answers": [{"code": 200} for _ in parts]}))
        if not path.endswith("/extensions"):
            return Answer(200, {}, b"{}")
        if isinstance(self.offers, int):
            return Answer(self.offers, {}, b"{}")
        return Answer(200, {}, orjson.dumps(self.offers))


QUESTION = "GET /clusters/imw/extensions"
COPY = "PATCH /clusters/imw/apis/workload.kcp.io/v1alpha1/synctargets/florin/status"
BATCH = {"extensions": [{"name": "batch", "path": "/extensions/v1/batch"}]}


def executing(hub: Hub) -> tuple[HeartbeatExecutor, LoopClock]:
    clock, facts = LoopClock(), ServerFacts()
    client = Client(BatchingTransport(hub, clock, facts), clock=clock, facts=facts)
    return HeartbeatExecutor(client, "mailbox-controller"), clock


def copy_of(text: str) -> Plan:
    return decide(heartbeat(text, ""), NOW)


@virtual
async def test_copies_of_one_burst_go_together_where_the_hub_takes_batches() -> None:
    hub = Hub(BATCH)
    executor, _ = executing(hub)
    await executor.execute(Plan())
    assert hub.asked == [], "nobody is asked for nothing"
    await executor.execute(copy_of("2030-01-01T12:00:00.000000Z"))
    assert hub.asked == [QUESTION, COPY]
    later = [copy_of(f"2030-01-01T12:00:{second}.000000Z") for second in (10, 20)]
    await asyncio.gather(*(executor.execute(plan) for plan in later))
    assert hub.asked[2:] == ["POST /clusters/imw/extensions/v1/batch"]


@virtual
@pytest.mark.parametrize("code", [403, 404, 500])
async def test_an_ordinary_hub_gets_one_copy_at_a_time_and_is_not_asked_each_time(
    code: int,
) -> None:
    hub = Hub(code)
    executor, clock = executing(hub)
    plan = copy_of("2030-01-01T12:00:00.000000Z")
    for _ in range(3):
        await executor.execute(plan)
    assert hub.asked == [QUESTION, COPY, COPY, COPY]
    await clock.sleep(61.0)
    await executor.execute(plan)
    # Not found is an answer; a refusal may be withdrawn.
    assert hub.asked.count(QUESTION) == (1 if code == 404 else 2)
