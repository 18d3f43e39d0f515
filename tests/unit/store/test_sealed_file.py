"""Files that only a passphrase opens."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.kit.ids import SeededIds
from skerry.store.sealed_file import (
    CHUNK_BYTES,
    Damaged,
    ScryptCost,
    SealedWriter,
    WrongPassphrase,
    open_sealed,
)

MAGIC = b"test 1\n"
CHEAP = ScryptCost(n=2, r=1)
CHUNK = CHUNK_BYTES + 16


def sealed(content: bytes, passphrase: bytes = b"sesame", pieces: int = 7000) -> bytes:
    file = io.BytesIO()
    writer = SealedWriter(file, MAGIC, passphrase, SeededIds(1), CHEAP)
    for start in range(0, len(content), pieces):
        writer.write(content[start : start + pieces])
    writer.finish()
    return file.getvalue()


def opened(content: bytes, passphrase: bytes = b"sesame") -> bytes:
    file = io.BytesIO(content)
    return open_sealed(file, MAGIC, passphrase).reading(file).read()


SIZES = (0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES + 5)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("pieces", [7000, CHUNK_BYTES, 10 * CHUNK_BYTES])
def test_what_was_sealed_is_read_again(size: int, pieces: int) -> None:
    content = bytes(n % 251 for n in range(size))
    found = sealed(content, pieces=pieces)
    assert opened(found) == content
    assert size < 100 or content[:100] not in found


@given(st.binary(min_size=1, max_size=20).filter(lambda text: text != b"sesame"))
def test_another_passphrase_is_distinguished_from_damage(passphrase: bytes) -> None:
    with pytest.raises(WrongPassphrase):
        opened(sealed(b"content"), passphrase)


def test_no_byte_can_be_changed_unnoticed() -> None:
    found = sealed(b"x" * (CHUNK_BYTES + 100))
    places = [*range(250), *range(250, len(found), 997), len(found) - 1]
    for place in places:
        changed = found[:place] + bytes([found[place] ^ 1]) + found[place + 1 :]
        with pytest.raises((Damaged, WrongPassphrase)):
            opened(changed)


def test_chunks_can_neither_be_left_out_nor_exchanged_nor_repeated_nor_cut_off() -> None:
    found = sealed(b"x" * (3 * CHUNK_BYTES))
    start = len(found) - 3 * CHUNK
    head, chunks = found[:start], [found[start + n * CHUNK :][:CHUNK] for n in range(3)]
    for order in ([0, 2], [1, 0, 2], [0, 1], [0, 1, 1, 2], [0, 1, 2, 2], [2], []):
        with pytest.raises(Damaged):
            opened(head + b"".join(chunks[n] for n in order))
    for length in range(0, len(found), 5003):
        with pytest.raises((Damaged, WrongPassphrase)):
            opened(found[:length])


@pytest.mark.parametrize(
    "change",
    [
        {"n": 1 << 30},
        {"n": 1 << 20, "r": 1 << 20},
        {"n": 3},
        {"n": 0},
        {"n": -2},
        {"r": 0},
        {"p": 1 << 20},
        {"p": 0},
        {"kdf": "none"},
        {"salt": "not hex"},
        {"n": "many"},
        {"n": None},
    ],
)
def test_parameters_that_would_cost_too_much_or_mean_nothing_are_refused(
    change: dict[str, object],
) -> None:
    magic, line, rest = sealed(b"content").split(b"\n", 2)
    parameters = {**json.loads(line), **change}
    with pytest.raises(Damaged, match="its parameters"):
        opened(magic + b"\n" + json.dumps(parameters).encode() + b"\n" + rest)


def test_a_file_without_its_lines_is_refused() -> None:
    for content in (b"", MAGIC, MAGIC + b"[]\n", MAGIC + b"x" * 10_000, b"other\n" + b"x" * 100):
        with pytest.raises(Damaged):
            opened(content)
