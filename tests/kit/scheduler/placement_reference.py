"""A deliberately simple twin of the choice: one Location at a time, everything looked at anew."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from skerry.api.refs import ObjectRef
from skerry.logic.fleet.placement.strategy import Candidate, Strategy

Locations = AbstractSet[ObjectRef]
Domain = tuple[str | None, ...]


def choose(strategy: Strategy, candidates: Sequence[Candidate], present: Locations) -> set[object]:
    """Return the Locations to take."""
    staying = [c for c in candidates if c.ref in present and passes(strategy, c, held=True)]
    coming = [c for c in candidates if c.ref not in present and passes(strategy, c, held=False)]
    if strategy.number is None:
        return {c.ref for c in [*staying, *coming]}
    if len(staying) <= strategy.number:
        return {c.ref for c in [*staying, *filled(strategy, staying, coming)]}
    labelled = [c for c in staying if None not in domain(strategy, c)]
    kept = filled(strategy, [], labelled, among=staying)
    rest = sorted((c for c in staying if c not in kept), key=lambda c: rank(strategy, c, staying))
    return {c.ref for c in [*kept, *rest[: strategy.number - len(kept)]]}


def passes(strategy: Strategy, candidate: Candidate, *, held: bool) -> bool:
    if strategy.only_ready and not candidate.available:
        return False
    spreads = strategy.number is not None and not held
    if spreads and None in domain(strategy, candidate):
        return False
    repelling = ["NoExecute"] if held else ["NoExecute", "NoSchedule"]
    return not any(effect in repelling for effect in untolerated(strategy, candidate))


def untolerated(strategy: Strategy, candidate: Candidate) -> list[str]:
    return [
        taint.effect
        for taint in candidate.taints
        if not any(toleration.tolerates(taint) for toleration in strategy.tolerations)
    ]


def total(strategy: Strategy, candidate: Candidate, among: Sequence[Candidate]) -> int:
    """Return taints three times, readiness once, each out of a hundred."""
    soft = [untolerated(strategy, each).count("PreferNoSchedule") for each in among]
    own, maximum = untolerated(strategy, candidate).count("PreferNoSchedule"), max(soft)
    taints = 100 - own * 100 // maximum if maximum else 0
    return 3 * taints + (100 if candidate.available else 0)


def rank(
    strategy: Strategy, candidate: Candidate, among: Sequence[Candidate]
) -> tuple[int, ObjectRef]:
    return -total(strategy, candidate, among), candidate.ref


def domain(strategy: Strategy, candidate: Candidate) -> Domain:
    return tuple(candidate.labels.get(spread.topology_key) for spread in strategy.spread)


def filled(
    strategy: Strategy,
    there: Sequence[Candidate],
    newcomers: Sequence[Candidate],
    among: Sequence[Candidate] = (),
) -> list[Candidate]:
    """Return who joins, one after the other; scores are those among *among*."""
    waiting, chosen = list(newcomers), list[Candidate]()
    while len(there) + len(chosen) < (strategy.number or 0):
        taken = [domain(strategy, each) for each in [*there, *chosen]]
        allowed = [each for each in waiting if even(strategy, each, waiting, taken)]
        if not allowed:
            break
        best = min(
            allowed,
            key=lambda c: (
                -total(strategy, c, among or newcomers),
                loads(strategy, c, taken),
                c.ref,
            ),
        )
        chosen.append(best)
        waiting.remove(best)
    return chosen


def loads(strategy: Strategy, candidate: Candidate, taken: Sequence[Domain]) -> tuple[int, ...]:
    own = domain(strategy, candidate)
    return tuple(sum(each[n] == own[n] for each in taken) for n in range(len(own)))


def even(
    strategy: Strategy,
    candidate: Candidate,
    waiting: Sequence[Candidate],
    taken: Sequence[Domain],
) -> bool:
    own = loads(strategy, candidate, taken)
    others = [loads(strategy, each, taken) for each in waiting]
    return all(
        own[n] + 1 - min(other[n] for other in others) <= spread.max_skew
        for n, spread in enumerate(strategy.spread)
    )
