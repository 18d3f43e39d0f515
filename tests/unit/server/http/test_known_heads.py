"""Requests are the same whether their heads are parsed or recognised by their bytes."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.kit.clock import Clock, SystemClock
from skerry.server.http.accepting import Bodies
from skerry.server.http.reading import Read, RequestReader
from skerry.server.http.settings import HttpSettings


@dataclass
class Limits:
    settings: HttpSettings = field(default_factory=HttpSettings)
    clock: Clock = field(default_factory=SystemClock)
    bodies: Bodies = field(default_factory=lambda: Bodies(1 << 20))
    tick: float = 0.0


def post(body: bytes, *, length: bytes | None = None, more: bytes = b"") -> bytes:
    said = b"%d" % len(body) if length is None else length
    return (
        b"POST /things?a=%d HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
        b"Content-Length: %b\r\nAccept: */*\r\n%b\r\n%b" % (len(body), said, more, body)
    )


def read(*packets: bytes, limits: Limits | None = None) -> list[Read]:
    found: list[Read] = []
    reader = RequestReader(limits or Limits(), found.append, lambda: None)
    for packet in packets:
        reader.feed(packet)
    return found


def seen(reads: list[Read]) -> list[object]:
    return [
        (r.method, r.path, r.query_string, dict(r.headers), r.body, keep, chunked, str(refusal))
        for r, keep, chunked, refusal in reads
    ]


BODIES = st.binary(min_size=1, max_size=300)


@given(st.lists(BODIES, min_size=2, max_size=5))
def test_a_body_after_a_known_head_is_read_as_the_parser_reads_it(bodies: list[bytes]) -> None:
    packets = [post(body) for body in bodies]
    alone = [each for packet in packets for each in read(packet)]
    assert seen(read(*packets)) == seen(alone)
    assert [each[0].body for each in alone] == bodies


@given(st.lists(BODIES, min_size=2, max_size=4), st.integers(1, 60))
def test_pieces_of_requests_come_together_after_a_known_head(
    bodies: list[bytes], size: int
) -> None:
    stream = b"".join(map(post, bodies))
    pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
    whole = read(post(b"{}"), *pieces)
    assert [each[0].body for each in whole] == [b"{}", *bodies]


@pytest.mark.parametrize(
    "packet",
    [
        post(b"ab", length=b"+2"),
        post(b"ab", length=b" 2"),
        post(b"ab", length=b"0x2"),
        post(b"ab", length=b"2, 2"),
        post(b"ab", length=b""),
        post(b"ab", more=b"Content-Length: 2\r\n"),
        post(b"ab", more=b"Transfer-Encoding: chunked\r\n"),
        post(b"ab").replace(b"HTTP/1.1", b"HTTP/1.7"),
        post(b"ab").replace(b"POST", b"BREW"),
        post(b"ab", length=b"99999999999"),
    ],
)
def test_what_the_parser_judges_is_judged_after_a_known_head_as_well(packet: bytes) -> None:
    assert seen(read(post(b"{}"), packet))[1:] == seen(read(packet))


def test_a_body_beyond_the_limit_is_refused_after_a_known_head() -> None:
    limits = Limits(HttpSettings(body_bytes=10))
    *_, (_, keep, _, refusal) = read(post(b"{}"), post(b"x" * 11), limits=limits)
    assert (keep, getattr(refusal, "code", 0)) == (False, 413)
