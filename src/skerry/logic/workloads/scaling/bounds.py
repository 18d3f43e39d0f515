"""How far and how fast a workload may be scaled, as kube-controller-manager 1.32 decides it.

``History`` is what has to be remembered from one look to the next: what was recommended lately,
and what was done. It lives in the memory of the process that scales; one that has just started
knows no more than the present size, and is that much slower to shrink.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil
from typing import Any, NamedTuple

# How long a higher recommendation counts, where nobody says otherwise.
DOWNSCALE_WINDOW = 300
# Without rules, growth doubles at best, or goes to four.
_GROWTH, _ALWAYS = 2, 4
_WITHIN = ("DesiredWithinRange", "the desired count is within the acceptable range")
_UP_LIMIT = (
    "ScaleUpLimit",
    "the desired replica count is increasing faster than the maximum scale rate",
)
_DOWN_LIMIT = (
    "ScaleDownLimit",
    "the desired replica count is decreasing faster than the maximum scale rate",
)
_TOO_MANY = ("TooManyReplicas", "the desired replica count is more than the maximum replica count")
_TOO_FEW = ("TooFewReplicas", "the desired replica count is less than the minimum replica count")
_READY = ("ReadyForNewScale", "recommended size matches current size")
_UP_STABLE = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
)
_HIGHEST = "applying the highest recent recommendation"
_DOWN_STABLE = (
    "ScaleDownStabilized",
    f"recent recommendations were higher than current one, {_HIGHEST}",
)


class Noted(NamedTuple):
    """A number, and since when."""

    number: int
    at: datetime


@dataclass(frozen=True, slots=True)
class History:
    """What was recommended, and by how much a workload grew and shrank."""

    recommended: tuple[Noted, ...] = ()
    grown: tuple[Noted, ...] = ()
    shrunk: tuple[Noted, ...] = ()

    def recommending(self, replicas: int, now: datetime, seconds: int) -> History:
        """Return the history with one more recommendation, without those out of every window."""
        kept = _since(self.recommended, now, seconds)
        return History((*kept, Noted(replicas, now)), self.grown, self.shrunk)

    def scaled(
        self, before: int, after: int, now: datetime, behavior: Mapping[str, Any]
    ) -> History:
        """Return the history after a workload was scaled, without what no rule looks back to."""
        grown = _since(self.grown, now, _max_period(behavior.get("scaleUp")))
        shrunk = _since(self.shrunk, now, _max_period(behavior.get("scaleDown")))
        if after > before:
            grown = (*grown, Noted(after - before, now))
        else:
            shrunk = (*shrunk, Noted(before - after, now))
        return History(self.recommended, grown, shrunk)


class Bounded(NamedTuple):
    """How many pods there may be now; why that is not another number, as two conditions."""

    replicas: int
    able: tuple[str, str]
    limited: tuple[str, str]
    is_limited: bool
    history: History


def bounded(
    spec: Mapping[str, Any], current: int, wanted: int, history: History, now: datetime
) -> Bounded:
    """Return how many of the *wanted* pods there may be; there are *current* now."""
    least, max_replicas = int(spec.get("minReplicas", 1)), int(spec["maxReplicas"])
    behavior = spec.get("behavior")
    if not behavior:
        recent = _since(history.recommended, now, DOWNSCALE_WINDOW)
        stable = max((wanted, *(each.number for each in recent)))
        after = history.recommending(wanted, now, DOWNSCALE_WINDOW)
        able = _READY if stable == wanted else _DOWN_STABLE
        replicas, why = _within(current, stable, least, max_replicas)
    else:
        stable, able, after = _stabilized(behavior, current, wanted, history, now)
        replicas, why = _at_rate(behavior, current, stable, least, max_replicas, after, now)
    return Bounded(replicas, able, why, replicas != stable, after)


def _within(
    current: int, wanted: int, least: int, max_replicas: int
) -> tuple[int, tuple[str, str]]:
    fastest = max(_GROWTH * current, _ALWAYS)
    highest, why = (fastest, _UP_LIMIT) if max_replicas > fastest else (max_replicas, _TOO_MANY)
    if wanted < least:
        return least, _TOO_FEW
    return (highest, why) if wanted > highest else (wanted, _WITHIN)


def _stabilized(
    behavior: Mapping[str, Any], current: int, wanted: int, history: History, now: datetime
) -> tuple[int, tuple[str, str], History]:
    """Return what may be done with regard to what was recommended lately."""
    up, down = (_window(behavior, name) for name in ("scaleUp", "scaleDown"))
    lowest = min((wanted, *(each.number for each in _after(history.recommended, now, up))))
    highest = max((wanted, *(each.number for each in _after(history.recommended, now, down))))
    stable = min(max(current, lowest), highest)
    able = _READY
    if stable != wanted:
        able = _UP_STABLE if wanted >= current else _DOWN_STABLE
    return stable, able, history.recommending(wanted, now, max(up, down))


def _window(behavior: Mapping[str, Any], name: str) -> int:
    found = (behavior.get(name) or {}).get("stabilizationWindowSeconds")
    if found is None:
        return DOWNSCALE_WINDOW if name == "scaleDown" else 0
    return int(found)


def _at_rate(
    behavior: Mapping[str, Any],
    current: int,
    wanted: int,
    least: int,
    max_replicas: int,
    history: History,
    now: datetime,
) -> tuple[int, tuple[str, str]]:
    if wanted > current:
        fastest = max(current, _limit(behavior["scaleUp"], current, history, now, up=True))
        highest, why = (fastest, _UP_LIMIT) if max_replicas > fastest else (max_replicas, _TOO_MANY)
        return (highest, why) if wanted > highest else (wanted, _WITHIN)
    if wanted < current:
        fastest = min(current, _limit(behavior["scaleDown"], current, history, now, up=False))
        lowest, why = (fastest, _DOWN_LIMIT) if least < fastest else (least, _TOO_FEW)
        return (lowest, why) if wanted < lowest else (wanted, _WITHIN)
    return wanted, _WITHIN


def _limit(
    rules: Mapping[str, Any], current: int, history: History, now: datetime, *, up: bool
) -> int:
    """Return how far the policies of one direction let the workload go."""
    chosen = rules.get("selectPolicy") or "Max"
    if chosen == "Disabled":
        return current
    proposals = [
        _proposed(policy, current, history, now, up=up) for policy in rules.get("policies") or ()
    ]
    # The greatest change is the highest number upwards, and the lowest downwards.
    choose: Callable[[Iterable[int]], int] = max if (chosen != "Min") == up else min
    return choose(proposals) if proposals else current


def _proposed(
    policy: Mapping[str, Any], current: int, history: History, now: datetime, *, up: bool
) -> int:
    """Return how many pods there may be by one policy, which counts from its period's start."""
    seconds, value = int(policy["periodSeconds"]), int(policy["value"])
    grown, shrunk = (
        sum(each.number for each in _after(noted, now, seconds))
        for noted in (history.grown, history.shrunk)
    )
    start = current - grown + shrunk
    if policy["type"] == "Pods":
        return start + value if up else start - value
    # Rounded so that something can always happen.
    return ceil(start * (1 + value / 100)) if up else int(start * (1 - value / 100))


def _max_period(rules: Mapping[str, Any] | None) -> int:
    periods = (int(each["periodSeconds"]) for each in (rules or {}).get("policies") or ())
    return max(periods, default=0)


def _since(noted: Sequence[Noted], now: datetime, seconds: int) -> tuple[Noted, ...]:
    begin = now - timedelta(seconds=seconds)
    return tuple(each for each in noted if each.at >= begin)


def _after(noted: Sequence[Noted], now: datetime, seconds: int) -> tuple[Noted, ...]:
    begin = now - timedelta(seconds=seconds)
    return tuple(each for each in noted if each.at > begin)
