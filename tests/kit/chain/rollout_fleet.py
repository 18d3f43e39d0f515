"""A fleet in memory that a rollout is carried out on: edges, mailboxes, a judge and a scheduler.

Everything is a plain value and time is a number, so thousands of histories take seconds. The
status travels as the JSON it would be; what is not in it or in the slices is lost in a crash.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from pyroaring import BitMap

from skerry.logic.fleet.rollout.advance import advance
from skerry.logic.fleet.rollout.assign import Assignment, assign, in_flight
from skerry.logic.fleet.rollout.clocks import Elapsed
from skerry.logic.fleet.rollout.judging import Judging, Seen
from skerry.logic.fleet.rollout.spec import RolloutSpec, read_spec
from skerry.logic.fleet.rollout.state import (
    OPEN,
    Gate,
    Revision,
    Situation,
    State,
    Wishes,
    moment,
    state_of,
    verdicts_of,
    written,
    written_verdicts,
)
from skerry.logic.fleet.rollout.verdict import Evidence
from skerry.logic.fleet.rollout.view import View
from skerry.logic.fleet.rollout.waves import WaveMember

_START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Edge:
    """An edge, its mailbox and the labels of its Location."""

    uid: str
    labels: Mapping[str, str] = field(default_factory=dict)
    # The slice's word, and what the mailbox has; None: it has no slot yet.
    slot: int | None = None
    revision: int = 0
    mailbox: int = 0
    silent_since: str | None = None
    # Unwell whatever it runs.
    ill: bool = False
    ran: list[int] = field(default_factory=list)


class Fleet:
    """One rollout and its edges; see the module's text."""

    def __init__(self, spec: Mapping[str, Any], edges: int = 0) -> None:
        self.spec = dict(spec)
        self.seconds = 0.0
        self.jumped = 0.0
        self.status: dict[str, Any] = {}
        self.edges: dict[str, Edge] = {}
        self.revisions: dict[int, Revision] = {}
        self.live = 0
        # Revisions that make edges unwell.
        self.poison: set[int] = set()
        self.wishes = Wishes()
        self.approved: set[str] = set()
        self.gate: Gate = OPEN
        self.frozen: set[str] = set()
        self._next_slot = 1
        self._joined = 0
        self._elapsed_by_both = Elapsed(self._wall, lambda: self.seconds)
        self._judging = Judging(self._elapsed)
        for _ in range(edges):
            self.join()

    # -- what happens ------------------------------------------------------------------------

    @property
    def now(self) -> str:
        return moment(self._wall())

    def _wall(self) -> datetime:
        return _START + timedelta(seconds=self.seconds + self.jumped)

    def _elapsed(self, since: str) -> float:
        then = datetime.fromisoformat(since)
        passed = (_START + timedelta(seconds=self.seconds) - then).total_seconds()
        return passed + min(self.jumped, 0.0)

    def join(self, **labels: str) -> Edge:
        self._joined += 1
        edge = Edge(f"uid-{self._joined}", labels)
        self.edges[edge.uid] = edge
        return edge

    def leave(self, uid: str) -> None:
        edge = self.edges.pop(uid)
        if edge.slot is not None:
            self._judging.drop(edge.slot)

    def edit(self, *, poison: bool = False, one_way: bool = False) -> int:
        """Have another revision; it is what the workspace says now."""
        self.live = number = max(self.revisions, default=0) + 1
        self.revisions[number] = Revision(number, f"digest-{number}", one_way=one_way)
        if poison:
            self.poison.add(number)
        return number

    def silence(self, edge: Edge) -> None:
        edge.silent_since = edge.silent_since or self.now

    def hear(self, edge: Edge) -> None:
        edge.silent_since = None

    # -- the scheduler -----------------------------------------------------------------------

    def read(self) -> RolloutSpec:
        return read_spec(self.spec)

    def state(self) -> State:
        return state_of(self.status)

    def situation(self, state: State | None = None) -> Situation:
        state = state or self.state()
        return Situation(
            self.read(),
            state,
            verdicts_of(self.status, state.attempt),
            self.places(),
            self.revisions,
            self.live,
            self.now,
            lambda quiet: self._elapsed_by_both.since(quiet.since, quiet.proven),
            self.wishes,
            frozenset(self.approved),
            self.gate,
            BitMap(
                edge.slot
                for edge in self.edges.values()
                if edge.slot is not None and edge.uid in self.frozen
            ),
        )

    def places(self) -> list[WaveMember]:
        return [
            WaveMember(edge.slot, edge.uid, edge.labels, edge.revision)
            for edge in self.edges.values()
            if edge.slot is not None
        ]

    def view(self) -> View:
        situation = self.situation()
        return View(situation, situation.state)

    def flying(self) -> BitMap:
        return in_flight(self.view())

    def schedule(self, *, crash_after: int = 3) -> Assignment:
        """Take one step; of its three writes only the first *crash_after* are made."""
        given = self.situation()
        state = advance(given)
        newcomers = [edge for edge in self.edges.values() if edge.slot is None]
        coming = {self._next_slot + number: edge for number, edge in enumerate(newcomers)}
        places = [WaveMember(slot, edge.uid, edge.labels) for slot, edge in coming.items()]
        found = assign(given, state, places)
        if crash_after >= 1 and found.state.failure is not None:
            failed = found.state.failure.revision
            if found.state.phase in ("RollingBack", "RolledBack") and failed in self.revisions:
                self._judge_revision(failed, "Bad")
        if crash_after >= 1 and found.state.phase == "Completed":
            self._judge_revision(found.state.stable, "Good")
        if crash_after >= 2:
            kept = {"verdicts": self.status.get("verdicts")}
            self.status = {**kept, **written(found.state)}
        if crash_after >= 3:
            by_slot = {edge.slot: edge for edge in self.edges.values()}
            for slot, revision in found.revisions.items():
                by_slot[slot].revision = revision
            for slot, revision in found.newcomers.items():
                coming[slot].slot, coming[slot].revision = slot, revision
                self._next_slot = max(self._next_slot, slot + 1)
        if crash_after < 3:
            self.crash_scheduler()
        return found

    def _judge_revision(self, number: int, verdict: str) -> None:
        known = self.revisions[number]
        self.revisions[number] = Revision(number, known.digest, verdict, known.one_way)

    # -- the translator and the edges --------------------------------------------------------

    def translate(self) -> None:
        """Let every mailbox have what its slice says; edges that live run it."""
        for edge in self.edges.values():
            if edge.slot is not None:
                edge.mailbox = edge.revision or self.live
                if edge.silent_since is None and (not edge.ran or edge.ran[-1] != edge.mailbox):
                    edge.ran.append(edge.mailbox)

    # -- the judge ---------------------------------------------------------------------------

    def judge(self) -> None:
        """Judge, and publish."""
        state = self.state()
        self._judging.turn(self.read(), state, verdicts_of(self.status, state.attempt))
        known = self._judging.slots()
        for edge in self.edges.values():
            if edge.slot is not None:
                known.discard(edge.slot)
                self._judging.put(edge.slot, Seen(edge.revision, edge.uid, self._evidence(edge)))
        for slot in known:
            self._judging.drop(slot)
        found = self._judging.step(self.seconds)
        self.status["verdicts"] = written_verdicts(found.verdicts, found.errors)

    def _evidence(self, edge: Edge) -> Evidence:
        unwell = edge.ill or edge.mailbox in self.poison
        translated = edge.mailbox == edge.revision
        return Evidence(edge.silent_since, translated, not unwell and edge.mailbox > 0, unwell)

    def crash_judge(self) -> None:
        """Forget everything that is not published."""
        self._judging = Judging(self._elapsed)

    def crash_scheduler(self) -> None:
        """Forget everything that is in no status."""
        self._elapsed_by_both = Elapsed(self._wall, lambda: self.seconds)

    # -- all together ------------------------------------------------------------------------

    def run(self, seconds: float = 1.0, rounds: int = 1) -> None:
        """Let everybody work for a while."""
        for _ in range(rounds):
            self.schedule()
            self.translate()
            self.judge()
            self.seconds += seconds

    @property
    def phase(self) -> str:
        return str(self.status.get("phase", ""))
