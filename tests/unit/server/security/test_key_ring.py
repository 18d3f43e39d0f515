"""The keys of a running server follow their files and the store's record, without a restart."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from skerry.api.keys import ObjectKey
from skerry.kit.ids import SeededIds
from skerry.logic.machinery.key_rotation import (
    EncryptionRecord,
    RotationRefused,
    ServerRecord,
    record_key,
)
from skerry.server.security.encryption import EncryptionKeys, key_name_of, new_key, parse_keys
from skerry.server.security.encryption_start import KeyMismatch, KeySource, open_encryption
from skerry.server.security.key_ring import EncryptionRotation, KeyRing, update_record
from skerry.server.watch.dispatcher import Dispatcher
from skerry.store.base import Write
from skerry.store.memory import MemoryStore
from tests.kit.server.clock import HandClock

SECRET = ObjectKey("", "secrets", "root", "ns", "s").path()
OLD, NEW, OTHER = (new_key(SeededIds(seed)) for seed in (1, 2, 3))


def written(file: Path, *keys: tuple[str, str]) -> Path:
    file.write_text("".join(line for _, line in keys))
    file.chmod(0o600)
    return file


async def rotation(
    folder: Path, *keys: tuple[str, str], store: MemoryStore | None = None
) -> tuple[EncryptionRotation, MemoryStore, EncryptionKeys]:
    """Return the keys of a server that was started with the first of *keys*."""
    store = store or MemoryStore("test")
    source = KeySource(written(folder / "keys", *keys))
    opened = await open_encryption(store, source, SeededIds(9))
    made = EncryptionRotation(store, opened, source)
    entry = await store.get(record_key("encryption"))
    made.follow(None if entry is None else entry.value)
    return made, store, opened


def server(name: str, uses: str, known: dict[str, str]) -> ServerRecord:
    return ServerRecord(name, {"encryption": known}, {"encryption": uses})


def all_of(made: EncryptionRotation) -> list[ServerRecord]:
    return [server("one", made.current, dict(made.known))]


async def test_a_rotation_goes_from_one_key_to_the_next_and_ends_without_the_old(
    tmp_path: Path,
) -> None:
    made, store, keys = await rotation(tmp_path, OLD)
    await store.commit([Write(SECRET, keys.encrypt(SECRET, b"value"))])
    written(tmp_path / "keys", OLD, NEW)
    made.reload()
    assert made.status(all_of(made))["pending"] == [NEW[0]]
    await made.use(NEW[0], all_of(made))
    assert made.current == NEW[0]
    with pytest.raises(RotationRefused):
        await made.drop_old(all_of(made))
    await made.finish_rewriting()
    entry = await store.get(SECRET)
    assert entry is not None
    assert key_name_of(entry.value) == NEW[0]
    await made.drop_old(all_of(made))
    found = made.status(all_of(made))
    assert (found["current"], found["old"], found["retired"]) == (NEW[0], [], [OLD[0]])
    # What only the old key reads is forgotten with it.
    assert await store.compacted() > 0


async def test_a_key_is_not_used_before_every_live_server_has_it(tmp_path: Path) -> None:
    made, _, keys = await rotation(tmp_path, OLD, NEW)
    behind = server("two", OLD[0], {OLD[0]: keys.checks[OLD[0]]})
    with pytest.raises(RotationRefused, match="two"):
        await made.use(NEW[0], [*all_of(made), behind])
    assert made.current == OLD[0]
    with pytest.raises(RotationRefused, match="no encryption key"):
        await made.use(OTHER[0], all_of(made))


async def test_what_another_server_began_is_followed(tmp_path: Path) -> None:
    made, _, keys = await rotation(tmp_path, OLD, NEW)
    record = EncryptionRecord(NEW[0], dict(keys.checks))
    made.follow(msgspec.json.encode(record))
    assert made.current == NEW[0]


async def test_a_key_that_this_server_lacks_is_used_as_soon_as_its_file_has_it(
    tmp_path: Path,
) -> None:
    made, _, keys = await rotation(tmp_path, OLD)
    both = EncryptionKeys(SeededIds(1))
    both.load({**_parsed(OLD), **_parsed(NEW)})
    made.follow(msgspec.json.encode(EncryptionRecord(NEW[0], dict(both.checks))))
    assert made.current == OLD[0], "it goes on with what it has"
    written(tmp_path / "keys", OLD, NEW)
    made.reload()
    assert keys.current == NEW[0]


def _parsed(key: tuple[str, str]) -> dict[str, bytes]:
    return parse_keys(key[1])


async def test_a_pass_that_another_rotation_overtook_does_not_end_it(tmp_path: Path) -> None:
    made, store, keys = await rotation(tmp_path, OLD, NEW)
    record = EncryptionRecord(NEW[0], dict(keys.checks))
    await store.commit([Write(record_key("encryption"), msgspec.json.encode(record))])
    with pytest.raises(RotationRefused, match="another rotation has begun"):
        await made.rewrite("")


async def test_a_server_that_is_alone_encrypts_what_was_there_before(tmp_path: Path) -> None:
    store = MemoryStore("test")
    await store.commit([Write(SECRET, b"plain")])
    made, _, keys = await rotation(tmp_path, OLD, store=store)
    await made.finish_rewriting()
    entry = await store.get(SECRET)
    assert entry is not None
    assert keys.decrypt(SECRET, entry.value) == b"plain"
    assert key_name_of(entry.value) == OLD[0]
    assert made.record is not None
    assert made.record.rewritten


class Contended(MemoryStore):
    """Somebody else writes the record first, some times."""

    times = 0

    async def commit(self, writes: Sequence[Write]) -> list[int]:
        if self.times:
            self.times -= 1
            theirs = EncryptionRecord(f"theirs-{self.times}", {})
            await super().commit([Write(record_key("encryption"), msgspec.json.encode(theirs))])
        return await super().commit(writes)


async def test_a_record_is_decided_anew_when_somebody_else_wrote_it() -> None:
    store, seen = Contended("test"), list[Any]()
    store.times = 2

    def decide(old: EncryptionRecord | None) -> EncryptionRecord:
        seen.append(old and old.current)
        return EncryptionRecord("mine", {})

    found = await update_record(store, "encryption", EncryptionRecord, decide)
    assert found.current == "mine"
    assert seen == [None, "theirs-1", "theirs-0"]
    store.times = 1000
    with pytest.raises(RotationRefused, match="changed by others"):
        await update_record(
            store, "encryption", EncryptionRecord, lambda _: EncryptionRecord("", {})
        )


class Kind:
    """A kind of key that notes what it is to follow."""

    kind = "paper"

    def __init__(self, file: Path) -> None:
        self.files = (file,)
        self.known = {"a": ""}
        self.current = "a"
        self.followed: list[bytes | None] = []
        self.reloads = 0

    def reload(self) -> None:
        self.reloads += 1
        if self.reloads == 1:
            raise KeyMismatch("unreadable")

    def follow(self, value: bytes | None) -> None:
        self.followed.append(value)

    async def use(self, name: str, servers: Any) -> None: ...

    async def drop_old(self, servers: Any) -> None: ...

    def status(self, servers: Any) -> dict[str, Any]:
        return {}


async def test_a_ring_follows_the_store_and_its_files(tmp_path: Path) -> None:
    store, kind = MemoryStore("test"), Kind(tmp_path / "file")
    await store.commit([Write(record_key("paper"), b"first")])
    dispatcher = Dispatcher(store)
    await dispatcher.start()
    ring = KeyRing(store, [kind], HandClock(), SeededIds(1), "one")
    await ring.follow(dispatcher)
    assert kind.followed == [b"first"]
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(dispatcher.run())
        await store.commit([Write(record_key("paper"), b"second")])
        await dispatcher.reached(await store.revision())
        running.cancel()
    assert kind.followed == [b"first", b"second"]
    # A file that cannot be used changes nothing, and is looked at when it changes again.
    ring.reload()
    (tmp_path / "file").write_text("x")
    assert ring._stamped() != ring._stamps
    ring.reload()
    assert kind.reloads == 2
    assert ring._stamped() == ring._stamps
