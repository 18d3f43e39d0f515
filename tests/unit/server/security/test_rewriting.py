"""Secrets rewritten with the present key, page by page, while others write."""

from __future__ import annotations

from collections.abc import Sequence

from skerry.api.keys import ObjectKey
from skerry.kit.ids import SeededIds
from skerry.server.security.encryption import EncryptionKeys, key_name_of, new_key, parse_keys
from skerry.server.security.rewriting import Rewritten, is_rewritten, rewrite_page
from skerry.store.base import Write
from skerry.store.memory import MemoryStore

OLD, NEW = (new_key(SeededIds(seed)) for seed in (1, 2))


def keys(current: str = NEW[0]) -> EncryptionKeys:
    made = EncryptionKeys(SeededIds(3), parse_keys(OLD[1] + NEW[1]))
    made.use(current)
    return made


def key(number: int, resource: str = "secrets") -> str:
    return ObjectKey("", resource, "root", "ns", f"s{number:03}").path()


async def stored(count: int, store: MemoryStore | None = None, size: int = 10) -> MemoryStore:
    """Return a store of Secrets, every third unencrypted, the others with the old key."""
    store = store or MemoryStore("test")
    old = keys(OLD[0])
    for number in range(count):
        value = b"x" * size
        sealed = value if number % 3 == 0 else old.encrypt(key(number), value)
        await MemoryStore.commit(store, [Write(key(number), sealed)])
    return store


async def rewritten(store: MemoryStore) -> Rewritten:
    """Do a whole pass; return what it did in all."""
    examined = done = 0
    after, more = "", True
    while more:
        page = await rewrite_page(store, keys(), after)
        examined, done = examined + page.examined, done + page.rewritten
        after, more = page.after, bool(page.after)
    return Rewritten(examined, done, "")


async def test_a_pass_rewrites_every_secret_once_and_changes_no_value() -> None:
    store = await stored(120)
    maps = key(1, "configmaps")
    await store.commit([Write(maps, b"plain")])
    assert not await is_rewritten(store, keys())
    assert await rewritten(store) == Rewritten(120, 120, "")
    assert await is_rewritten(store, keys())
    assert await rewritten(store) == Rewritten(120, 0, "")
    for number in (0, 1, 119):
        entry = await store.get(key(number))
        assert entry is not None
        assert key_name_of(entry.value) == NEW[0]
        assert keys().decrypt(entry.key, entry.value) == b"x" * 10
    other = await store.get(maps)
    assert other is not None
    assert other.value == b"plain"


async def test_secrets_that_a_workspace_bound_are_rewritten_too() -> None:
    store = MemoryStore("test")
    bound = ObjectKey("", "secrets:identity", "root", "ns", "s").path()
    await store.commit([Write(bound, b"plain")])
    assert (await rewritten(store)).rewritten == 1
    entry = await store.get(bound)
    assert entry is not None
    assert key_name_of(entry.value) == NEW[0]


class Contended(MemoryStore):
    """Somebody writes one of the Secrets just before they are committed, a few times."""

    times = 0

    async def commit(self, writes: Sequence[Write]) -> list[int]:
        if self.times and any(write.key == key(1) for write in writes):
            self.times -= 1
            await super().commit([Write(key(1), f"theirs {self.times}".encode())])
        return await super().commit(writes)


async def test_whoever_writes_meanwhile_wins_and_the_others_do_not_wait() -> None:
    store = Contended("test")
    await stored(5, store)
    store.times = 2
    assert (await rewritten(store)).rewritten == 5
    entry = await store.get(key(1))
    assert entry is not None
    assert keys().decrypt(entry.key, entry.value) == b"theirs 0"


async def test_a_secret_that_is_written_again_and_again_is_left_to_who_writes_it() -> None:
    store = Contended("test")
    await stored(3, store)
    store.times = 100
    assert (await rewritten(store)).rewritten == 2
    assert not await is_rewritten(store, keys())


async def test_large_secrets_go_in_several_transactions() -> None:
    class Counting(MemoryStore):
        commits: list[int] = []  # noqa: RUF012 - one test, one store

        async def commit(self, writes: Sequence[Write]) -> list[int]:
            self.commits.append(sum(len(write.value or b"") for write in writes))
            return await super().commit(writes)

    store = Counting("test")
    await stored(6, store, size=600_000)
    assert (await rewritten(store)).rewritten == 6
    assert len(store.commits) == 3
    assert max(store.commits) < 2 << 20
