"""Answers as bytes: heads from precomputed fragments, bodies in blocks, gzip off the loop."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Iterable, Iterator, Sequence

import orjson

from skerry.api.errors import ApiError
from skerry.server.http.message import Headers, Response
from skerry.wire.http1 import one_line, response_lines

# Small parts are joined up to this before they are written: one TLS record and one system call
# for many list items, while the memory in use stays a block and not the whole list.
BLOCK_BYTES = 64 * 1024
# Fast and still several times smaller for JSON; kube-apiserver's level too.
_GZIP_LEVEL = 1
_GZIP_WBITS = 31
# A thread hand-over costs about 100 us; below this compressing here is over sooner.
_INLINE_GZIP_BYTES = 16 * 1024
BODILESS = frozenset((204, 304))


class Heads:
    """Builds response heads. What does not change from answer to answer is built once."""

    # Statuses times media types; the bound only guards against a handler that invents types.
    _MAX_PREFIXES = 1024

    def __init__(self, fixed: Headers) -> None:
        self._fixed = tuple(fixed)
        # Compared as spelled: answers are ours and use the canonical spelling.
        self._fixed_names = frozenset(name for name, _ in fixed)
        self._prefixes: dict[tuple[int, str], bytes] = {}

    def head(self, status: int, content_type: str, headers: Headers, length: int | None) -> bytes:
        """Return the head of an answer; without *length* the body's end must show otherwise.

        Only the last, empty line is left to the caller, who knows what becomes of the connection.
        """
        prefix = self._prefixes.get((status, content_type))
        if prefix is None:
            prefix = self._remembered(status, content_type)
        ending = b"" if length is None else b"Content-Length: %d\r\n" % length
        extra = ""
        for name, value in headers:
            if name in self._fixed_names:
                prefix = self._prefix(status, content_type, headers)
            # A value from outside must not start a header, or an answer, of its own.
            extra += f"{name}: {value if value.isprintable() else one_line(value)}\r\n"
        return prefix + extra.encode() + ending

    def _remembered(self, status: int, content_type: str) -> bytes:
        prefix = self._prefix(status, content_type, ())
        if len(self._prefixes) < self._MAX_PREFIXES:
            self._prefixes[(status, content_type)] = prefix
        return prefix

    def _prefix(self, status: int, content_type: str, overriding: Headers) -> bytes:
        own = {name for name, _ in overriding}
        fields = [(name, value) for name, value in self._fixed if name not in own]
        if content_type:
            fields.append(("Content-Type", content_type))
        return response_lines(status, fields)


def error_response(error: ApiError) -> Response:
    """Return the answer that tells a client of *error*."""
    body = orjson.dumps(error.status(), option=orjson.OPT_NON_STR_KEYS)
    return Response(error.code, body, headers=tuple(error.headers.items()))


def blocks(parts: Iterable[bytes], size: int = BLOCK_BYTES) -> Iterator[bytes]:
    """Yield the parts joined into blocks of about *size*; no more than one block is held."""
    held: list[bytes] = []
    count = 0
    for part in parts:
        held.append(part)
        count += len(part)
        if count >= size:
            yield held[0] if len(held) == 1 else b"".join(held)
            held.clear()
            count = 0
    if held:
        yield b"".join(held)


def accepts_gzip(accept_encoding: str) -> bool:
    """Tell whether a client takes gzip, reading ``q=0`` as a refusal.

    What is said of gzip by name counts, whatever ``*`` says of all that is not named.
    """
    taken: dict[str, bool] = {}
    for item in accept_encoding.split(","):
        coding, _, parameters = item.partition(";")
        weight = parameters.replace(" ", "").lower()
        taken[coding.strip().lower()] = weight not in {"q=0", "q=0.0", "q=0.00", "q=0.000"}
    return taken.get("gzip", taken.get("*", False))


async def gzipped(parts: Sequence[bytes]) -> list[bytes]:
    """Return the parts compressed, off the loop unless they are small."""
    if sum(map(len, parts)) <= _INLINE_GZIP_BYTES:
        return _compress(parts)
    return await asyncio.get_running_loop().run_in_executor(None, _compress, parts)


def _compress(parts: Sequence[bytes]) -> list[bytes]:
    compressor = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_WBITS)
    # Big blocks: each call gives up the interpreter lock and must win it back from the loop.
    compressed = [compressor.compress(block) for block in blocks(parts, 16 * BLOCK_BYTES)]
    compressed.append(compressor.flush())
    return [block for block in compressed if block]
