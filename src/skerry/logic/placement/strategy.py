"""Choosing some of the Locations that match.

Without a strategy every matching Location is chosen and nothing here runs. With one: Locations
that are tainted or not ready are passed over, then as many as asked for are picked. Picking is
*sticky*: who was chosen and still qualifies stays, because moving a workload costs more than an
uneven spread; newcomers fill the emptiest domains first, and among equals the order is that of
names, so the same facts always give the same choice.

A taint is written on a Location in the annotation ``edge.kcp.io/taints``, as kubectl writes
them: ``key=value:Effect``, several separated by commas. ``NoSchedule`` keeps newcomers away,
``NoExecute`` also drives out who is there, ``PreferNoSchedule`` makes a place the last resort.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, NamedTuple

NO_SCHEDULE = "NoSchedule"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
NO_EXECUTE = "NoExecute"


class Taint(NamedTuple):
    """Why workloads should keep away from a Location."""

    key: str
    value: str
    effect: str


class Toleration(NamedTuple):
    """A taint that is borne; empty fields bear any."""

    key: str
    operator: str
    value: str
    effect: str

    def bears(self, taint: Taint) -> bool:
        """Tell whether *taint* is borne."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator == "Exists":
            return True
        return bool(self.key) and self.value == taint.value


class Spread(NamedTuple):
    """How even a choice is over the values of one label."""

    topology_key: str
    max_skew: int


@dataclass(frozen=True, slots=True)
class Strategy:
    """What an EdgePlacement says of choosing; the default chooses all."""

    number: int | None = None
    spread: tuple[Spread, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    only_ready: bool = False


class Candidate(NamedTuple):
    """A Location that matches."""

    place: tuple[str, str]
    labels: Mapping[str, str]
    available: bool
    taints: tuple[Taint, ...]


# Which of the candidates to take, given who was taken before.
Choose = Callable[
    [Strategy, Sequence[Candidate], AbstractSet[tuple[str, str]]], "set[tuple[str, str]]"
]


def strategy_of(obj: Mapping[str, Any] | None) -> Strategy | None:
    """Read ``spec.strategy``; None when it asks for nothing."""
    if not obj:
        return None
    return Strategy(
        obj.get("numberOfLocations"),
        tuple(Spread(s["topologyKey"], s.get("maxSkew") or 1) for s in obj.get("spread") or ()),
        tuple(map(_toleration, obj.get("tolerations") or ())),
        bool(obj.get("onlyReady")),
    )


def _toleration(obj: Mapping[str, Any]) -> Toleration:
    return Toleration(
        obj.get("key") or "",
        obj.get("operator") or "Equal",
        obj.get("value") or "",
        obj.get("effect") or "",
    )


def taints_of(text: str) -> tuple[Taint, ...]:
    """Read the annotation; what is not a taint is passed over."""
    return tuple(taint for part in text.split(",") if (taint := _taint(part.strip())) is not None)


def _taint(text: str) -> Taint | None:
    name, _, effect = text.rpartition(":")
    key, _, value = name.partition("=")
    if not key or effect not in (NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE):
        return None
    return Taint(key, value, effect)


def choose(
    strategy: Strategy, candidates: Sequence[Candidate], present: AbstractSet[tuple[str, str]]
) -> set[tuple[str, str]]:
    """Return the places to take; see the module's text for the rules."""
    fit = [c for c in candidates if _fits(strategy, c, c.place in present)]
    if strategy.number is None or len(fit) <= strategy.number:
        return {c.place for c in fit}
    fit.sort(key=lambda c: c.place)
    kept = [c for c in fit if c.place in present][: strategy.number]
    newcomers = [c for c in fit if c.place not in present]
    return _filled(strategy, kept, newcomers)


def _fits(strategy: Strategy, candidate: Candidate, present: bool) -> bool:
    if strategy.only_ready and not candidate.available:
        return False
    repelling = (NO_EXECUTE,) if present else (NO_EXECUTE, NO_SCHEDULE)
    return not any(taint.effect in repelling for taint in _unborne(strategy, candidate))


def _unborne(strategy: Strategy, candidate: Candidate) -> Iterable[Taint]:
    for taint in candidate.taints:
        if not any(toleration.bears(taint) for toleration in strategy.tolerations):
            yield taint


def _filled(
    strategy: Strategy, kept: Sequence[Candidate], newcomers: Sequence[Candidate]
) -> set[tuple[str, str]]:
    """Take newcomers until there are enough, from the emptiest domains first."""
    domains = _Domains(strategy, newcomers)
    for candidate in kept:
        domains.count(domains.of(candidate))
    chosen = {candidate.place for candidate in kept}
    while len(chosen) < (strategy.number or 0):
        best = domains.next()
        if best is None:
            break
        chosen.add(best)
    return chosen


def _disliked(strategy: Strategy, candidate: Candidate) -> tuple[int, bool]:
    """Rank a candidate by what speaks against it; ready ones come first."""
    soft = sum(t.effect == PREFER_NO_SCHEDULE for t in _unborne(strategy, candidate))
    return soft, not candidate.available


_Domain = tuple[str | None, ...]
_Waiting = tuple[tuple[int, bool], tuple[str, str]]


class _Domains:
    """Newcomers by the values they have of the spread labels, best last, and how many are in.

    Domains are few however many candidates there are, so each pick looks at domains only.
    """

    def __init__(self, strategy: Strategy, newcomers: Sequence[Candidate]) -> None:
        self._spread = strategy.spread
        self._counts: list[Counter[str]] = [Counter() for _ in strategy.spread]
        self._waiting: dict[_Domain, list[_Waiting]] = {}
        for candidate in newcomers:
            domain = self.of(candidate)
            # Who lacks a label is in no domain and is passed over, as pods do with such nodes.
            if None not in domain:
                ranked = (_disliked(strategy, candidate), candidate.place)
                self._waiting.setdefault(domain, []).append(ranked)
        for queue in self._waiting.values():
            queue.sort(reverse=True)

    def of(self, candidate: Candidate) -> _Domain:
        return tuple(candidate.labels.get(spread.topology_key) for spread in self._spread)

    def count(self, domain: _Domain) -> None:
        for counts, value in zip(self._counts, domain, strict=True):
            if value is not None:
                counts[value] += 1

    def next(self) -> tuple[str, str] | None:
        """Return the best newcomer that keeps every skew within its bound; None if none does."""
        allowed = [domain for domain in self._waiting if self._allows(domain)]
        if not allowed:
            return None
        best = min(allowed, key=self._rank)
        _, place = self._waiting[best].pop()
        if not self._waiting[best]:
            del self._waiting[best]
        self.count(best)
        return place

    def _rank(self, domain: _Domain) -> tuple[tuple[int, bool], tuple[int, ...], tuple[str, str]]:
        disliked, place = self._waiting[domain][-1]
        return disliked, self._loads(domain), place

    def _loads(self, domain: _Domain) -> tuple[int, ...]:
        return tuple(c[v or ""] for c, v in zip(self._counts, domain, strict=True))

    def _allows(self, domain: _Domain) -> bool:
        """Tell whether one more in *domain* keeps the skews.

        A domain nobody waits in any more holds no other back: the number asked for counts more.
        """
        for number, spread in enumerate(self._spread):
            counts = self._counts[number]
            least = min(counts[waiting[number] or ""] for waiting in self._waiting)
            if counts[domain[number] or ""] + 1 - least > spread.max_skew:
                return False
        return True
