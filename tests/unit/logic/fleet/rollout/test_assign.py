"""What a rollout promises at every moment of any history."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from pyroaring import BitMap

from skerry.logic.fleet.rollout.state import OPEN, Gate, State, Wishes
from skerry.logic.fleet.rollout.view import View
from tests.kit.chain.rollout_fleet import Edge, Fleet
from tests.kit.sim.world import seeds_of

REGIONS = ("north", "south", "")


def spec(random: Random) -> dict[str, object]:
    waves: list[dict[str, object]] = [
        {"name": "canary", "until": random.randint(1, 3), "soak": random.choice(["0s", "50s"])},
        {
            "name": "half",
            "until": "50%",
            "spreadBy": ["region"],
            "soak": random.choice(["0s", "9s"]),
            "approval": random.random() < 0.3,
        },
    ]
    return {
        "waves": waves[: random.randint(0, 2)],
        "pace": {
            "concurrency": random.choice([1, 2, "30%"]),
            "maxUnavailable": random.choice([1, 3, "50%"]),
            "per": random.choice([[], ["region"]]),
        },
        "judge": {
            "minReady": random.choice(["0s", "5s"]),
            "deadline": "40s",
            "failures": {"above": random.randint(0, 1)},
        },
        "offline": {"after": "20s", "policy": random.choice(["Defer", "Assign", "Wait"])},
        "joining": {"concurrency": random.choice([1, 5])},
        "onFailure": random.choice(["Rollback", "Rollback", "Pause", "Continue"]),
        "supersede": random.choice(["Replace", "Queue"]),
    }


class History:
    """One random history, checked after every step."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        self.fleet = Fleet(spec(random))
        for _ in range(random.randint(1, 9)):
            self.fleet.join(region=random.choice(REGIONS))
        self.fleet.edit()
        # When waves became quiet, by a clock that never jumps.
        self.quiet: dict[tuple[int, int, str], float] = {}

    def some(self) -> Edge | None:
        edges = list(self.fleet.edges.values())
        return self.random.choice(edges) if edges else None

    def happen(self) -> None:
        self.random.choice((self.edit, self.move, self.sicken, self.disturb, self.wait))()

    def edit(self) -> None:
        fleet, random = self.fleet, self.random
        if random.random() < 0.7:
            fleet.edit(poison=random.random() < 0.4, one_way=random.random() < 0.1)
        else:
            fleet.live = random.choice(list(fleet.revisions))

    def move(self) -> None:
        edge = self.some()
        if edge is not None and len(self.fleet.edges) > 1 and self.random.random() < 0.5:
            self.fleet.leave(edge.uid)
        else:
            self.fleet.join(region=self.random.choice(REGIONS))

    def sicken(self) -> None:
        edge = self.some()
        if edge is None or self.random.random() < 0.3:
            for each in self.fleet.edges.values():
                self.fleet.hear(each)
        elif self.random.random() < 0.5:
            self.fleet.silence(edge)
        else:
            edge.ill = not edge.ill

    def disturb(self) -> None:
        fleet = self.fleet
        match self.random.randint(0, 3):
            case 0:
                fleet.spec["paused"] = not fleet.spec.get("paused")
            case 1:
                fleet.crash_judge()
            case 2:
                wave = fleet.status.get("wave") or {}
                fleet.approved.add(f"{fleet.status.get('digest')}/{wave.get('name')}")
            case _:
                fleet.jumped = self.random.choice([0.0, 1e6])

    def wait(self) -> None:
        self.fleet.seconds += self.random.choice([0.5, 3.0, 15.0, 60.0])

    def work(self) -> None:
        fleet, random = self.fleet, self.random
        match random.randint(0, 5):
            case 0 | 1:
                self.schedule(random.choice([3, 3, 3, 0, 1, 2]))
            case 2 | 3:
                fleet.judge()
            case _:
                fleet.translate()

    def schedule(self, crash_after: int) -> None:
        fleet = self.fleet
        earlier = fleet.view()
        absent = earlier.verdicts.absent
        before = {edge.uid: edge.revision for edge in fleet.edges.values()}
        bad = {n for n, each in fleet.revisions.items() if each.verdict == "Bad"}
        fleet.schedule(crash_after=crash_after)
        state, view = fleet.state(), fleet.view()
        if state.quiet.since:
            turn = (state.attempt, state.wave, state.quiet.since)
            self.quiet.setdefault(turn, fleet.seconds)
        self.check_gates(earlier, state)
        self.check_return(earlier, state)
        changed = [e for e in fleet.edges.values() if before[e.uid] not in (e.revision, 0)]
        limit = fleet.read().pace.concurrency.of(max(len(fleet.places()), 1))
        newly = [e for e in changed if e.revision == state.target != state.stable]
        if newly:
            assert len(fleet.flying()) <= limit, "more in flight than the pace allows"
            self.check_groups({e.labels["region"] for e in newly})
            unwell = (view.verdicts.unavailable | fleet.flying()) & view.given.slots
            allowed = fleet.read().pace.max_unavailable.of(len(fleet.places()))
            fresh = {e.slot for e in newly} - set(view.verdicts.unavailable)
            assert not fresh or len(unwell) <= allowed, "more unwell than may be"
            assert not fleet.read().paused
        came = [e for e in fleet.edges.values() if e.slot is not None and before[e.uid] == 0]
        if came and not fleet.spec.get("force"):
            judged = view.verdicts.joined | view.verdicts.good | view.verdicts.unfit | absent
            limit = fleet.read().join_pace.of(len(fleet.edges))
            assert len((state.joining & view.given.slots) - judged) <= limit, "too many join"
        for edge in changed:
            assert edge.revision in (state.target, state.stable)
            assert edge.revision not in bad - self.asked(), "a bad revision was assigned again"
            if edge.revision == state.target != state.stable:
                assert edge.slot is not None
                assert edge.slot in state.members, "assigned before its wave opened"

    def asked(self) -> set[int]:
        """Return the revisions that a person asks for, whatever is known of them."""
        return set()

    def check_groups(self, regions: set[str]) -> None:
        """Check that where the pace is per region no region is given more than its own."""
        pace = self.fleet.read().pace
        for region in regions if pace.per else ():
            slots = {e.slot for e in self.fleet.edges.values() if e.labels["region"] == region}
            slots.discard(None)
            flying = slots & set(self.fleet.flying())
            assert len(flying) <= pace.concurrency.of(len(slots)), f"too many fly in {region!r}"

    def check_gates(self, earlier: View, state: State) -> None:
        """Check that a wave that is open no more had its evidence, soak and approval."""
        before, seconds = earlier.state, self.fleet.seconds
        if not before.wave or before.attempt != state.attempt:
            return
        more_bad = len(earlier.bad) > before.bad_seen
        if before.phase == state.phase == "Soaking" and before.wave == state.wave and not more_bad:
            assert state.quiet.since == before.quiet.since, "a soak begins anew"
            assert state.quiet.proven >= before.quiet.proven, "soak that was proven is lost"
        if before.phase == state.phase or not earlier.members:
            return
        wave, judged = earlier.given.spec.wave(before.wave), earlier.verdicts
        # Who comes, or comes back, while a wave soaks is not waited for.
        if before.phase == "Progressing" and state.phase != "Paused":
            silent = BitMap() if earlier.given.spec.offline_policy == "Wait" else judged.absent
            unknown = earlier.members - judged.good - judged.bad - judged.excused - judged.unfit
            assert not unknown - silent, "a wave was quiet before all of it was judged"
        if before.wave == state.wave:
            return
        is_last = before.wave == earlier.given.spec.last
        assert is_last or judged.good & earlier.members, "a wave was passed without evidence"
        since = self.quiet.get((before.attempt, before.wave, before.quiet.since), seconds)
        assert seconds - since >= wave.soak, "a wave was passed before it had soaked"
        approved = f"{before.digest}/{before.wave_name}" in self.fleet.approved
        assert approved or not wave.approval, "a wave was passed without its approval"

    def check_return(self, earlier: View, state: State) -> None:
        """Check that who is said to be back has what is stable, in the mailbox too."""
        if state.phase != "RolledBack" or earlier.state.phase == "RolledBack":
            return
        for edge in self.fleet.edges.values():
            heard = earlier.given.slots - earlier.verdicts.absent
            # Who is frozen at an older revision was not moved, and stays.
            if edge.uid in self.fleet.frozen and 0 < edge.revision < state.stable != state.target:
                continue
            if edge.slot is not None and edge.slot in heard:
                assert edge.revision == state.stable == edge.mailbox, "somebody is not back"

    def check(self) -> None:
        fleet, state = self.fleet, self.fleet.state()
        slots = [edge.slot for edge in fleet.edges.values() if edge.slot is not None]
        assert len(slots) == len(set(slots))
        if state.phase == "RolledBack" and state.failure is not None:
            at = {edge.revision for edge in fleet.edges.values() if edge.slot is not None}
            assert state.failure.revision not in at - {state.stable}, "what is bad is somewhere"


class Steered(History):
    """A history in which people steer: they freeze, gate, promote, abort, undo and force."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        # What a person once asked for may be stable since, and is what a return leads to.
        self.ever_asked: set[int] = set()

    def happen(self) -> None:
        if self.random.random() < 0.5:
            super().happen()
        else:
            self.random.choice((self.freeze, self.shut, self.wish, self.wish, self.force))()

    def freeze(self) -> None:
        some = [uid for uid in self.fleet.edges if self.random.random() < 0.4]
        self.fleet.frozen = set(some) if self.random.random() < 0.6 else set()

    def shut(self) -> None:
        self.fleet.gate = self.random.choice([OPEN, Gate(False, "CheckFailed", "a query")])

    def wish(self) -> None:
        fleet, random, status = self.fleet, self.random, self.fleet.status
        target, wave = status.get("target") or 0, (status.get("wave") or {}).get("name", "")
        wishes: dict[str, Any] = {
            "promote": f"{target}/{wave}",
            "abort": target,
            "accept": (target, random.randint(0, 3)),
            "undo": (random.choice(list(fleet.revisions)), fleet.live),
        }
        # Each is an annotation, which stays until somebody removes it.
        name = random.choice([*wishes, ""])
        fleet.wishes = replace(fleet.wishes, **{name: wishes[name]}) if name else Wishes()

    def force(self) -> None:
        number = self.random.choice([1, 2, max(self.fleet.revisions), 99])
        forced = {"revision": number, "reason": "x"}
        self.fleet.spec["force"] = forced if self.random.random() < 0.4 else None

    def schedule(self, crash_after: int) -> None:
        fleet = self.fleet
        before = {edge.uid: edge.revision for edge in fleet.edges.values()}
        self.asked()
        super().schedule(crash_after)
        state = fleet.state()
        for uid in fleet.frozen & fleet.edges.keys() if not fleet.read().force else ():
            edge = fleet.edges[uid]
            if before[uid] and edge.revision != before[uid]:
                assert edge.revision == state.stable, "content moved where it is frozen"
                assert state.phase == "RollingBack", "moved where it is frozen, and no return"

    def check_gates(self, earlier: View, state: State) -> None:
        before = earlier.state
        promoted = self.fleet.wishes.promote == f"{before.target}/{before.wave_name}"
        # A soak begins anew when a check holds again, and when it does not any more.
        if promoted or bool(before.quiet.since) != self.fleet.gate.holds:
            return
        super().check_gates(earlier, state)
        passed = before.wave and before.wave != state.wave and before.attempt == state.attempt
        if passed and before.phase in ("Progressing", "Soaking") and earlier.members:
            assert self.fleet.gate.holds, "a wave was passed while a check did not hold"

    def check_return(self, earlier: View, state: State) -> None:
        # What is forced is said to be there when slices say so: nobody waits for mailboxes.
        if self.fleet.read().force != state.stable:
            super().check_return(earlier, state)

    def asked(self) -> set[int]:
        forced = (self.fleet.spec.get("force") or {}).get("revision", 0)
        self.ever_asked |= {forced, self.fleet.wishes.undo[0]}
        return self.ever_asked


# 349, 432: what a person went back to was bad, and was tried again and again.
@pytest.mark.parametrize("seed", sorted({*seeds_of(1, least=25), 349, 383, 432, 745}))
def test_whoever_steers_every_promise_holds(seed: int) -> None:
    history = Steered(seed)
    for _ in range(150):
        if history.random.random() < 0.3:
            history.happen()
        history.work()
    # Then they leave it alone, and it comes to rest: attempt follows upon attempt no more.
    fleet = history.fleet
    fleet.run(seconds=10, rounds=80)
    attempt = fleet.state().attempt
    fleet.run(seconds=10, rounds=20)
    assert fleet.state().attempt == attempt, fleet.status
    # And when nothing is in its way, what is good arrives.
    fleet.wishes, fleet.gate, fleet.frozen = Wishes(), OPEN, set()
    fleet.spec["force"] = None
    arrives(fleet)


# 386, 445: the good ones of a wave turn bad while it soaks. 779: who had noted that a revision is
# bad died, and the edge that it was bad at left.
@pytest.mark.parametrize("seed", sorted({*seeds_of(1, least=25), 386, 445, 779}))
def test_every_promise_holds_at_every_moment_of_a_history(seed: int) -> None:
    history = History(seed)
    for _ in range(150):
        if history.random.random() < 0.25:
            history.happen()
        history.work()
        history.check()


@pytest.mark.parametrize("seed", seeds_of(1, least=15))
def test_when_nothing_more_happens_every_edge_gets_what_is_good(seed: int) -> None:
    history = History(seed)
    fleet = history.fleet
    for _ in range(60):
        if history.random.random() < 0.3:
            history.happen()
        history.work()
    arrives(fleet)


def arrives(fleet: Fleet) -> None:
    """Have everybody well and nothing in the way, and see that everybody gets what is new."""
    fleet.spec |= {
        "paused": False,
        "onFailure": "Rollback",
        "supersede": "Replace",
        "pace": {"concurrency": 2, "maxUnavailable": "100%"},
    }
    fleet.jumped = 0.0
    for edge in fleet.edges.values():
        fleet.hear(edge)
        edge.ill = False
    fleet.edit()
    fleet.approved |= {f"digest-{number}/half" for number in fleet.revisions}
    fleet.run(seconds=10, rounds=120)
    assert fleet.phase == "Completed", fleet.status
    assert {edge.revision for edge in fleet.edges.values()} <= {fleet.live}


@pytest.mark.parametrize("seed", seeds_of(1, least=8))
def test_illness_that_was_there_before_never_takes_a_revision_back(seed: int) -> None:
    history = History(seed)
    fleet = history.fleet
    fleet.run(seconds=10, rounds=15)
    for edge in fleet.edges.values():
        edge.ill = history.random.random() < 0.5
    fleet.run(seconds=10, rounds=3)
    fleet.edit()
    fleet.run(seconds=10, rounds=60)
    assert fleet.status.get("failure") is None
    assert "RolledBack" not in fleet.phase


@pytest.mark.parametrize("poisoned", [False, True], ids=["sound", "poisoned"])
@pytest.mark.parametrize("seed", seeds_of(2, least=4))
def test_a_crash_of_anybody_changes_no_verdict(seed: int, poisoned: bool) -> None:
    def outcome(crashes: bool) -> tuple[str, object]:
        history = History(seed)
        fleet = history.fleet
        fleet.spec["onFailure"] = "Rollback"
        fleet.spec["offline"] = {}
        fleet.approved |= {f"digest-{number}/half" for number in range(9)}
        fleet.run(seconds=10, rounds=15)
        fleet.edit(poison=poisoned)
        random = Random(seed + 1)
        for _ in range(90):
            if crashes and random.random() < 0.2:
                fleet.crash_judge()
            if crashes:
                fleet.schedule(crash_after=random.randint(0, 2))
            fleet.run(seconds=10)
        return fleet.phase, {n: each.verdict for n, each in fleet.revisions.items()}

    assert outcome(crashes=True) == outcome(crashes=False)


def joining(edges: int, **spec: Any) -> Fleet:
    """Return a fleet of which nobody has anything yet, with its first revision cut."""
    judge = {"minReady": "5s", "deadline": "40s"}
    made = Fleet({"judge": judge, "joining": {"concurrency": 3}, **spec}, edges)
    made.edit()
    return made


def slots(made: Fleet) -> int:
    return sum(edge.slot is not None for edge in made.edges.values())


def test_newcomers_come_in_as_many_at_once_as_may_join() -> None:
    made = joining(10)
    made.run(rounds=3)
    assert slots(made) == 3
    made.run(seconds=6, rounds=3)
    assert slots(made) == 6
    made.run(seconds=6, rounds=9)
    assert (slots(made), made.phase) == (10, "Completed")


def test_a_crash_between_status_and_slices_lets_in_nobody_twice() -> None:
    made = joining(10)
    made.schedule(crash_after=2)
    assert slots(made) == 0
    made.run(rounds=3)
    assert slots(made) == 3


def test_where_nobody_was_before_those_of_the_first_wave_come_first() -> None:
    waves = [{"name": "canary", "until": 1}, {"name": "early", "until": 3}]
    made = joining(10, waves=waves, joining={"concurrency": "100%"})
    made.run(rounds=3)
    assert slots(made) == 1
    made.run(seconds=6, rounds=3)
    # One is proven, which is the evidence that is asked for.
    assert slots(made) == 10


@pytest.mark.parametrize("offline", [False, True])
def test_a_bad_first_revision_stays_with_the_canary_and_a_silent_one_delays(offline: bool) -> None:
    made = joining(5, waves=[{"name": "canary", "until": 1}], offline={"after": "20s"})
    made.poison = {1} if not offline else set()
    made.run()
    [canary] = [edge for edge in made.edges.values() if edge.slot is not None]
    if offline:
        made.silence(canary)
    made.run(seconds=15, rounds=1)
    assert slots(made) == 1
    made.run(seconds=15, rounds=5)
    assert (slots(made) == 1) is not offline


def test_a_return_is_over_when_mailboxes_have_it_though_the_scheduler_died_in_it() -> None:
    """What was said of mailboxes before their slices changed says nothing after it."""
    canary = [{"name": "canary", "until": 2}]
    fleet = Fleet({"waves": canary, "judge": {"minReady": "5s", "deadline": "60s"}}, edges=3)
    fleet.edit()
    fleet.run(seconds=10, rounds=20)
    fleet.edit(poison=True)
    while not fleet.view().verdicts.bad:
        fleet.run(seconds=10)
    moved = [edge for edge in fleet.edges.values() if edge.revision == 2]
    fleet.schedule(crash_after=2)
    assert fleet.phase == "RollingBack"
    fleet.judge()
    fleet.schedule()
    fleet.schedule()
    assert (fleet.phase, {edge.mailbox for edge in moved}) == ("RollingBack", {2})
    fleet.translate()
    fleet.judge()
    fleet.schedule()
    assert fleet.phase == "RolledBack"


def test_an_edit_before_the_first_revision_is_proven_lets_nobody_else_have_it() -> None:
    canary = [{"name": "canary", "selector": {"matchLabels": {"ring": "canary"}}}]
    fleet = Fleet({"waves": canary, "judge": {"minReady": "5s"}, "joining": {"concurrency": 9}})
    fleet.join(ring="canary")
    fleet.join(ring="rest")
    fleet.edit(poison=True)
    fleet.run()
    fleet.edit()
    fleet.run(rounds=3)
    assert [edge.revision for edge in fleet.edges.values()] == [2, 0]
    fleet.run(rounds=20)
    assert [edge.ran for edge in fleet.edges.values()][1] == [2]


@pytest.mark.parametrize("judged", [True, False])
def test_two_bad_revisions_in_a_row_stay_with_the_canary_of_a_new_placement(judged: bool) -> None:
    """Being unwell at the second, coming back from it, or leaving it speaks not for the first."""
    canary = [{"name": "canary", "selector": {"matchLabels": {"ring": "canary"}}}]
    judge = {"minReady": "5s", "deadline": "60s"}
    fleet = Fleet({"waves": canary, "judge": judge, "joining": {"concurrency": 9}})
    fleet.join(ring="canary")
    rest = fleet.join(ring="rest")
    fleet.edit(poison=True)
    fleet.schedule()
    if judged:
        # It was unwell before the second came, so that does not fail by it.
        fleet.run()
    fleet.edit(poison=True)
    fleet.run(seconds=10, rounds=60)
    assert (fleet.phase, rest.ran) == ("Progressing" if judged else "RolledBack", [])
    good = fleet.edit()
    fleet.run(seconds=10, rounds=60)
    assert (fleet.phase, rest.ran) == ("Completed", [good])


def test_a_newcomer_that_is_bad_pauses_joining_and_takes_nothing_back() -> None:
    made = joining(2)
    made.run(seconds=6, rounds=4)
    made.edit()
    made.run(seconds=6, rounds=8)
    assert (made.phase, made.status["stable"]) == ("Completed", 2)
    ill = made.join()
    ill.ill = True
    made.run(seconds=15, rounds=5)
    late = made.join()
    made.run(seconds=15, rounds=2)
    assert (ill.revision, late.slot, made.phase) == (2, None, "Completed")
    assert made.status.get("failure") is None
    made.crash_judge()
    made.run(seconds=1, rounds=2)
    assert late.slot is None
    ill.ill = False
    made.run(seconds=6, rounds=3)
    assert late.revision == 2


def test_a_bad_newcomer_at_the_target_does_not_speak_against_it() -> None:
    wide = {"concurrency": 9, "maxUnavailable": 9}
    made = joining(3, pace=wide)
    made.run(seconds=6, rounds=4)
    made.edit()
    made.run()
    ill = made.join()
    ill.ill = True
    made.schedule()
    assert (made.phase, ill.revision) == ("Progressing", 2)
    made.run(seconds=15, rounds=6)
    assert (made.phase, made.status["stable"]) == ("Completed", 2)
    assert made.revisions[2].verdict == "Good"


def test_a_return_spares_older_revisions_where_a_freeze_is() -> None:
    made = joining(3, offline={"after": "5s"}, waves=[{"name": "canary", "until": 1}])
    made.run(seconds=6, rounds=6)
    away = made.edges["uid-2"]
    made.silence(away)
    made.run(seconds=6, rounds=2)
    made.edit()
    made.run(seconds=6, rounds=8)
    assert (made.phase, away.revision) == ("Completed", 1)
    made.frozen = {away.uid}
    made.hear(away)
    made.edit(poison=True)
    made.run(seconds=15, rounds=9)
    assert (made.phase, away.revision) == ("RolledBack", 1)
    made.frozen.clear()
    made.run(seconds=6, rounds=2)
    assert away.revision == 2
