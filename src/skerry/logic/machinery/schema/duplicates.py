"""Keys that stand twice in one JSON object, which strict field validation refuses.

The decoder everything else uses keeps the last of equal keys without a word, so this reads the
body once more, with the standard library's decoder and its hook for pairs. It is only called
when a client asked for Warn or Strict.

Hardly any body repeats a key, and that can mostly be decided without reading it again: a body that
is what encoding the decoded yields has lost nothing. Without white space every key ends in ``":``,
and nothing else holds these two but text with an escaped quote before a colon. A text that repeats
a key loses it in decoding, so encoding what was decoded then has fewer of them. Only where
characters are escaped by their number, which spoils the count, or the counts differ, is the body
read.
"""

from __future__ import annotations

import json
from typing import Any

import orjson

from skerry.logic.machinery.schema.paths import Path, dotted


class _Object(list[tuple[str, Any]]):
    """The members of a JSON object in order, repetitions among them."""


def duplicate_keys(body: bytes, decoded: Any = None) -> list[str]:
    """Return the paths of fields that are given more than once, sorted, each once.

    Text that is no JSON, or is nested beyond reason, has none: whoever decodes it says so.
    *decoded* is what *body* was decoded to, if the caller has it.
    """
    found: dict[str, None] = {}
    try:
        if (decoded is not None and _all_kept(body, decoded)) or not _repeats(body):
            return []
        _walk(json.loads(body, object_pairs_hook=_Object), None, found)
    except (ValueError, RecursionError):
        return []
    return sorted(found)


_KEY_END = b'":'
# JSON's white space. Inside of strings it goes too, but on both sides alike.
_SPACE = b" \t\r\n"
# A quote, a colon or a space may be hidden behind its number in the body, and stand plain in what
# is encoded anew.
_BY_NUMBER = rb"\u"


def _all_kept(body: bytes, decoded: Any) -> bool:
    """Tell whether every key of *body* surely came through decoding; False may mean nothing."""
    text = orjson.dumps(decoded)
    if body == text:
        return True
    if _BY_NUMBER in body:
        return False
    plain, again = body.translate(None, _SPACE), text.translate(None, _SPACE)
    return plain == again or plain.count(_KEY_END) == again.count(_KEY_END)


class _RepeatedError(Exception):
    """Some object has a key twice."""


def _once(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) != len(pairs):
        raise _RepeatedError


# Making one costs as much as reading a small body with it.
_LOOKING = json.JSONDecoder(object_pairs_hook=_once)


def _repeats(body: bytes) -> bool:
    try:
        _LOOKING.decode(body.decode())
    except _RepeatedError:
        return True
    return False


def duplicate_fields(body: bytes) -> list[str]:
    """Return the sentences strict decoding says of fields given twice."""
    return [f'duplicate field "{path}"' for path in duplicate_keys(body)]


def _walk(value: Any, path: Path, found: dict[str, None]) -> None:
    if isinstance(value, _Object):
        seen: set[str] = set()
        for key, member in value:
            if key in seen:
                found[dotted((path, key))] = None
            seen.add(key)
            _walk(member, (path, key), found)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _walk(item, (path, index), found)
