"""JSON text into values.

The parser (orjson) is linear, limits its recursion, and refuses lone surrogates, NaN and numbers
beyond a double. What it does not limit is checked on the text before it runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import orjson

from skerry.logic.machinery.decoding.limits import (
    DEFAULT_LIMITS,
    DecodeError,
    LimitExceeded,
    Limits,
)

# Made once: a union written where it is used is made anew each time.
_CONTAINERS: Final = (dict, list)
_FEW: Final = 8
_STRING: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


def decode_json(body: bytes, limits: Limits = DEFAULT_LIMITS) -> Any:
    """Return what *body* holds; raises DecodeError."""
    # Every value but the first costs a bracket or a comma, so few bodies need counting.
    if len(body) > limits.nodes and max_values(body) > limits.nodes:
        _refuse_nodes(body, limits)
    try:
        document = orjson.loads(body)
    except (orjson.JSONDecodeError, RecursionError) as error:
        if "Not enough memory" in str(error):
            # The parser's way to say so; the text may be good.
            raise MemoryError from error
        readable = _readable(body)
        if readable is None:
            raise DecodeError(str(error)) from error
        return decode_json(readable, limits)
    # No text nests deeper than it has brackets, each of which is closed again.
    if len(body) > 2 * limits.depth and _brackets(body) > limits.depth:
        refuse_depth(document, limits)
    return document


def _brackets(body: bytes) -> int:
    """Return how often *body* opens a bracket: a few are found sooner than many are counted."""
    count = 0
    for bracket in (b"{", b"["):
        at = body.find(bracket)
        while at >= 0:
            count += 1
            if count > _FEW:
                return body.count(b"{") + body.count(b"[")
            at = body.find(bracket, at + 1)
    return count


def _readable(body: bytes) -> bytes | None:
    """Return *body* with U+FFFD for what is not UTF-8, as Go reads it; None where all of it is."""
    try:
        body.decode()
    except UnicodeDecodeError:
        return body.decode(errors="replace").encode()
    return None


def max_values(body: bytes) -> int:
    """Return a number of values that JSON text *body* does not exceed.

    Separators inside strings are counted too, so the true number may be much lower.
    """
    return body.count(b",") + body.count(b"[") + body.count(b"{") + 1


def _refuse_nodes(body: bytes, limits: Limits) -> None:
    """Count again without what stands inside strings."""
    values = max_values(_STRING.sub(b"", body))
    if values > limits.nodes:
        raise LimitExceeded(f"it has {values} values: want at most {limits.nodes}")


def refuse_depth(document: Any, limits: Limits = DEFAULT_LIMITS) -> None:
    """Raise DecodeError if *document* nests too deeply, without recursion."""
    level = [document]
    for _ in range(limits.depth):
        level = [child for child in _children(level) if isinstance(child, _CONTAINERS)]
        if not level:
            return
    raise DecodeError(f"it is nested more than {limits.depth} levels deep")


def refuse_size(document: Any, limits: Limits = DEFAULT_LIMITS) -> None:
    """Raise LimitExceeded if there is too much in *document*, which no text of JSON showed, and
    DecodeError if it nests too deeply."""
    values, level = 1, [document]
    for _ in range(limits.depth + 1):
        members = list(_children(level))
        values += len(members)
        if values > limits.nodes:
            raise LimitExceeded(f"it has more than {limits.nodes} values")
        level = [child for child in members if isinstance(child, _CONTAINERS)]
        if not level:
            return
    raise DecodeError(f"it is nested more than {limits.depth} levels deep")


def _children(level: list[Any]) -> Iterator[Any]:
    for node in level:
        if isinstance(node, dict):
            yield from node.values()
        elif isinstance(node, list):
            yield from node
