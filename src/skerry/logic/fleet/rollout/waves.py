"""Which destinations a wave holds, and in which order they go.

Waves are cumulative: a wave holds what the ones before it held and as many more as it takes until
so many of the destinations it selects are in it. What a wave holds is decided once, when it opens,
and remembered as slots: edges that come, go or fall silent later do not change it.

Of the destinations to add, those of each value of the ``spreadBy`` labels take turns; within a
value a hash of the target revision and the edge decides, so that not the same edges always go
first. Edges that are not heard of when the wave opens are passed over where there are others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pyroaring import BitMap

from skerry.logic.fleet.placement.terms import matches
from skerry.logic.fleet.rollout.spec import RolloutSpec, Wave

Labels = Mapping[str, str]


class WaveMember(NamedTuple):
    """A destination: its slot, its edge, the labels of its Location, and what it was given."""

    slot: int
    uid: str
    labels: Labels
    revision: int = 0


def rank(target: str, place: WaveMember) -> bytes:
    """Return what decides between destinations of one value: a hash of revision and edge."""
    return hashlib.blake2b(f"{target}\0{place.uid}".encode(), digest_size=8).digest()


def ordered(
    target: str, places: Iterable[WaveMember], spread_by: Sequence[str]
) -> list[WaveMember]:
    """Return destinations in the order in which they go."""
    by_hash = sorted(places, key=lambda place: (rank(target, place), place.slot))
    if not spread_by:
        return by_hash
    turns: dict[tuple[str, ...], int] = {}
    keyed: list[tuple[int, tuple[str, ...], int]] = []
    for number, place in enumerate(by_hash):
        value = tuple(place.labels.get(key, "") for key in spread_by)
        turn = turns.get(value, 0)
        turns[value] = turn + 1
        keyed.append((turn, value, number))
    # Values take turns in an order of their own for each target, or the first would always lead.
    order = {value: _value_rank(target, value) for value in turns}
    keyed.sort(key=lambda each: (each[0], order[each[1]], each[2]))
    return [by_hash[number] for _, _, number in keyed]


def _value_rank(target: str, value: tuple[str, ...]) -> bytes:
    text = "\0".join((target, *value))
    return hashlib.blake2b(text.encode(), digest_size=8).digest()


def selects(wave: Wave, place: WaveMember) -> bool:
    """Tell whether a wave is about a destination at all."""
    return matches(wave.selector, place.labels)


def opened(
    wave: Wave,
    target: str,
    places: Iterable[WaveMember],
    before: BitMap,
    absent: BitMap,
    first: BitMap,
) -> BitMap:
    """Return everybody in a wave when it opens after one that held *before*.

    *first* are taken before all others: those that have a newer revision than the stable one
    already, because the rollout takes the place of another.
    """
    selected = [place for place in places if selects(wave, place)]
    fresh = [place for place in selected if place.slot not in before]
    if wave.until is None:
        room = len(fresh)
    else:
        held = len(selected) - len(fresh)
        room = max(wave.until.of(len(selected)) - held, 0)
    if room < len(fresh):
        there = ordered(target, (p for p in fresh if p.slot not in absent), wave.spread_by)
        silent = ordered(target, (p for p in fresh if p.slot in absent), wave.spread_by)
        there.sort(key=lambda place: place.slot not in first)
        fresh = [*there, *silent][:room]
    return before | BitMap(place.slot for place in fresh)


def has_passed(spec: RolloutSpec, number: int, place: WaveMember) -> bool:
    """Tell whether a newcomer belongs to a wave that is open or passed, whoever was chosen.

    It does where a wave takes everybody it selects. In a wave of so many it is one too many.
    """
    return any(
        wave.until is None and selects(wave, place)
        for wave in (spec.wave(each) for each in range(1, number + 1))
    )
