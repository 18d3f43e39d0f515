"""What a tab of the console and the hub say to each other, one JSON object a frame.

``docs/reference/console-protocol.md`` describes it. A frame that cannot be read is answered with a
sentence and costs the tab nothing else; the size of a frame is limited before it gets here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from skerry.api.errors import BadRequest
from skerry.kit.text import shortened

PROTOCOL = 1
SUBPROTOCOL = f"skerry.console.v{PROTOCOL}"
# A manifest in the editor is the longest that a tab sends.
MAX_FRAME_BYTES = 256 * 1024
# One view is open at a time, with a search box and a drawer over it.
MAX_SUBSCRIPTIONS = 16
_MAX_ID = 2**31
_SHOWN = 64


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Open the subscription *id*, or replace it."""

    id: int
    kind: str
    view: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """End the subscription *id*."""

    id: int


@dataclass(frozen=True, slots=True)
class Ask:
    """One question, one answer."""

    id: int
    kind: str
    given: Mapping[str, Any]


Frame = Subscribe | Unsubscribe | Ask


class FrameError(BadRequest):
    """Why a frame is not understood; *id* is what it was about, where that could be read."""

    def __init__(self, message: str, id: int | None = None) -> None:  # noqa: A002
        super().__init__(message)
        self.id = id


def parse_frame(text: bytes) -> Frame:
    """Return what a tab says."""
    try:
        frame = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise FrameError(f"the frame is no JSON: {error}") from error
    if not isinstance(frame, dict):
        raise FrameError(f"the frame is a JSON {type(frame).__name__}: want an object")
    number = frame.get("id")
    if type(number) is not int or not 0 <= number < _MAX_ID:
        raise FrameError(f"id: want a whole number from 0 to {_MAX_ID - 1}")
    if frame.get("unsub") is True:
        return Unsubscribe(number)
    if "sub" in frame:
        return Subscribe(number, _kind(frame, "sub", number), _members(frame, "view", number))
    if "ask" in frame:
        return Ask(number, _kind(frame, "ask", number), _members(frame, "with", number))
    raise FrameError('want one of the members "sub", "unsub" and "ask"', number)


def _kind(frame: Mapping[str, Any], member: str, number: int) -> str:
    kind = frame[member]
    if not isinstance(kind, str):
        raise FrameError(f"{member}: want the name of a kind, a string", number)
    return shortened(kind, _SHOWN)


def _members(frame: Mapping[str, Any], member: str, number: int) -> Mapping[str, Any]:
    given = frame.get(member, {})
    if not isinstance(given, dict):
        raise FrameError(f"{member}: want an object", number)
    return given
