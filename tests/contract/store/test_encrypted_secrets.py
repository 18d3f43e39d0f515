"""Secrets at rest, over every backend: which keys a store is opened with, and their rotation."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path

import pytest

from skerry.kit.ids import SeededIds
from skerry.logic.machinery.key_rotation import RotationRefused, ServerRecord, record_key
from skerry.server.security.encryption import EncryptedStore, EncryptionKeys, parse_keys
from skerry.server.security.encryption_start import (
    KeyMismatch,
    KeySource,
    open_encryption,
    read_record,
)
from skerry.server.security.key_ring import EncryptionRotation
from skerry.store.base import Compacted, Store, Write
from skerry.store.restoring import RestorableStore

IDS = SeededIds(11)
OLD = f"old: {base64.b64encode(b'o' * 32).decode()}\n"
NEW = f"new: {base64.b64encode(b'n' * 32).decode()}\n"
CONFIG_MAP = "/core/configmaps/local/ns/c"


def secret(name: object) -> str:
    return f"/core/secrets/local/ns/{name}"


@pytest.fixture
def source(tmp_path: Path) -> KeySource:
    return KeySource(tmp_path / "pki" / "encryption.keys")


async def written(store: Store, keys: EncryptionKeys, names: list[str]) -> EncryptedStore:
    encrypted = EncryptedStore(store, keys)
    for name in names:
        await encrypted.commit([Write(secret(name), f"value of {name}".encode())])
    return encrypted


async def raw_values(store: Store) -> list[bytes]:
    return [entry.value for entry in (await store.range("/core/secrets/")).entries]


async def test_a_new_store_is_encrypted_with_a_key_made_for_it(
    store: RestorableStore, source: KeySource
) -> None:
    keys = await open_encryption(store, source, IDS)
    assert source.file.stat().st_mode & 0o777 == 0o600
    assert source.file.parent.stat().st_mode & 0o777 == 0o700
    await written(store, keys, ["a"])
    (kept,) = await raw_values(store)
    assert b"value of a" not in kept
    again = await open_encryption(store, source, IDS)
    entry = await EncryptedStore(store, again).get(secret("a"))
    assert entry is not None
    assert entry.value == b"value of a"
    record = await read_record(store)
    assert record is not None
    assert record.rewritten


async def test_sizes_are_those_of_values_before_they_were_encrypted(store: Store) -> None:
    keys = EncryptionKeys(IDS, parse_keys(OLD + NEW))
    for name in ("old", "new"):
        keys.use(name)
        await written(store, keys, [name])
    encrypted = EncryptedStore(store, keys)
    await encrypted.commit([Write(CONFIG_MAP, b"four"), Write("/core/services/x", b"")])
    wanted = {e.key: len(e.value) for e in (await encrypted.range("")).entries}
    assert wanted[secret("old")] == len("value of old")
    for limit in (1, 2, 50):
        found, after, more = dict[str, int](), "", True
        while more:
            page = await encrypted.sizes("", after=after, limit=limit)
            found.update(page.entries)
            after, more = page.entries[-1][0], page.more
        assert found == wanted


async def test_without_its_key_file_a_store_is_not_opened_and_no_key_is_made(
    store: RestorableStore, source: KeySource
) -> None:
    await open_encryption(store, source, IDS)
    source.file.unlink()
    with pytest.raises(KeyMismatch, match=r"are encrypted with key key-\w+, and .* is not there"):
        await open_encryption(store, source, IDS)
    assert not source.file.exists()


async def test_with_another_key_a_store_is_not_opened(
    store: RestorableStore, source: KeySource
) -> None:
    await open_encryption(store, source, IDS)
    source.file.write_text(NEW)
    with pytest.raises(KeyMismatch, match="has only new; copy the file from a hub"):
        await open_encryption(store, source, IDS)


async def test_with_another_key_of_the_same_name_a_store_is_not_opened(
    store: RestorableStore, source: KeySource
) -> None:
    keys = await open_encryption(store, source, IDS)
    (name,) = keys.checks
    source.file.write_text(NEW.replace("new", name))
    with pytest.raises(KeyMismatch, match="has another key of that name"):
        await open_encryption(store, source, IDS)


async def test_a_key_file_that_cannot_be_read_is_named(
    store: RestorableStore, source: KeySource
) -> None:
    source.file.parent.mkdir()
    source.file.write_text("no key\n")
    with pytest.raises(KeyMismatch, match=r"encryption.keys: .* line 1"):
        await open_encryption(store, source, IDS)


async def test_two_servers_that_begin_at_once_do_not_both_make_a_key(
    store: RestorableStore, tmp_path: Path
) -> None:
    sources = [KeySource(tmp_path / str(n) / "keys", alone=False) for n in range(2)]
    opened = await asyncio.gather(
        *(open_encryption(store, each, IDS) for each in sources), return_exceptions=True
    )
    good = [each for each in opened if isinstance(each, EncryptionKeys)]
    assert len(good) == 1
    assert [isinstance(each, KeyMismatch) for each in opened].count(True) == 1
    assert [each.file.exists() for each in sources].count(True) == 1


# Data of the version before, which knew no record and encrypted only when given a key file.


async def test_plain_secrets_of_before_are_readable_and_encrypted_in_the_background(
    store: RestorableStore, source: KeySource
) -> None:
    for n in range(120):
        await store.commit([Write(secret(n), b"plain"), Write(CONFIG_MAP, b"open")])
    keys = await open_encryption(store, source, IDS)
    encrypted = EncryptedStore(store, keys)
    assert {e.value for e in (await encrypted.range("/core/secrets/")).entries} == {b"plain"}
    rotation = await following(store, keys, source)
    await rotation.finish_rewriting()
    assert not any(b"plain" in value for value in await raw_values(store))
    assert {e.value for e in (await encrypted.range("/core/secrets/")).entries} == {b"plain"}
    untouched = await store.get(CONFIG_MAP)
    assert untouched is not None
    assert untouched.value == b"open"
    before = await store.revision()
    await rotation.finish_rewriting()
    assert await store.revision() == before


async def test_a_shared_store_of_before_stays_as_it_is_until_a_rotation_begins(
    store: RestorableStore, source: KeySource
) -> None:
    await store.commit([Write(secret("a"), b"plain")])
    shared = KeySource(source.file, alone=False)
    keys = await open_encryption(store, shared, IDS)
    assert keys.current == ""
    assert not source.file.exists()
    assert await read_record(store) is None
    await written(store, keys, ["b"])
    assert b"value of b" in await raw_values(store)
    # A key that all servers were given is used when a person says so.
    source.file.parent.mkdir()
    source.file.write_text(NEW)
    rotation = await following(store, keys, shared)
    rotation.reload()
    await rotation.use("new", [known(rotation)])
    await pass_of(rotation)
    assert all(b":new:" in value for value in await raw_values(store))


async def test_a_store_that_was_given_a_key_file_before_goes_on_with_it(
    store: RestorableStore, source: KeySource
) -> None:
    source.file.parent.mkdir()
    source.file.write_text(OLD)
    before = EncryptionKeys(IDS, parse_keys(OLD))
    before.use("old")
    await written(store, before, ["a"])
    keys = await open_encryption(store, KeySource(source.file, given=True, alone=False), IDS)
    assert keys.current == "old"
    record = await read_record(store)
    assert record is not None
    assert record.rewritten


@pytest.mark.parametrize("there", ["", NEW, NEW.replace("new", "old")])
async def test_a_store_encrypted_before_is_not_opened_without_that_key(
    store: RestorableStore, source: KeySource, there: str
) -> None:
    before = EncryptionKeys(IDS, parse_keys(OLD))
    before.use("old")
    await written(store, before, ["a"])
    source.file.parent.mkdir()
    if there:
        source.file.write_text(there)
    with pytest.raises(KeyMismatch, match="old"):
        await open_encryption(store, source, IDS)
    assert await read_record(store) is None


# Rotation.


async def following(store: Store, keys: EncryptionKeys, source: KeySource) -> EncryptionRotation:
    rotation = EncryptionRotation(store, keys, source)
    entry = await store.get(record_key("encryption"))
    rotation.follow(None if entry is None else entry.value)
    return rotation


def known(rotation: EncryptionRotation) -> ServerRecord:
    return ServerRecord(
        "one", {"encryption": dict(rotation.known)}, {"encryption": rotation.current}
    )


async def pass_of(rotation: EncryptionRotation, after: str = "") -> int:
    count = 0
    while True:
        done = await rotation.rewrite(after)
        count, after = count + done.rewritten, done.after
        if not after:
            return count


async def test_a_rotation_rewrites_every_secret_and_then_the_old_key_can_go(
    store: RestorableStore, source: KeySource
) -> None:
    keys = await open_encryption(store, source, IDS)
    first = keys.current
    encrypted = await written(store, keys, [f"{n:03}" for n in range(130)])
    watched = await store.revision()
    source.file.write_text(source.file.read_text() + NEW)
    rotation = await following(store, keys, source)
    rotation.reload()
    assert rotation.status([known(rotation)])["pending"] == ["new"]
    await rotation.use("new", [known(rotation)])
    with pytest.raises(RotationRefused, match="not every Secret"):
        await rotation.drop_old([known(rotation)])
    assert await pass_of(rotation) == 130
    assert await pass_of(rotation) == 0
    await rotation.drop_old([known(rotation)])
    assert rotation.status([known(rotation)])["old"] == []
    assert rotation.status([known(rotation)])["pending"] == []
    source.file.write_text(NEW)
    fresh = await open_encryption(store, source, IDS)
    found = (await EncryptedStore(store, fresh).range("/core/secrets/")).entries
    assert [e.value for e in found] == [f"value of {n:03}".encode() for n in range(130)]
    assert first not in fresh.checks
    # History that only the old key could read is gone rather than unreadable.
    with pytest.raises(Compacted):
        await encrypted.history("/core/secrets/", after=watched)


async def test_a_rotation_that_was_interrupted_is_continued(
    store: RestorableStore, source: KeySource
) -> None:
    keys = await open_encryption(store, source, IDS)
    await written(store, keys, [f"{n:03}" for n in range(130)])
    source.file.write_text(source.file.read_text() + NEW)
    rotation = await following(store, keys, source)
    rotation.reload()
    await rotation.use("new", [known(rotation)])
    done = await rotation.rewrite("")
    assert 0 < done.rewritten < 130
    # The server is started anew, and knows where it was.
    keys = await open_encryption(store, source, IDS)
    assert keys.current == "new"
    rotation = await following(store, keys, source)
    assert not rotation.status([known(rotation)])["rewritten"]
    assert await pass_of(rotation) == 130 - done.rewritten
    assert rotation.status([known(rotation)])["rewritten"]


async def test_writes_during_a_rotation_are_neither_lost_nor_undone(
    store: RestorableStore, source: KeySource
) -> None:
    keys = await open_encryption(store, source, IDS)
    names = [f"{n:03}" for n in range(60)]
    encrypted = await written(store, keys, names)
    source.file.write_text(source.file.read_text() + NEW)
    rotation = await following(store, keys, source)
    rotation.reload()
    await rotation.use("new", [known(rotation)])

    async def disturb() -> None:
        for turn in range(3):
            for name in names[turn::3]:
                await encrypted.commit([Write(secret(name), b"changed")])
        for name in names[:5]:
            await encrypted.commit([Write(secret(name), None)])

    await asyncio.gather(disturb(), pass_of(rotation))
    found = {e.key: e.value for e in (await encrypted.range("/core/secrets/")).entries}
    assert found == {secret(name): b"changed" for name in names[5:]}
    assert all(keys.is_current(value) for value in await raw_values(store))


async def test_a_page_reads_and_writes_a_bounded_number_of_secrets(
    store: RestorableStore, source: KeySource
) -> None:
    keys = await open_encryption(store, source, IDS)
    await written(store, keys, [f"{n:03}" for n in range(120)])
    source.file.write_text(source.file.read_text() + NEW)
    rotation = await following(store, keys, source)
    rotation.reload()
    await rotation.use("new", [known(rotation)])
    pages = [await rotation.rewrite("")]
    while pages[-1].after:
        pages.append(await rotation.rewrite(pages[-1].after))
    # The last looks for contents of revisions, of which there are none.
    assert [page.examined for page in pages] == [50, 50, 20, 0]
