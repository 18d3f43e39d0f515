from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.api.edge_identity import EDGE_GROUPS, EdgeName
from skerry.api.errors import TooManyRequests
from skerry.kit.clock import LoopClock
from skerry.runtime.client import Client
from skerry.runtime.http import Limits
from skerry.runtime.kubeconfig import ClientConfig, connect, load
from skerry.server.accounts import AccountSettings
from skerry.server.flow import FairFlow, FlowSettings
from skerry.server.http.message import Sender
from skerry.server.lanes import LaneSettings
from skerry.server.request.info import RequestInfo
from skerry.server.user import User
from tests.kit.server.clock import HandClock
from tests.kit.server.flow import admitted
from tests.kit.server.hub import CONFIG_MAPS, Hub, config_map, running_hub
from tests.kit.sim.loop import virtual

GET = RequestInfo("/api/v1/pods", "get", is_resource=True)
CREATE = RequestInfo("/api/v1/pods", "create", is_resource=True)
ALICE, BOB, CAROL = User("alice"), User("bob"), User("carol")
MASTER = User("root", groups=("system:masters",))


ONE = LaneSettings(1, share=1)


def account(home: str, name: str = "default:default") -> User:
    """Return a ServiceAccount of a workspace."""
    groups = ("system:serviceaccounts", "system:authenticated")
    return User(f"system:serviceaccount:{name}", groups=groups, home=home)


class Held:
    """A request that runs until it is let go."""

    def __init__(self, flow: FairFlow, info: RequestInfo, user: User) -> None:
        self.running = False
        self._done = asyncio.Event()
        self.task = asyncio.ensure_future(self._run(flow, info, user))

    async def _run(self, flow: FairFlow, info: RequestInfo, user: User) -> None:
        async with admitted(flow, info, user):
            self.running = True
            await self._done.wait()

    async def finish(self) -> None:
        self._done.set()
        await self.task


async def begun(flow: FairFlow, user: User, count: int, info: RequestInfo = GET) -> list[Held]:
    held = [Held(flow, info, user) for _ in range(count)]
    await settle()
    return held


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def end(*held: Held) -> None:
    for one in held:
        one.task.cancel()
    await asyncio.gather(*(one.task for one in held), return_exceptions=True)


async def test_one_user_cannot_take_every_seat() -> None:
    flow = FairFlow(FlowSettings(reading=LaneSettings(4)))
    greedy = await begun(flow, ALICE, 10)
    assert sum(one.running for one in greedy) == 2
    (other,) = await begun(flow, BOB, 1)
    assert other.running
    await end(*greedy, other)
    assert (flow.reading.in_flight, flow.reading.waiting) == (0, 0)


async def test_reading_and_changing_do_not_hinder_each_other() -> None:
    flow = FairFlow(FlowSettings(reading=ONE, mutating=ONE))
    readers = await begun(flow, ALICE, 2)
    (writer,) = await begun(flow, ALICE, 1, CREATE)
    assert writer.running
    await end(*readers, writer)


async def test_freed_seats_go_round_the_waiting_users() -> None:
    flow = FairFlow(FlowSettings(reading=ONE))
    (first,) = await begun(flow, CAROL, 1)
    alices = await begun(flow, ALICE, 3)
    bobs = await begun(flow, BOB, 1)
    await first.finish()
    await settle()
    assert [one.running for one in alices] == [True, False, False]
    await alices[0].finish()
    await settle()
    assert bobs[0].running
    await bobs[0].finish()
    await settle()
    assert alices[1].running
    await end(*alices, *bobs)


def edge(number: int) -> User:
    """Return the user of an edge."""
    mailbox = EdgeName(f"mailbox{number}", f"00000000-0000-4000-8000-{number:012}")
    return User(mailbox.user, groups=EDGE_GROUPS, home=mailbox.mailbox)


def lease_change(verb: str = "patch", name: str = "syncer-heartbeat") -> RequestInfo:
    path = f"/apis/coordination.k8s.io/v1/namespaces/default/leases/{name}"
    return RequestInfo(
        path, verb, is_resource=True, group="coordination.k8s.io", version="v1",
        resource="leases", namespace="default", name=name,
    )  # fmt: skip


@virtual
async def test_heartbeats_of_edges_come_by_bursts_and_hold_no_seats_until_then() -> None:
    flow = FairFlow()
    (first,) = await begun(flow, edge(0), 1, lease_change())
    assert first.running, "one that comes alone does not wait"
    others = [
        one for number in range(1, 4) for one in await begun(flow, edge(number), 1, lease_change())
    ]
    assert [one.running for one in others] == [False] * 3
    assert (flow.edges.in_flight, flow.edges.waiting) == (1, 0)
    await asyncio.sleep(0.1)
    await settle()
    assert [one.running for one in others] == [True] * 3
    await end(first, *others)


@virtual
async def test_all_edges_of_a_hub_that_was_away_wait_their_turn_and_none_is_refused() -> None:
    flow = FairFlow()
    info = lease_change("get")
    returning = [Held(flow, info, edge(number)) for number in range(3000)]
    await settle()
    seats = flow.settings.edges.seats
    assert (flow.edges.in_flight, flow.edges.waiting) == (seats, 3000 - seats)
    # People and controllers have seats of their own.
    others = [*await begun(flow, ALICE, 1), *await begun(flow, BOB, 1, CREATE)]
    assert all(one.running for one in others)
    for one in returning:
        await one.finish()
    assert (flow.edges.in_flight, flow.edges.waiting, flow.edges.rejected) == (0, 0, 0)
    await end(*others)


async def test_an_edge_leaves_seats_to_others_and_cannot_fill_the_queue() -> None:
    flow = FairFlow(FlowSettings(edges=LaneSettings(4, share=0.25, queue=2, max_waiting=100)))
    info = lease_change("get")
    greedy = await begun(flow, edge(0), 3, info)
    assert [one.running for one in greedy] == [True, False, False]
    with pytest.raises(TooManyRequests):
        async with admitted(flow, info, edge(0)):
            pass
    (other,) = await begun(flow, edge(1), 1, info)
    assert other.running
    await end(*greedy, other)


@virtual
async def test_nothing_else_waits_for_a_burst() -> None:
    flow = FairFlow()
    (first,) = await begun(flow, edge(0), 1, lease_change())
    lease = lease_change()
    at_once = [
        *await begun(flow, edge(1), 1, lease_change("get")),
        *await begun(flow, edge(2), 1, lease_change("create")),
        *await begun(flow, edge(3), 1, lease_change(name="another")),
        *await begun(flow, ALICE, 1, lease),
        *await begun(flow, MASTER, 1, lease),
    ]
    assert all(one.running for one in at_once)
    await end(first, *at_once)


async def test_a_full_queue_is_asked_to_come_back() -> None:
    flow = FairFlow(FlowSettings(reading=LaneSettings(1, share=1, queue=2)))
    held = await begun(flow, ALICE, 3)
    with pytest.raises(TooManyRequests) as error:
        async with admitted(flow, GET, ALICE):
            pass
    assert error.value.headers["Retry-After"] == "1"
    assert flow.reading.rejected == 1
    await end(*held)


@pytest.mark.looptime
async def test_a_wait_that_is_too_long_is_asked_to_come_back() -> None:
    flow = FairFlow(FlowSettings(reading=LaneSettings(1, share=1, queue_seconds=15)))
    (held,) = await begun(flow, ALICE, 1)
    with pytest.raises(TooManyRequests):
        async with admitted(flow, GET, BOB):
            pass
    await end(held)
    assert flow.reading.in_flight == flow.reading.waiting == 0
    assert not flow.reading._queues


async def test_masters_and_probes_pass_a_full_server() -> None:
    flow = FairFlow(FlowSettings(reading=LaneSettings(1, share=1, queue=0)))
    held = await begun(flow, ALICE, 1)
    assert flow.admitted(GET, MASTER) is None
    assert flow.admitted(RequestInfo("/readyz", "get"), ALICE) is None
    with pytest.raises(TooManyRequests):
        async with admitted(flow, GET, ALICE):
            raise AssertionError
    await end(*held)


async def test_watches_of_a_user_are_counted_while_they_last() -> None:
    flow = FairFlow(FlowSettings(watches=1))
    release = asyncio.Event()

    async def run(_: Sender) -> None:
        await release.wait()

    watching = asyncio.ensure_future(flow.counted_watches(ALICE, 1, run)(None))  # type: ignore[arg-type]
    await settle()
    assert flow.watches == 1
    with pytest.raises(TooManyRequests, match="too many watches are open for user alice"):
        flow.check_watches(ALICE, 1)
    flow.check_watches(BOB, 1)
    release.set()
    await watching
    assert flow.watches == 0
    flow.check_watches(ALICE, 1)


async def test_a_failing_request_gives_its_seat_back() -> None:
    flow = FairFlow()
    with pytest.raises(KeyError):
        async with admitted(flow, GET, ALICE):
            raise KeyError
    assert flow.reading.in_flight == 0


USERS = {"a": ALICE, "b": account("w", "n:b"), "c": account("w", "n:c")}
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["begin", "finish", "cancel"]), st.sampled_from("abc"), st.integers(0)
    ),
    max_size=40,
)


@settings(max_examples=100, deadline=None)
@given(STEPS)
async def test_seats_are_never_exceeded_nor_lost(steps: list[tuple[str, str, int]]) -> None:
    flow = FairFlow(FlowSettings(reading=LaneSettings(3, share=0.7, workspace_share=0.7, queue=4)))
    held: list[Held] = []
    for step, name, index in steps:
        if step == "begin":
            held.append(Held(flow, GET, USERS[name]))
        elif held:
            one = held[index % len(held)]
            if step == "cancel" or one.task.done():
                one.task.cancel()
            elif one.running:
                await one.finish()
        await settle()
        running = [one for one in held if one.running and not one.task.done()]
        assert len(running) == flow.reading.in_flight <= 3
        waiting = [one for one in held if not one.running and not one.task.done()]
        assert len(waiting) == flow.reading.waiting
        if waiting:
            # Whoever waits does so because the seats or the user's share are taken.
            assert flow.reading.in_flight == 3 or all(
                flow.reading._held.get(user, 0) >= 2
                or flow.reading._held_by_workspace.get(workspace, 0) >= 2
                for user, (workspace, _) in flow.reading._queues.items()
            )
        assert flow.reading._held_by_workspace.get("w", 0) <= 2
    await end(*held)
    assert (flow.reading.in_flight, flow.reading.waiting) == (0, 0)
    assert not flow.reading._queues
    assert not flow.reading._held
    assert not flow.reading._held_by_workspace
    assert not flow.reading._waiting_by_workspace


async def test_accounts_of_equal_name_in_two_workspaces_are_two_principals() -> None:
    flow = FairFlow(FlowSettings(reading=LaneSettings(4)))
    greedy = await begun(flow, account("tenant-a"), 10)
    others = await begun(flow, account("tenant-b"), 2)
    assert sum(one.running for one in greedy) == 2
    assert all(one.running for one in others)
    await end(*greedy, *others)


@pytest.mark.parametrize("lane", ["reading", "mutating"])
async def test_all_principals_of_a_workspace_together_cannot_take_every_seat(lane: str) -> None:
    settings: dict[str, Any] = {lane: LaneSettings(8, share=0.25)}
    flow = FairFlow(FlowSettings(**settings))
    info = GET if lane == "reading" else CREATE
    greedy = [
        one
        for number in range(20)
        for one in await begun(flow, account("tenant", f"ns:robot-{number}"), 2, info)
    ]
    assert sum(one.running for one in greedy) == 4
    (other,) = await begun(flow, account("another"), 1, info)
    (person,) = await begun(flow, ALICE, 1, info)
    assert other.running
    assert person.running
    await greedy[0].finish()
    await settle()
    assert sum(one.running for one in greedy) == 5
    await end(*greedy, other, person)
    for counts in (flow.reading, flow.mutating):
        assert not any((counts._held, counts._held_by_workspace, counts._waiting_by_workspace))


async def test_those_who_wait_are_limited_for_a_workspace_and_for_everybody() -> None:
    flow = FairFlow(FlowSettings(reading=LaneSettings(2, queue=3, max_waiting=5)))
    tenant = [one for n in range(8) for one in await begun(flow, account("tenant", f"ns:r{n}"), 1)]
    assert flow.reading.waiting == 3
    people = [one for n in range(8) for one in await begun(flow, User(f"user-{n}"), 1)]
    assert flow.reading.waiting == 5
    assert flow.reading.rejected == 4 + 5
    await end(*tenant, *people)
    assert not flow.reading._queues


async def test_requests_without_credentials_have_a_small_lane_of_their_own() -> None:
    anonymous = User("system:anonymous", groups=("system:unauthenticated",))
    flow = FairFlow(FlowSettings(anonymous=LaneSettings(2, share=1, queue=3)))
    flood = await begun(flow, anonymous, 10)
    assert (flow.anonymous.in_flight, flow.anonymous.waiting) == (2, 3)
    assert flow.anonymous.rejected == 5
    readers = await begun(flow, ALICE, 10)
    assert all(one.running for one in readers)
    await end(*flood, *readers)


class Charged:
    """A flow whose clock only moves on demand."""

    def __init__(self, **settings: Any) -> None:
        self.clock = HandClock()
        accounts = AccountSettings(rate=0.5, burst=1.0)
        self.flow = FairFlow(FlowSettings(accounts=accounts, **settings), self.clock)

    def delay(self, user: User) -> float:
        return self.flow._delay(self.flow._accounts, user.principal, user)


def test_who_kept_the_loop_busy_waits_and_nobody_else_does() -> None:
    c = Charged()
    c.flow.charge(ALICE, 0.9)
    assert c.delay(ALICE) == 0
    c.flow.charge(ALICE, 0.6)
    assert c.delay(ALICE) == pytest.approx(1.0)
    assert c.delay(BOB) == 0
    c.clock.advance(0.5)
    assert c.delay(ALICE) == pytest.approx(0.5)
    c.clock.advance(0.5)
    assert c.delay(ALICE) == 0


def test_those_over_their_burst_share_one_rate() -> None:
    c = Charged()
    users = [User(f"user-{n}") for n in range(5)]
    for user in users:
        c.flow.charge(user, 2.0)
    assert [c.delay(user) for user in users] == [pytest.approx(10.0)] * 5
    c.clock.advance(9.9)
    assert all(c.delay(user) > 0 for user in users)
    c.clock.advance(0.2)
    assert all(c.delay(user) == 0 for user in users)


def test_the_accounts_of_a_workspace_pay_for_each_other() -> None:
    c = Charged()
    for number in range(20):
        c.flow.charge(account("tenant", f"ns:robot-{number}"), 0.1)
    fresh = account("tenant", "ns:fresh")
    assert c.delay(fresh) > 1
    assert c.delay(account("another", "ns:fresh")) == 0


@pytest.mark.parametrize("group", ["system:masters", "system:kcp:admin"])
def test_administrators_are_not_charged(group: str) -> None:
    c = Charged()
    admin = User("admin", groups=(group,))
    c.flow.charge(admin, 100)
    assert c.delay(admin) == 0


def test_ordinary_requests_are_not_counted_and_accounts_are_bounded() -> None:
    c = Charged()
    for _ in range(10_000):
        c.flow.charge(ALICE, 0.0009)
    assert not c.flow._accounts._accounts
    for number in range(20_000):
        c.flow.charge(User(f"invented-{number}"), 0.002)
    assert len(c.flow._accounts._accounts) <= 4096


def test_strangers_are_charged_for_everything_and_share_one_account() -> None:
    c = Charged()
    anonymous = User("system:anonymous", groups=("system:unauthenticated",))
    for _ in range(3000):
        c.flow.charge(anonymous, 0.0001)
    assert c.flow._delay(c.flow._strangers, "system:unauthenticated", anonymous) > 0.5
    assert c.delay(ALICE) == 0


def test_credentials_that_do_not_hold_are_charged_to_their_address() -> None:
    c = Charged()
    for _ in range(3000):
        c.flow.charge(None, 0.0001, "10.0.0.9")
    refusal = c.flow.refusal_of("10.0.0.9")
    assert refusal is not None
    assert refusal.headers["Retry-After"] == "1"
    assert c.flow.refusal_of("10.0.0.10") is None
    c.clock.advance(2)
    assert c.flow.refusal_of("10.0.0.9") is None


async def test_a_long_debt_is_refused_with_the_time_to_come_back() -> None:
    c = Charged()
    c.flow.charge(ALICE, 6.0)
    with pytest.raises(TooManyRequests) as error:
        async with admitted(c.flow, GET, ALICE):
            raise AssertionError
    assert error.value.headers["Retry-After"] == "10"
    assert c.flow.reading.rejected == 1
    async with admitted(c.flow, GET, BOB):
        pass


@pytest.mark.looptime
async def test_a_short_debt_is_waited_for(looptime: Any) -> None:
    flow = FairFlow(FlowSettings(accounts=AccountSettings(rate=0.5, burst=1.0)), LoopClock())
    flow.charge(ALICE, 1.5)
    async with admitted(flow, GET, ALICE):
        assert looptime == pytest.approx(1.0)
    assert not flow._delayed


async def test_a_stream_of_several_watches_counts_as_many() -> None:
    flow = FairFlow(FlowSettings(watches=10, workspace_watches=15))
    release = asyncio.Event()

    async def run(_: Sender) -> None:
        await release.wait()

    first, second = account("tenant", "ns:a"), account("tenant", "ns:b")
    flow.check_watches(first, 10)
    watching = asyncio.ensure_future(flow.counted_watches(first, 10, run)(None))  # type: ignore[arg-type]
    await settle()
    assert flow.watches == 10
    with pytest.raises(TooManyRequests, match="too many watches are open for user"):
        flow.check_watches(first, 1)
    flow.check_watches(second, 5)
    with pytest.raises(TooManyRequests, match="principals of workspace tenant"):
        flow.check_watches(second, 6)
    flow.check_watches(account("another"), 10)
    release.set()
    await watching
    assert not any((flow._watches, flow._watches_by_workspace))


# Over the wire, with a hub's own charges.

# More at once than may wait for their account.
_AT_ONCE = 40
_JSON = {"content-type": "application/json"}


def client_of(hub: Hub, user: str) -> Client:
    config = load([hub.running.kubeconfig])
    server = hub.running.url
    found = ClientConfig(server=server, ca=config.ca, token=hub.tokens[user])
    # Who connects shares a loop with what burns: on a busy machine a handshake takes long.
    return Client(connect(found, limits=Limits(connect_seconds=60.0)))


async def test_a_burner_gets_429_while_another_user_is_answered(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub:
        mine = await hub.workspace("root", "mine", admin="alice")
        theirs = await hub.workspace("root", "theirs", admin="bob")
        await hub.create(theirs, CONFIG_MAPS, config_map("a"))
        alice, bob = client_of(hub, "alice").transport, client_of(hub, "bob").transport
        # A thousand times the work of an ordinary request; without workers the loop does it.
        body = orjson.dumps(config_map("heavy", **{f"k{n}": "" for n in range(20_000)}))
        statuses: Counter[int] = Counter()
        answered = 0

        async def burn() -> None:
            while not statuses[429]:
                path = f"/clusters/{mine}{CONFIG_MAPS}"
                reply = await alice.request("POST", path, "dryRun=All", _JSON, body)
                statuses[reply.status] += 1

        async with asyncio.timeout(240), asyncio.TaskGroup() as tasks:
            for _ in range(_AT_ONCE):
                tasks.create_task(burn())
            while not statuses[429]:
                reply = await bob.request("GET", f"/clusters/{theirs}{CONFIG_MAPS}/a")
                assert reply.status == 200
                answered += 1
        assert statuses[201] > 1
        assert answered > 1
        assert (await bob.request("GET", f"/clusters/{theirs}{CONFIG_MAPS}/a")).status == 200
        await alice.close()
        await bob.close()
