"""What an EdgePlacement says of choosing among the Locations that match.

Without a strategy every matching Location is chosen. With one, Locations are filtered, scored and
chosen by the scheduling framework (``scheduler.placement``); here is only what they are given.

A taint is written on a Location in the annotation ``edge.kcp.io/taints``, as kubectl writes
them: ``key=value:Effect``, several separated by commas. ``NoSchedule`` keeps newcomers away,
``NoExecute`` also drives out who is there, ``PreferNoSchedule`` makes a place the last resort.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from skerry.api.refs import ObjectRef
from skerry.logic.machinery.taints import (
    NO_EXECUTE,
    NO_SCHEDULE,
    PREFER_NO_SCHEDULE,
    Taint,
    Toleration,
    tolerations_of,
)


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

    ref: ObjectRef
    labels: Mapping[str, str]
    available: bool
    taints: tuple[Taint, ...]


def strategy_of(obj: Mapping[str, Any] | None) -> Strategy | None:
    """Read ``spec.strategy``; None when it asks for nothing."""
    if not obj:
        return None
    return Strategy(
        obj.get("numberOfLocations"),
        tuple(Spread(s["topologyKey"], s.get("maxSkew") or 1) for s in obj.get("spread") or ()),
        tolerations_of(obj.get("tolerations")),
        bool(obj.get("onlyReady")),
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
