"""Which keys a server begins with, by what the store and the file say; the table of the module."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from skerry.api.keys import ObjectKey
from skerry.kit.ids import SeededIds
from skerry.logic.machinery.key_rotation import EncryptionRecord
from skerry.server.security.encryption import EncryptionKeys, new_key, parse_keys
from skerry.server.security.encryption_start import (
    RECORD,
    KeyMismatch,
    KeySource,
    open_encryption,
    read_keys,
    read_record,
)
from skerry.store.base import Write
from skerry.store.memory import MemoryStore

SECRET = ObjectKey("", "secrets", "root", "ns", "s").path()


def key_file(folder: Path, *seeds: int, name: str = "keys") -> Path:
    """Write a file with the keys of *seeds*, in that order."""
    file = folder / name
    file.write_text("".join(new_key(SeededIds(seed))[1] for seed in seeds))
    file.chmod(0o600)
    return file


def name_of(seed: int) -> str:
    return new_key(SeededIds(seed))[0]


async def opened(
    store: MemoryStore, file: Path, *, given: bool = False, alone: bool = True
) -> EncryptionKeys:
    return await open_encryption(store, KeySource(file, given, alone), SeededIds(99))


async def refusal(store: MemoryStore, file: Path, **more: bool) -> str:
    with pytest.raises(KeyMismatch) as caught:
        await opened(store, file, **more)
    return str(caught.value)


async def secret(store: MemoryStore, seed: int | None) -> None:
    """Store a Secret, encrypted with the key of *seed* if there is one."""
    value = b"value"
    if seed is not None:
        keys = EncryptionKeys(SeededIds(1), parse_keys(new_key(SeededIds(seed))[1]))
        keys.use(name_of(seed))
        value = keys.encrypt(SECRET, value)
    await store.commit([Write(SECRET, value)])


async def test_a_new_store_without_a_file_gets_a_key_that_nobody_else_reads(tmp_path: Path) -> None:
    store, file = MemoryStore("test"), tmp_path / "pki" / "keys"
    keys = await opened(store, file)
    assert keys.current in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    record = await read_record(store)
    assert record is not None
    assert (record.current, record.rewritten) == (keys.current, True)
    again = await opened(store, file)
    assert again.current == keys.current


async def test_the_first_key_of_a_file_encrypts(tmp_path: Path) -> None:
    keys = await opened(MemoryStore("test"), key_file(tmp_path, 1, 2))
    assert keys.current == name_of(1)


async def test_the_record_says_which_key_encrypts_whatever_the_order_of_the_file(
    tmp_path: Path,
) -> None:
    store = MemoryStore("test")
    await opened(store, key_file(tmp_path, 1))
    keys = await opened(store, key_file(tmp_path, 2, 1))
    assert keys.current == name_of(1)


async def test_a_server_that_lacks_a_key_of_the_store_does_not_start(tmp_path: Path) -> None:
    store = MemoryStore("test")
    await opened(store, key_file(tmp_path, 1))
    assert "has only" in await refusal(store, key_file(tmp_path, 2))
    assert "is not there" in await refusal(store, tmp_path / "none")
    # Nothing was made in its place.
    assert not (tmp_path / "none").exists()


async def test_another_key_of_the_same_name_is_noticed(tmp_path: Path) -> None:
    store = MemoryStore("test")
    await opened(store, key_file(tmp_path, 1))
    line = new_key(SeededIds(2))[1]
    forged = tmp_path / "forged"
    forged.write_text(line.replace(name_of(2), name_of(1)))
    assert "another key of that name" in await refusal(store, forged)


async def test_a_shared_store_of_an_earlier_version_stays_as_it_is(tmp_path: Path) -> None:
    store = MemoryStore("test")
    await secret(store, None)
    keys = await opened(store, tmp_path / "none", alone=False)
    assert keys.current == ""
    assert await read_record(store) is None
    assert not (tmp_path / "none").exists()


async def test_a_store_of_an_earlier_version_that_one_server_has_is_encrypted_from_now_on(
    tmp_path: Path,
) -> None:
    store = MemoryStore("test")
    await secret(store, None)
    await opened(store, key_file(tmp_path, 1))
    record = await read_record(store)
    assert record is not None
    assert (record.current, record.rewritten) == (name_of(1), False)


async def test_keys_that_stored_secrets_need_are_recorded_or_asked_for(tmp_path: Path) -> None:
    store = MemoryStore("test")
    await secret(store, 2)
    assert name_of(2) in await refusal(store, key_file(tmp_path, 1))
    assert name_of(2) in await refusal(store, tmp_path / "none", alone=False)
    await opened(store, key_file(tmp_path, 1, 2), alone=False)
    record = await read_record(store)
    assert record is not None
    assert (record.current, set(record.keys)) == (name_of(1), {name_of(1), name_of(2)})
    assert not record.rewritten


async def test_of_two_servers_that_begin_at_once_the_slower_takes_the_others_word(
    tmp_path: Path,
) -> None:
    class Raced(MemoryStore):
        async def commit(self, writes: Sequence[Write]) -> list[int]:
            other = parse_keys(new_key(SeededIds(1))[1])
            checks = EncryptionKeys(SeededIds(1), other).checks
            record = EncryptionRecord(name_of(1), dict(checks), rewritten=True)
            await super().commit([Write(RECORD, msgspec.json.encode(record))])
            return await super().commit(writes)

    file = tmp_path / "made"
    assert f"{name_of(1)}, and {file} is not there" in await refusal(Raced("test"), file)
    assert not file.exists(), "a key that nothing needs is not left behind"


def test_a_file_that_is_no_file_of_keys_is_named(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("a: not base64!\n")
    with pytest.raises(KeyMismatch, match=str(file)):
        read_keys(file)
    assert read_keys(tmp_path / "none") == {}
