"""What a tab of the console and the hub say to each other, one JSON object a frame.

``docs/reference/console-protocol.md`` describes it. A frame that cannot be read is answered with a
sentence and costs the tab nothing else; the size of a frame is limited before it gets here.

The tab chooses the ``id`` of a subscription, a question or a terminal, and the hub repeats it in
whatever is about that. An ``id`` is read before anything else, so that the refusal of a frame can
name it. One frame is the exception to "nothing else": where its ``id`` is that of a running
terminal, the terminal is ended with the refusal, since what was typed has a gap from there on.

A terminal has flow control in both directions, and two frames exist for that alone. ``Shown`` gives
the program room to print again. ``Typed`` is bounded by what still waits for the program, which the
hub reports back as it is taken.
"""

from __future__ import annotations

import base64
import binascii
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
# Programs of one tab that somebody types into, and how much of what is typed may wait for one.
MAX_TERMINALS = 4
MAX_TYPED_BYTES = 64 * 1024
# Wider and higher than any screen shows letters.
MAX_SIDE = 1000
# Ids are repeated in every answer; this many are enough, and none of them is long.
_MAX_ID = 2**31
# Characters of a kind that are kept: one that nobody knows still goes to the audit log.
_SHOWN = 64


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Open the subscription *id*, or replace it.

    A view of the same kind that replaces another is sent as the difference to what the tab has.
    """

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


@dataclass(frozen=True, slots=True)
class Run:
    """Run a program in the terminal *id*."""

    id: int
    kind: str
    given: Mapping[str, Any]
    size: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Typed:
    """Somebody typed or pasted; or the terminal *answered* by itself what the program asked it.

    An answer is not use: a program that asks where the cursor is, again and again, would otherwise
    keep the session of somebody who has left from being idle.
    """

    id: int
    text: bytes
    answered: bool = False


@dataclass(frozen=True, slots=True)
class Size:
    """A terminal has another width and height, in letters."""

    id: int
    size: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Shown:
    """So many more bytes of what a program printed are on the screen.

    It is a difference and not a sum, so one that is lost would leave the program less room for
    good; a WebSocket loses none without ending.
    """

    id: int
    count: int


@dataclass(frozen=True, slots=True)
class End:
    """The terminal is closed, and its program with it."""

    id: int


TerminalFrame = Typed | Size | Shown | End
Frame = Subscribe | Unsubscribe | Ask | Run | TerminalFrame


class FrameError(BadRequest):
    """Why a frame is not understood; *id* is what it was about, where that could be read."""

    def __init__(self, message: str, id: int | None = None) -> None:  # noqa: A002
        super().__init__(message)
        self.id = id


def parse_frame(text: bytes) -> Frame:
    """Return what a tab says; raise ``FrameError`` for whatever is no frame.

    Members are looked for in this order, and what else a frame has is ignored. ``run`` comes before
    ``size``, because a frame that runs a program has both.
    """
    try:
        frame = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise FrameError(f"the frame is no JSON: {error}") from error
    if not isinstance(frame, dict):
        raise FrameError(f"the frame is a JSON {type(frame).__name__}: want an object")
    number = frame.get("id")
    # Not isinstance: JSON's true is an int to Python, and would be the number 1.
    if type(number) is not int or not 0 <= number < _MAX_ID:
        raise FrameError(f"id: want a whole number from 0 to {_MAX_ID - 1}")
    if frame.get("unsub") is True:
        return Unsubscribe(number)
    if "sub" in frame:
        return Subscribe(number, _kind(frame, "sub", number), _members(frame, "view", number))
    if "ask" in frame:
        return Ask(number, _kind(frame, "ask", number), _members(frame, "with", number))
    if "run" in frame:
        kind, given = _kind(frame, "run", number), _members(frame, "with", number)
        return Run(number, kind, given, _size(frame, number))
    if (found := _of_terminal(frame, number)) is not None:
        return found
    raise FrameError(
        'want one of the members "sub", "unsub", "ask", "run", "typed", "size", "shown" and "end"',
        number,
    )


def _of_terminal(frame: Mapping[str, Any], number: int) -> TerminalFrame | None:
    """Return what a frame says of a terminal; None when it has no such member."""
    if "typed" in frame:
        return Typed(number, _bytes(frame["typed"], number), frame.get("answered") is True)
    if "size" in frame:
        return Size(number, _size(frame, number))
    if "shown" in frame:
        count = frame["shown"]
        if type(count) is not int or count < 0:
            raise FrameError("shown: want a number of bytes", number)
        return Shown(number, count)
    return End(number) if frame.get("end") is True else None


def _bytes(text: Any, number: int) -> bytes:
    """Return what was typed. The bound is of the bytes, which base64 makes a third longer."""
    try:
        if isinstance(text, str):
            found = base64.b64decode(text, validate=True)
            if len(found) <= MAX_TYPED_BYTES:
                return found
    except (binascii.Error, ValueError) as error:
        raise FrameError(f"typed: {error}", number) from error
    raise FrameError(f"typed: want at most {MAX_TYPED_BYTES} bytes in base64", number)


def _size(frame: Mapping[str, Any], number: int) -> tuple[int, int]:
    match frame.get("size"):
        case [int(width), int(height)] if 0 < width <= MAX_SIDE and 0 < height <= MAX_SIDE:
            return width, height
    raise FrameError(f"size: want a width and a height from 1 to {MAX_SIDE}", number)


def _kind(frame: Mapping[str, Any], member: str, number: int) -> str:
    kind = frame[member]
    if not isinstance(kind, str):
        raise FrameError(f"{member}: want the name of a kind, a string", number)
    return shortened(kind, _SHOWN)


def _members(frame: Mapping[str, Any], member: str, number: int) -> Mapping[str, Any]:
    """Return the object that a member is; one that is left out is empty, null is refused."""
    given = frame.get(member, {})
    if not isinstance(given, dict):
        raise FrameError(f"{member}: want an object", number)
    return given
