"""Answers as bytes: heads, blocks, and whether a client takes gzip."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.errors import NotFound
from skerry.server.http.encoding import Heads, accepts_gzip, blocks, error_response, gzipped


@pytest.mark.parametrize(
    ("header", "taken"),
    [
        ("", False),
        ("gzip", True),
        ("deflate, GZIP ; q=0.5", True),
        ("*", True),
        ("identity", False),
        ("gzip;q=0", False),
        ("gzip; q=0.000", False),
        ("gzip;q=0, *", False),
        ("*;q=0, gzip", True),
        ("*;q=0", False),
    ],
)
def test_gzip_is_taken_unless_it_is_refused_by_name(header: str, taken: bool) -> None:
    assert accepts_gzip(header) is taken


@given(st.lists(st.binary(max_size=20), max_size=20), st.integers(1, 30))
def test_blocks_hold_everything_in_order_and_are_large_enough(
    parts: list[bytes], size: int
) -> None:
    found = list(blocks(parts, size))
    assert b"".join(found) == b"".join(parts)
    assert all(len(block) >= size for block in found[:-1])


def test_no_more_than_one_block_is_held() -> None:
    taken = []

    def parts() -> object:
        for number in range(10):
            taken.append(number)
            yield b"x"

    first = next(blocks(parts(), 3))  # type: ignore[arg-type]
    assert (first, taken) == (b"xxx", [0, 1, 2])


@pytest.mark.parametrize("size", [10, 100_000])
async def test_what_is_compressed_can_be_read_again(size: int) -> None:
    parts = [b"a" * size, b"b"]
    assert gzip.decompress(b"".join(await gzipped(parts))) == b"".join(parts)


def test_a_head_has_what_is_fixed_unless_an_answer_says_otherwise() -> None:
    heads = Heads((("Cache-Control", "no-cache"), ("X-A", "1")))
    plain = heads.head(200, "application/json", (), 5)
    assert plain.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"Cache-Control: no-cache\r\n" in plain
    assert plain.endswith(b"Content-Length: 5\r\n")
    own = heads.head(200, "application/json", (("Cache-Control", "max-age=9"),), None)
    assert own.count(b"Cache-Control") == 1
    assert b"Cache-Control: max-age=9\r\n" in own
    assert b"Content-Length" not in own


def test_a_value_from_outside_starts_no_header_of_its_own() -> None:
    head = Heads(()).head(200, "", (("Warning", "a\r\nSet-Cookie: x=1"),), 0)
    assert b"\r\nSet-Cookie" not in head


def test_an_error_is_its_status_with_its_headers() -> None:
    error = NotFound('pods "x" not found')
    found = error_response(error)
    assert found.status == 404
    assert b'"reason":"NotFound"' in found.body
