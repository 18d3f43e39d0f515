from __future__ import annotations

import asyncio
import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.kit.ids import SeededIds
from skerry.server.security.encryption import (
    DecryptionError,
    EncryptedStore,
    EncryptionKeys,
    confidential_page,
    key_name_of,
    new_key,
    parse_keys,
)
from skerry.store.base import Write
from skerry.store.memory import MemoryStore

OLD = base64.b64encode(b"o" * 32).decode()
NEW = base64.b64encode(b"n" * 16).decode()
SECRET = "/core/secrets/local/ns/s"
BOUND = "/core/secrets:identity/local/ns/s"
PLAIN = "/core/configmaps/local/ns/c"
CONTENT = "/edge.kcp.io/revisioncontents:identity/local/-/ab"


def keys(text: str = f"old: {OLD}\n", use: str = "old") -> EncryptionKeys:
    found = EncryptionKeys(SeededIds(1), parse_keys(text))
    found.use(use)
    return found


@given(st.text(max_size=20), st.binary(max_size=100))
def test_what_is_encrypted_comes_back_and_is_not_to_be_seen(key: str, value: bytes) -> None:
    k = keys()
    sealed = k.encrypt(key, value)
    assert k.decrypt(key, sealed) == value
    _, _, hidden = sealed.partition(b":old:")
    assert len(value) < 4 or value not in hidden
    assert k.encrypt(key, value) != sealed


def test_the_key_in_use_encrypts_and_all_decrypt() -> None:
    sealed = keys().encrypt(SECRET, b"v")
    rotated = keys(f"# rotated\nold: {OLD}  # until rewritten\nnew: {NEW}\n", use="new")
    assert rotated.decrypt(SECRET, sealed) == b"v"
    assert key_name_of(sealed) == "old"
    assert not rotated.is_current(sealed)
    assert rotated.is_current(rotated.encrypt(SECRET, b"v"))
    with pytest.raises(DecryptionError, match="no encryption key is named 'old'"):
        keys(f"new: {NEW}", use="new").decrypt(SECRET, sealed)


def test_a_key_that_is_not_there_cannot_be_used() -> None:
    with pytest.raises(LookupError, match="no encryption key is named 'new'"):
        keys(use="new")


def test_keys_are_added_by_reading_again_and_never_lost_or_exchanged() -> None:
    k = keys()
    sealed = k.encrypt(SECRET, b"v")
    k.load(parse_keys(f"new: {NEW}"))
    assert k.decrypt(SECRET, sealed) == b"v"
    assert set(k.checks) == {"old", "new"}
    with pytest.raises(ValueError, match="'old' has changed under the same name"):
        k.load(parse_keys(f"old: {NEW}\nnewest: {OLD}"))
    assert set(k.checks) == {"old", "new"}
    assert k.decrypt(SECRET, sealed) == b"v"


def test_without_a_key_in_use_values_are_kept_as_they_are() -> None:
    k = EncryptionKeys(SeededIds(1))
    assert k.encrypt(SECRET, b"v") == b"v"
    assert k.is_current(b"v")


def test_a_fresh_key_has_a_name_of_its_own_and_256_bits() -> None:
    ids = SeededIds(3)
    (one, line), (two, _) = new_key(ids), new_key(ids)
    assert one != two
    assert len(parse_keys(line)[one]) == 32


def test_a_value_moved_to_another_place_does_not_decrypt() -> None:
    sealed = keys().encrypt(SECRET, b"v")
    with pytest.raises(DecryptionError, match="does not decrypt"):
        keys().decrypt(SECRET + "2", sealed)


@given(st.integers(0, 10_000))
def test_a_value_changed_anywhere_is_never_taken_for_good(position: int) -> None:
    sealed = bytearray(keys().encrypt(SECRET, b"value"))
    sealed[position % len(sealed)] ^= 1
    changed = bytes(sealed)
    try:
        found = keys().decrypt(SECRET, changed)
    except DecryptionError:
        return
    # Only a damaged header passes, as a value that was never encrypted.
    assert found == changed


def test_a_truncated_value_does_not_decrypt() -> None:
    sealed = keys().encrypt(SECRET, b"value")
    for end in range(len(b"skerry:enc:aesgcm:v1:"), len(sealed)):
        with pytest.raises(DecryptionError):
            keys().decrypt(SECRET, sealed[:end])


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", "at least one line"),
        ("# nothing\n", "at least one line"),
        ("name: !!!\n", "line 1: want a base64 key"),
        (f"name: {base64.b64encode(b'short').decode()}\n", "16, 24 or 32 bytes, found 5"),
        (f"a: {OLD}\na: {NEW}\n", "line 2: key 'a' is there twice"),
        (f": {OLD}\n", "line 1: want 'name: base64 key'"),
    ],
)
def test_a_bad_key_file_is_refused_by_line(text: str, wanted: str) -> None:
    with pytest.raises(ValueError, match=wanted):
        parse_keys(text)


@pytest.mark.parametrize("key", [SECRET, BOUND, CONTENT])
async def test_a_store_shows_plain_values_and_keeps_encrypted_ones(key: str) -> None:
    below = MemoryStore("test")
    store = EncryptedStore(below, keys())
    await store.commit([Write(PLAIN, b"open", 0), Write(key, b"hidden", 0)])
    entry = await store.get(key)
    assert entry is not None
    assert entry.value == b"hidden"
    raw = await below.get(key)
    assert raw is not None
    assert b"hidden" not in raw.value
    assert (await below.get(PLAIN)) == (await store.get(PLAIN))
    for prefix in ("/", key[:8], key):
        page = await store.range(prefix)
        assert b"hidden" in [found.value for found in page.entries]
    await store.commit([Write(key, None, entry.revision)])
    events = await store.history("", after=0)
    assert [event.value for event in events if event.key == key] == [b"hidden", None]
    assert events[-1].previous == b"hidden"
    async for batch in store.watch(key, after=0):
        assert batch[0].value == b"hidden"
        break
    assert store.identity == below.identity
    assert await store.count("/") == 1
    await store.close()


async def test_values_written_before_encryption_stay_readable() -> None:
    below = MemoryStore("test")
    await below.commit([Write(SECRET, b"old and plain", 0)])
    entry = await EncryptedStore(below, keys()).get(SECRET)
    assert entry is not None
    assert entry.value == b"old and plain"


@given(st.sets(st.sampled_from([SECRET, BOUND, CONTENT, f"{SECRET}2", f"{CONTENT}2"])))
def test_pages_hold_everything_confidential_once(stored: set[str]) -> None:
    async def pages() -> list[str]:
        below = MemoryStore("test")
        await below.commit([Write(key, b"v", 0) for key in sorted({PLAIN, *stored})])
        found: list[str] = []
        after, more = "", True
        while more:
            page = await confidential_page(below, after, 1)
            found += [entry.key for entry in page.entries]
            after, more = page.entries[-1].key if page.entries else "", page.more
        return found

    assert asyncio.run(pages()) == sorted(stored)
