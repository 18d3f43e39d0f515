"""What a server's answers say: objects, watch events, failures, and when to ask again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import orjson

from skerry.api.errors import ApiError, PageNotFound, from_status
from skerry.api.objects import Object
from skerry.kit.text import whole_number
from skerry.runtime.transport import Answer, TransportError

EventKind = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]

_RETRIED_CODES = frozenset((429, 500, 502, 503, 504))


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One thing that happened to one object. A BOOKMARK only tells how far we have read."""

    kind: EventKind
    object: Object


class _Envelope(msgspec.Struct):
    type: str
    object: msgspec.Raw


_ENVELOPE = msgspec.json.Decoder(_Envelope)


async def watch_events(records: AsyncIterator[bytes]) -> AsyncIterator[WatchEvent]:
    """Yield the events that a watch's lines are; raises what an ERROR event tells of."""
    async for record in records:
        try:
            envelope = _ENVELOPE.decode(record)
            obj = orjson.loads(bytes(envelope.object))
        except (msgspec.DecodeError, orjson.JSONDecodeError) as error:
            raise TransportError(f"a watch record is not an event: {error}") from error
        if envelope.type == "ERROR":
            raise from_status(int(obj.get("code", 500)), obj)
        yield WatchEvent(envelope.type, obj)  # type: ignore[arg-type]  # the wire's own words


def name_items(items: list[Object], page: Mapping[str, Any]) -> None:
    """Give list items the kind that built-in lists leave to the list itself."""
    kind = str(page.get("kind", ""))
    if not kind.endswith("List"):
        return
    for item in items:
        if "kind" not in item:
            item["kind"] = kind[:-4]
            item["apiVersion"] = page.get("apiVersion", "")


def decoded(body: bytes) -> Object:
    """Return the object in an answer; an empty one has none."""
    if not body:
        return {}
    try:
        decoded: Object = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise TransportError(f"the answer is not JSON: {error}") from error
    return decoded


def answer_failure(answer: Answer) -> ApiError:
    """Return the error an answer tells of, whatever form it has."""
    try:
        status = orjson.loads(answer.body)
    except orjson.JSONDecodeError:
        status = None
    if not isinstance(status, dict) or status.get("kind") != "Status":
        if answer.status == 404 and answer.body == PageNotFound.plain:
            return PageNotFound.path()
        text = answer.body[:200].decode(errors="replace").strip()
        status = {"message": f"HTTP {answer.status}: {text}" if text else f"HTTP {answer.status}"}
    return from_status(answer.status, status)


def asked_delay(answer: Answer) -> float | None:
    """Return how long the server asks to be left alone; None when it asks for nothing."""
    if answer.status not in _RETRIED_CODES:
        return None
    text = answer.headers.get("retry-after", "1" if answer.status == 429 else "")
    seconds = whole_number(text)
    return None if seconds is None else float(seconds)
