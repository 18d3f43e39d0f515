"""Backing up and restoring a server from the outside: its objects, and perhaps its keys."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from skerry.app import hub_keys
from skerry.app.hub_keys import KeysError
from skerry.kit.clock import SystemClock
from skerry.kit.ids import SystemIds
from skerry.logic.machinery.key_rotation import (
    KEYS_PREFIX,
    SERVERS_PREFIX,
    EncryptionRecord,
    missing_keys,
)
from skerry.server.security.encryption import CONFIDENTIAL, key_name_of
from skerry.server.security.encryption_start import read_record
from skerry.store import backup as backups
from skerry.store.base import StoreError
from skerry.store.open import StoreSettings, open_for_backup, open_store


class StorekeepingError(Exception):
    """Why a backup or restore did not happen, in a sentence."""


@dataclass(frozen=True, slots=True)
class KeyChoice:
    """What is to happen to keys.

    In a backup a *passphrase* takes them along, encrypted like everything else; without one the
    objects go alone. In a restore *new_keys* says that a server with other keys is wanted.
    """

    passphrase: bytes | None = field(default=None, repr=False)
    encryption_key_file: Path | None = None
    new_keys: bool = False


async def backup_store(
    settings: StoreSettings, data_dir: Path, file: Path, choice: KeyChoice
) -> str:
    """Back up the store to *file*; return a sentence for the user."""
    clock, ids = SystemClock(), SystemIds()
    with _explained(f"backup to {file}"):
        store = await open_for_backup(settings, clock, ids)
        try:
            record = await read_record(store)
            keys = hub_keys.read_files(data_dir, choice.encryption_key_file)
            known = hub_keys.fingerprints(keys)
            header: dict[str, object] = {"fingerprints": known}
            sealing = None
            if choice.passphrase is not None:
                _refuse_useless(record, known, data_dir)
                header["keys"] = hub_keys.encoded(keys)
                sealing = backups.Sealing(choice.passphrase, ids)

            async def confirm() -> None:
                # Keys are added before they are used, and dropped after: with the same record
                # before and after, the keys that were read are those the backup needs.
                if await read_record(store) != record:
                    raise KeysError("keys were rotated meanwhile; try again")

            summary = await backups.backup(
                store, file, clock, header=header, sealing=sealing, confirm=confirm
            )
        finally:
            await store.close()
    what = "with keys" if choice.passphrase is not None else "without keys"
    return f"backed up {summary.objects} objects {what} at revision {summary.revision} to {file}"


def _refuse_useless(
    record: EncryptionRecord | None, known: hub_keys.Fingerprints, data_dir: Path
) -> None:
    """Refuse to make a backup with keys that lacks some of them."""
    missing = [kind for kind in ("authority", "signing") if not known[kind]]
    if missing:
        raise KeysError(
            f"{data_dir / 'pki'} has no {' and no '.join(missing)} key; "
            "name the server's folder with --data-dir"
        )
    needed = [] if record is None else missing_keys(record, known["encryption"])
    if needed:
        raise KeysError(
            f"Secrets need encryption key {', '.join(needed)}, which is not in "
            f"{data_dir / 'pki'}; name the file that has it with --encryption-key-file"
        )


async def restore_store(
    settings: StoreSettings, data_dir: Path, file: Path, choice: KeyChoice
) -> str:
    """Restore the store from *file*; return a sentence for the user.

    Everything that can be wrong is found out before anything is written.
    """
    clock, ids = SystemClock(), SystemIds()
    with _explained(f"restore from {file}"):
        opened = await asyncio.to_thread(backups.BackupFile, file, choice.passphrase)
        used: set[str] = set()
        summary, header = await asyncio.to_thread(opened.verify, _collecting(used))
        carried = hub_keys.decoded(header["keys"]) if "keys" in header else {}
        if carried and choice.new_keys:
            raise KeysError("the backup has its keys with it; leave out --new-keys")
        hub_keys.refuse_others(data_dir, carried)
        there = hub_keys.read_files(data_dir, choice.encryption_key_file)
        known = hub_keys.fingerprints({**there, **carried})
        if not choice.new_keys:
            _refuse_lacking(header.get("fingerprints"), used, known, data_dir)
        left_out = _LeftOut(set(known["encryption"]), new_keys=choice.new_keys)
        store = await open_store(settings, clock, ids, unfinished=True)
        try:
            await backups.refuse_filled(store)
            hub_keys.write_files(data_dir, carried)
            await backups.restore(store, opened, ids, keep=left_out.keep)
        finally:
            await store.close()
    text = f"restored {summary.objects - left_out.internal - left_out.secrets} objects"
    if carried:
        text += " and the keys"
    if left_out.secrets:
        text += f", without {left_out.secrets} Secrets whose encryption key is not there,"
    return f"{text} from {file}"


def _collecting(names: set[str]) -> Callable[[str, bytes], None]:
    """Return what collects the names of the keys that Secrets are encrypted with."""

    def visit(key: str, value: bytes) -> None:
        if key.startswith(CONFIDENTIAL):
            names.add(key_name_of(value))

    return visit


def _refuse_lacking(
    wanted: hub_keys.Fingerprints | None,
    used: set[str],
    known: hub_keys.Fingerprints,
    data_dir: Path,
) -> None:
    """Refuse to make a server that edges, users or its own Secrets would not accept."""
    needed = {name: known["encryption"].get(name, "") for name in used - {""}}
    if wanted is not None:
        wanted = {**wanted, "encryption": {**needed, **wanted["encryption"]}}
    else:
        # Written by a version that did not say whose keys they were; some must be there.
        wanted = {"authority": {"any": ""}, "signing": {"any": ""}, "encryption": needed}
        known = {
            kind: found if kind == "encryption" or not found else {"any": ""}
            for kind, found in known.items()
        }
    missing = hub_keys.lacking(wanted, known)
    if missing:
        raise KeysError(
            f"the backup is without keys, and {data_dir / 'pki'} lacks {'; '.join(missing)}. "
            "Put the old server's pki folder there first. Or --new-keys makes a server with new "
            "keys: its edges and users must join again, and encrypted Secrets are left out"
        )


class _LeftOut:
    """What of a backup is not restored, and how much of it there was."""

    def __init__(self, encryption_keys: set[str], *, new_keys: bool) -> None:
        self._keys = encryption_keys | {""}
        self._new_keys = new_keys
        self.internal = 0
        self.secrets = 0

    def keep(self, key: str, value: bytes) -> bool:
        if key.startswith(SERVERS_PREFIX) or (self._new_keys and key.startswith(KEYS_PREFIX)):
            self.internal += 1
            return False
        if key.startswith(CONFIDENTIAL) and key_name_of(value) not in self._keys:
            self.secrets += 1
            return False
        return True


@contextmanager
def _explained(action: str) -> Iterator[None]:
    try:
        yield
    except (StoreError, KeysError, OSError) as error:
        raise StorekeepingError(f"{action}: {error}") from error
