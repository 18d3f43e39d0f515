"""Which keys are in use, as the store records it, and what a rotation may do next.

Several servers over one store must agree on keys that none of them may keep in the store. Each
has the keys themselves in files; the store says, by name, which of them counts:

* **Encryption.** ``current`` encrypts; ``keys`` are all that a stored value may be encrypted with,
  each with a check value that distinguishes it from another key of the same name. A server that
  lacks one of them would answer some reads with an error, so it does not start. Those in
  ``retired`` are never used again, though files may still have them.
* **Signing keys and certificate authorities.** ``current`` signs; those in ``retired`` are no
  longer accepted. Whatever else a server has is accepted, so that a key which was handed to all
  servers is understood everywhere before the first of them signs with it.

Rotation therefore never needs two servers to act at the same moment: hand out the new key, use
it, and later retire the old one. Each step is refused while a live server is not ready for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from skerry.api.keys import ObjectKey, type_prefix

# No API group and no logical cluster has this name, so no object can ever lie there.
_RESERVED = "-"
KEYS_PREFIX = type_prefix(_RESERVED, "keys")
SERVERS_PREFIX = type_prefix(_RESERVED, "servers")
# Names in ``retired`` only matter while some server still has the key in a file.
_MAX_RETIRED = 16


class RotationRefused(Exception):
    """Why a step of a rotation cannot be taken now, in a sentence."""


class EncryptionRecord(msgspec.Struct, frozen=True):
    """What the store says of encryption: see the module."""

    current: str
    keys: dict[str, str]
    # Whether every stored value is encrypted with ``current``.
    rewritten: bool = False
    retired: tuple[str, ...] = ()


class SigningRecord(msgspec.Struct, frozen=True):
    """What the store says of keys that sign: see the module."""

    current: str
    retired: tuple[str, ...] = ()
    # Those that signed before and are still accepted: the overlap of a rotation.
    previous: tuple[str, ...] = ()


class ServerRecord(msgspec.Struct, frozen=True):
    """One live server: the keys it has, and the ones it uses.

    ``known`` maps a kind of key (``encryption``, ``signing``, ``authority``) to the names of the
    keys and their check values; ``uses`` to the name of the one in use.
    """

    name: str
    known: dict[str, dict[str, str]]
    uses: dict[str, str]
    # Changes with every renewal; others watch for the change and compare no clocks.
    beat: int = 0


def record_key(kind: str) -> str:
    """Return where the store keeps the record of a kind of key."""
    return ObjectKey(_RESERVED, "keys", _RESERVED, "", kind).path()


def server_key(name: str) -> str:
    """Return where the store keeps the record of a live server."""
    return ObjectKey(_RESERVED, "servers", _RESERVED, "", name).path()


def missing_keys(record: EncryptionRecord, known: Mapping[str, str]) -> list[str]:
    """Return the names of the keys that stored values need and a server does not have."""
    return [name for name, check in record.keys.items() if known.get(name) != check]


def pending_keys(kind: str, not_new: Iterable[str], servers: Sequence[ServerRecord]) -> list[str]:
    """Return the keys that every live server has, without those that are *not_new*."""
    if not servers:
        return []
    common = set.intersection(*(set(server.known.get(kind, {}).items()) for server in servers))
    return sorted({name for name, _ in common} - set(not_new))


def encryption_with(
    record: EncryptionRecord | None, name: str, check: str, servers: Sequence[ServerRecord]
) -> EncryptionRecord:
    """Return the record under which *name* encrypts; refused while a live server lacks it."""
    if record is not None and record.current == name:
        return record
    _refuse_unless_known("encryption", name, check, servers)
    if record is None:
        return EncryptionRecord(name, {name: check})
    if record.keys.get(name, check) != check or name in record.retired:
        raise RotationRefused(f"a key was named {name} before; make another")
    return EncryptionRecord(name, {**record.keys, name: check}, False, record.retired)


def encryption_without_old(
    record: EncryptionRecord, servers: Sequence[ServerRecord]
) -> EncryptionRecord:
    """Return the record that needs the current key alone; refused while another may be used."""
    if not record.rewritten:
        raise RotationRefused(
            f"not every Secret is encrypted with key {record.current!r} yet; "
            "skerry secrets rotate goes on with that"
        )
    _refuse_unless_used("encryption", record.current, servers)
    current = record.current
    retired = _retired(record.retired, record.keys, current)
    return EncryptionRecord(current, {current: record.keys[current]}, True, retired)


def signing_with(
    kind: str, record: SigningRecord, name: str, check: str, servers: Sequence[ServerRecord]
) -> SigningRecord:
    """Return the record under which *name* signs; refused while a live server lacks it."""
    if record.current == name:
        return record
    if name in record.retired:
        raise RotationRefused(f"{kind} key {name} was retired; make another")
    if name in record.previous:
        raise RotationRefused(f"{kind} key {name} has signed before; make another")
    _refuse_unless_known(kind, name, check, servers)
    return SigningRecord(name, record.retired, (*record.previous, record.current))


def signing_without_old(
    kind: str, record: SigningRecord, servers: Sequence[ServerRecord]
) -> SigningRecord:
    """Return the record that accepts the current key alone; refused while another may sign."""
    _refuse_unless_used(kind, record.current, servers)
    retired = _retired(record.retired, record.previous, record.current)
    return SigningRecord(record.current, retired)


def _retired(before: Iterable[str], names: Iterable[str], current: str) -> tuple[str, ...]:
    """Return what is retired when only *current* of *names* stays."""
    others = sorted(name for name in names if name != current)
    return tuple(dict.fromkeys((*before, *others)))[-_MAX_RETIRED:]


def _refuse_unless_known(kind: str, name: str, check: str, servers: Sequence[ServerRecord]) -> None:
    lacking = [s.name for s in servers if s.known.get(kind, {}).get(name) != check]
    if lacking:
        raise RotationRefused(
            f"{kind} key {name} is not known to {', '.join(sorted(lacking))}; "
            "give every hub the file that has it, then try again"
        )


def _refuse_unless_used(kind: str, name: str, servers: Sequence[ServerRecord]) -> None:
    others = [s.name for s in servers if s.uses.get(kind) != name]
    if others:
        raise RotationRefused(
            f"{', '.join(sorted(others))} does not use {kind} key {name} yet; try again"
        )
