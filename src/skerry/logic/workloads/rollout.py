"""The arithmetic of rollouts: how many pods may be too many, how many may be missing.

Two bounds hold at every step, whatever was observed: never more pods than ``replicas + surge``
wanted, and never fewer available ones than ``replicas - unavailable`` by our own doing. When both
come out as zero nothing could ever move, so one may be unavailable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_ROLLING = "RollingUpdate"


@dataclass(frozen=True, slots=True)
class Set:
    """One ReplicaSet in numbers. ``maximum`` is what its pods were allowed to be, by annotation."""

    name: str
    replicas: int
    available: int = 0
    maximum: int = 0


def resolved(value: int | str | None, total: int, *, round_up: bool) -> int:
    """Return an int-or-percent as a number of *total*."""
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    text = value.strip()
    if not text.endswith("%"):
        return int(text)
    percent = int(text[:-1])
    return -(-total * percent // 100) if round_up else total * percent // 100


def fenceposts(surge: int | str | None, missing: int | str | None, total: int) -> tuple[int, int]:
    """Return ``(max surge, max unavailable)`` of *total*."""
    maximum = resolved(surge, total, round_up=True)
    least = resolved(missing, total, round_up=False)
    if maximum == 0 and least == 0:
        least = 1
    return maximum, least


@dataclass(frozen=True, slots=True)
class Limits:
    """What a Deployment's strategy allows."""

    replicas: int
    surge: int
    unavailable: int
    rolling: bool

    @property
    def maximum(self) -> int:
        return self.replicas + self.surge

    @property
    def least_available(self) -> int:
        return self.replicas - self.unavailable


def limits_of(spec: Mapping[str, Any]) -> Limits:
    """Return what a Deployment's spec allows."""
    replicas = int(spec.get("replicas", 1))
    strategy = spec.get("strategy") or {}
    if strategy.get("type", _ROLLING) != _ROLLING:
        return Limits(replicas, 0, 0, rolling=False)
    rolling = strategy.get("rollingUpdate") or {}
    surge, unavailable = fenceposts(
        rolling.get("maxSurge", "25%"), rolling.get("maxUnavailable", "25%"), replicas
    )
    return Limits(replicas, surge, min(unavailable, replicas), rolling=True)


def new_set_size(limits: Limits, new: int, everyone: int) -> int:
    """Return how large the new set may be, *everyone* being the pods wanted of all sets."""
    if not limits.rolling:
        return limits.replicas
    if new > limits.replicas:
        return limits.replicas
    room = limits.maximum - everyone
    if room <= 0:
        return new
    return new + min(room, limits.replicas - new)


def shrunk_old_sets(limits: Limits, new: Set, old: Sequence[Set]) -> dict[str, int]:
    """Return the sizes of *old* sets (oldest first) that shrink in this step.

    Pods that are not available anyway go first, since nobody misses them; then available ones, as
    many as can be spared.
    """
    sizes = {item.name: item.replicas for item in old}
    wanted = new.replicas + sum(sizes.values())
    spare = wanted - limits.least_available - (new.replicas - new.available)
    if spare <= 0:
        return {}
    budget = spare
    for item in old:
        unhealthy = max(0, item.replicas - item.available)
        taken = min(budget, unhealthy)
        sizes[item.name] -= taken
        budget -= taken
    available = new.available + sum(item.available for item in old)
    to_spare = available - limits.least_available
    for item in old:
        if to_spare <= 0:
            break
        taken = min(to_spare, sizes[item.name])
        sizes[item.name] -= taken
        to_spare -= taken
    return {item.name: sizes[item.name] for item in old if sizes[item.name] != item.replicas}


def proportioned(limits: Limits, sets: Sequence[Set]) -> dict[str, int]:
    """Return new sizes when the number wanted changed in the middle of a rollout.

    What is added or taken away is spread over the sets by their size; what rounding leaves goes
    to the first. *sets* come largest first, ties newest first when growing, oldest when not.
    """
    allowed = limits.maximum if limits.replicas > 0 else 0
    to_add = allowed - sum(item.replicas for item in sets)
    if to_add == 0:
        return {}
    sizes: dict[str, int] = {}
    added = 0
    for item in sets:
        share = _bounded(_fraction(item, limits), to_add - added)
        sizes[item.name] = item.replicas + share
        added += share
    if sets:
        first = sets[0].name
        sizes[first] = max(0, sizes[first] + to_add - added)
    return {item.name: sizes[item.name] for item in sets if sizes[item.name] != item.replicas}


def _fraction(item: Set, limits: Limits) -> int:
    """Return how much of the change is due to one set."""
    if limits.replicas == 0:
        return -item.replicas
    maximum = item.maximum or limits.replicas
    return round(item.replicas * limits.maximum / maximum) - item.replicas


def _bounded(share: int, left: int) -> int:
    """Return *share* no larger than what is left and not against its direction."""
    return max(0, min(share, left)) if left > 0 else min(0, max(share, left))
