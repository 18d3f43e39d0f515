"""Sets of destinations, and whole states of a placement, as short text.

Slots are a compressed bitmap: 10,000 of them in runs take some tens of bytes, in the worst case
1.3 KB. Keys are digests and do not compress; they are sorted so that equal sets are equal text.

Equal text matters since a record is named for a digest of what it says: a decision that is repeated
after a crash, by a process that found its destinations in another order, must come out as the same
bytes. For the same reason slots are run-optimized before they are written and states are sorted.

A key stands for a destination that has no slot. It says nothing by itself: a reader has the
destination already, from the record by which it joined or from a checkpoint, and finds by the key
which one is meant. Where nobody could have it already, the record has a *state*, whole.

Anybody who may write records may write nonsense into them. So what is unpacked is bounded before it
is believed, and whatever is wrong with it is ``Corrupt`` and nothing else: a reader of a thousand
records says which one it is, and goes on with the others. A set of slots cannot be bounded by its
size: a run of a billion is a few bytes. Whoever goes through one asks for those that he knows.
"""

from __future__ import annotations

import binascii
import zlib
from array import array
from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

import orjson
from pyroaring import BitMap

from skerry.api.kcp.history import MAX_SLOT
from skerry.logic.fleet.placement.records import Destination

_KEY_BYTES = 8
# Most of it are UIDs, which do not compress: the best level takes three times as long for a tenth.
_LEVEL = 1
# Placements have the same destinations over and over; so many are known by their keys.
_MAX_KEYS = 16_384
# What a record's text may unpack to: a tenant may write records too, and zeros compress well.
_MAX_UNPACKED = 16 * 1024 * 1024
# As many destinations as a page ever had; all records of a placement are read at once.
_MAX_STANDINGS = 10_000
# What JSON may have of lists, maps and values before it is parsed: each becomes an object.
_MAX_VALUES = 16 * _MAX_STANDINGS
SLOT_LIMIT = MAX_SLOT + 1
# As the API has it.
NUMBER_LIMIT = 1 << 63


class Corrupt(Exception):
    """Why a record cannot be read, in a sentence."""


class Standing(NamedTuple):
    """A destination as a placement has it; without a Rollout it has no slot and no revision."""

    destination: Destination
    slot: int | None = None
    revision: int | None = None


@lru_cache(maxsize=_MAX_KEYS)
def key_of(destination: Destination) -> int:
    """Return the number that stands for a destination without a slot, in any process."""
    text = "\0".join(destination).encode()
    return int.from_bytes(blake2b(text, digest_size=_KEY_BYTES).digest(), "big")


def packed_keys(keys: Iterable[int]) -> str:
    """Return a set of keys as text."""
    found = array("Q", sorted(set(keys)))
    found.byteswap()  # big-endian wherever this runs: the machines we run on are little-endian
    return b64encode(found.tobytes()).decode()


def unpacked_keys(text: str) -> Sequence[int]:
    """Return the keys that text holds, in order."""
    content = _decoded(text)
    if len(content) % _KEY_BYTES:
        raise Corrupt(f"destinations.keys: {len(content)} bytes are no whole number of keys")
    found = array("Q")
    found.frombytes(content)
    found.byteswap()
    return found


def packed_slots(slots: Iterable[int]) -> str:
    """Return a set of slots as text."""
    found = BitMap(slots)
    found.run_optimize()
    return b64encode(found.serialize()).decode()


def unpacked_slots(text: str) -> BitMap:
    """Return the slots that text holds."""
    try:
        found = BitMap.deserialize(_decoded(text))
    except ValueError as error:
        raise Corrupt(f"destinations.slots: no bitmap: {error}") from error
    if found and found.max() >= SLOT_LIMIT:
        raise Corrupt(f"destinations.slots: slot {found.max()}: want one below {SLOT_LIMIT}")
    return found


def packed_state(standings: Iterable[Standing]) -> str:
    """Return destinations with slots and revisions as text."""
    rows = [[*each.destination, each.slot, each.revision] for each in sorted(standings, key=_order)]
    return b64encode(zlib.compress(orjson.dumps(rows), _LEVEL)).decode()


def unpacked_state(text: str) -> list[Standing]:
    """Return what ``packed_state`` was given, in order."""
    *names, slots, revisions = _columns(text)
    destinations = map(Destination._make, zip(*names, strict=True))
    return list(map(Standing, destinations, slots, revisions))


def check_state(text: str) -> None:
    """Raise ``Corrupt`` where ``unpacked_state`` would; that takes less, and nothing is kept."""
    _columns(text)


def check_number(value: Any, limit: int) -> None:
    """Raise TypeError or ValueError unless *value* is None or a whole number below *limit*."""
    _check_numbers((value,), limit)


def _columns(text: str) -> Sequence[Sequence[Any]]:
    """Return what a state has: four columns of names, one of slots and one of revisions.

    By columns, because what is in one is looked at all at once.
    """
    try:
        rows = orjson.loads(
            _bounded(zlib.decompressobj().decompress(_decoded(text), _MAX_UNPACKED))
        )
        if not isinstance(rows, list):
            raise TypeError(f"found {type(rows).__name__}, want a list")
        if len(rows) > _MAX_STANDINGS:
            raise ValueError(f"{len(rows)} destinations: want at most {_MAX_STANDINGS} in a record")
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(_COLUMNS)
        if len(columns) != len(_COLUMNS):
            raise ValueError(f"rows of {len(columns)}: want {', '.join(_COLUMNS)}")
        if any(set(map(type, names)) - {str} for names in columns[:-2]):
            raise TypeError("a destination has four names")
        _check_numbers(columns[-2], SLOT_LIMIT)
        _check_numbers(columns[-1], NUMBER_LIMIT)
    except (zlib.error, TypeError, ValueError) as error:
        raise Corrupt(f"destinations.state: {error}") from error
    return columns


_COLUMNS = ("cluster", "location", "syncTarget", "uid", "slot", "revision")


def _bounded(content: bytes) -> bytes:
    """Return JSON that becomes no more objects than a state may have."""
    values = sum(map(content.count, (b"[", b"{", b",")))
    if values > _MAX_VALUES:
        raise ValueError(f"{values} values: want at most {_MAX_VALUES} in a record")
    return content


def _check_numbers(column: Iterable[Any], limit: int) -> None:
    numbers = [each for each in column if each is not None]
    # By type: True is an int too, and is no slot.
    if set(map(type, numbers)) - {int}:
        raise TypeError("slots and revisions are whole numbers")
    if numbers and not 0 <= min(numbers) <= max(numbers) < limit:
        raise ValueError(f"numbers {min(numbers)} to {max(numbers)}: want 0 to {limit - 1}")


def _order(standing: Standing) -> Destination:
    return standing.destination


def _decoded(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise Corrupt(f"no base64: {error}") from error
