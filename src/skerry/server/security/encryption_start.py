"""Which keys encrypt a store's Secrets, found out before anything is served.

| the store | the key file | then |
|---|---|---|
| has a record | has every key in it | start |
| has a record | lacks one, or has another of its name | refuse |
| new, or this server is alone on it | is there | its first key encrypts |
| new, or this server is alone on it | is not there | made, mode 0600; its key encrypts |
| shared, written by a version that did not record keys | | as it was until a rotation begins |

The last row is for several hubs over one etcd that are upgraded one at a time: a hub of the
previous version could not read what a new one had encrypted with a key of its own making.
"""

from __future__ import annotations

import stat
from dataclasses import dataclass
from pathlib import Path

import msgspec

from skerry.kit.ids import IdSource
from skerry.kit.log import Logger
from skerry.kit.secret_files import secret_directory, write_secret
from skerry.logic.machinery.key_rotation import EncryptionRecord, missing_keys, record_key
from skerry.server.security.encryption import (
    DecryptionError,
    EncryptionKeys,
    confidential_page,
    key_name_of,
    new_key,
    parse_keys,
)
from skerry.store.base import Conflict, Entry, Store, Write

log = Logger("encryption")

DEFAULT_FILE = "encryption.keys"
RECORD = record_key("encryption")
_PAGE = 500


class KeyMismatch(Exception):
    """Why a server must not serve this store with the keys it has, in a sentence."""


@dataclass(frozen=True, slots=True)
class KeySource:
    """Where a server has its keys from.

    *given*: a flag named the file. *alone*: no other server uses the store.
    """

    file: Path
    given: bool = False
    alone: bool = True


async def open_encryption(store: Store, source: KeySource, ids: IdSource) -> EncryptionKeys:
    """Return the keys to serve *store* with; ``KeyMismatch`` when they are not the right ones."""
    keys = EncryptionKeys(ids, read_keys(source.file))
    record = await read_record(store)
    if record is None:
        record = await _adopted(store, source, keys, ids)
    if record is None:
        log.warning(
            "Secrets are stored unencrypted; give every hub one key file, "
            "then run: skerry secrets rotate",
            file=str(source.file),
        )
        return keys
    _refuse_missing(record, source, keys)
    keys.use(record.current)
    return keys


def read_keys(file: Path) -> dict[str, bytes]:
    """Return the keys in *file*, none when it is not there; ``KeyMismatch`` says what is wrong."""
    try:
        if file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            log.warning("the file of encryption keys is open to others; make it 0600", file=file)
        return parse_keys(file.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise KeyMismatch(f"{file}: {error}") from error


async def read_record(store: Store) -> EncryptionRecord | None:
    """Return what the store says of encryption."""
    entry = await store.get(RECORD)
    return None if entry is None else decode_record(entry.value)


def decode_record(value: bytes) -> EncryptionRecord:
    """Return a stored record."""
    return msgspec.json.decode(value, type=EncryptionRecord)


async def _adopted(
    store: Store, source: KeySource, keys: EncryptionKeys, ids: IdSource
) -> EncryptionRecord | None:
    """Record the keys of a store that has no record; None when it stays as it is."""
    fresh = await store.count("") == 0
    samples = {} if fresh else await _samples(store)
    plain, used = "" in samples, samples.keys() - {""}
    if not (fresh or source.alone or source.given or used):
        # Another server may have recorded its keys a moment ago, in a store that was empty.
        return await read_record(store)
    made = not keys.checks and not used
    if made:
        name, line = new_key(ids)
        secret_directory(source.file.parent)
        # Before the store speaks of it: a crash in between leaves a key that nothing needs.
        write_secret(source.file, f"# Keys that encrypt Secrets; keep a copy.\n{line}".encode())
        keys.load(parse_keys(line))
        log.info("made a key to encrypt Secrets with", v=1, key=name, file=str(source.file))
    current = next(iter(keys.checks), "")
    names = used | {current} if current else used
    wanted = {name: keys.checks.get(name, "") for name in sorted(names)}
    record = EncryptionRecord(current, wanted, rewritten=not plain and used <= {current})
    _refuse_missing(record, source, keys)
    for name in used:
        _refuse_wrong(samples[name], source, keys)
    try:
        await store.commit([Write(RECORD, msgspec.json.encode(record), 0)])
    except Conflict:
        # Another server was faster; what it wrote counts, and ours is of no use to anybody.
        if made:
            source.file.unlink(missing_ok=True)
            keys.forget()
        return await read_record(store)
    return record


async def _samples(store: Store) -> dict[str, Entry]:
    """Return a stored Secret for each key that some are encrypted with; "" for none."""
    found: dict[str, Entry] = {}
    after, more = "", True
    while more:
        page = await confidential_page(store, after, _PAGE)
        for entry in page.entries:
            found.setdefault(key_name_of(entry.value), entry)
        after, more = page.entries[-1].key if page.entries else "", page.more
    return found


def _refuse_wrong(sample: Entry, source: KeySource, keys: EncryptionKeys) -> None:
    try:
        keys.decrypt(sample.key, sample.value)
    except DecryptionError as error:
        raise KeyMismatch(
            f"{source.file}: key {key_name_of(sample.value)} is not the one that Secrets in this "
            "store are encrypted with; copy the file from a hub that has it"
        ) from error


def _refuse_missing(record: EncryptionRecord, source: KeySource, keys: EncryptionKeys) -> None:
    missing = missing_keys(record, keys.checks)
    if not missing:
        return
    if not keys.checks:
        seen = f"{source.file} is not there"
    elif set(missing) <= keys.checks.keys():
        seen = f"{source.file} has another key of that name"
    else:
        seen = f"{source.file} has only {', '.join(sorted(keys.checks))}"
    raise KeyMismatch(
        f"Secrets in this store are encrypted with key {', '.join(missing)}, and {seen}; "
        "copy the file from a hub that has it, or name it with --encryption-key-file"
    )
