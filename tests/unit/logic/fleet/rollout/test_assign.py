"""What a rollout promises at every moment of any history."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kit.chain.rollout_fleet import Edge, Fleet

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
        self.judged_bad: set[int] = set()

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
        before = {edge.uid: edge.revision for edge in fleet.edges.values()}
        bad = {n for n, each in fleet.revisions.items() if each.verdict == "Bad"}
        fleet.schedule(crash_after=crash_after)
        state, view = fleet.state(), fleet.view()
        changed = [e for e in fleet.edges.values() if before[e.uid] not in (e.revision, 0)]
        limit = fleet.read().pace.concurrency.of(max(len(fleet.places()), 1))
        newly = [e for e in changed if e.revision == state.target != state.stable]
        if newly:
            assert len(fleet.flying()) <= limit, "more in flight than the pace allows"
            unwell = (view.verdicts.unavailable | fleet.flying()) & view.given.slots
            allowed = fleet.read().pace.max_unavailable.of(len(fleet.places()))
            fresh = {e.slot for e in newly} - set(view.verdicts.unavailable)
            assert not fresh or len(unwell) <= allowed, "more unwell than may be"
            assert not fleet.read().paused
        for edge in changed:
            assert edge.revision in (state.target, state.stable)
            assert edge.revision not in bad, "a bad revision was assigned again"
            if edge.revision == state.target != state.stable:
                assert edge.slot is not None
                assert edge.slot in state.members, "assigned before its wave opened"

    def check(self) -> None:
        fleet = self.fleet
        slots = [edge.slot for edge in fleet.edges.values() if edge.slot is not None]
        assert len(slots) == len(set(slots))
        if fleet.phase == "RolledBack" and fleet.view().verdicts.attempt == fleet.state().attempt:
            stable = fleet.state().stable
            for edge in fleet.edges.values():
                if edge.slot is not None and edge.slot in fleet.view().verdicts.settled:
                    assert edge.revision in (stable, edge.mailbox)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32))
def test_every_promise_holds_at_every_moment_of_a_history(seed: int) -> None:
    history = History(seed)
    for _ in range(150):
        if history.random.random() < 0.25:
            history.happen()
        history.work()
        history.check()


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32))
def test_when_nothing_more_happens_every_edge_gets_what_is_good(seed: int) -> None:
    history = History(seed)
    fleet = history.fleet
    for _ in range(60):
        if history.random.random() < 0.3:
            history.happen()
        history.work()
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


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**32))
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


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**32), st.booleans())
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
