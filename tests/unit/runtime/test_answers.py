"""What a server's answers say."""

from __future__ import annotations

from collections.abc import AsyncIterator

import orjson
import pytest

from skerry.api.errors import ApiError, Gone, NotFound
from skerry.api.objects import Object
from skerry.runtime.answers import (
    answer_failure,
    asked_delay,
    decoded,
    name_items,
    watch_events,
)
from skerry.runtime.transport import Answer, TransportError


def answer(status: int, body: bytes = b"", **headers: str) -> Answer:
    return Answer(status, {name.replace("_", "-"): text for name, text in headers.items()}, body)


def test_an_empty_body_is_no_object_and_other_text_no_json() -> None:
    assert decoded(b"") == {}
    assert decoded(b'{"a": 1}') == {"a": 1}
    with pytest.raises(TransportError, match="not JSON"):
        decoded(b"<html>")


def test_a_status_becomes_the_error_it_names_and_other_text_is_quoted() -> None:
    status = {"kind": "Status", "reason": "NotFound", "message": "no such pod", "code": 404}
    failure = answer_failure(answer(404, orjson.dumps(status)))
    assert isinstance(failure, NotFound)
    assert failure.message == "no such pod"
    assert answer_failure(answer(502, b"Bad Gateway\n")).message == "HTTP 502: Bad Gateway"
    assert answer_failure(answer(500, b'{"kind": "Pod"}')).message.startswith("HTTP 500: ")
    assert answer_failure(answer(503)).message == "HTTP 503"


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        (answer(429), 1.0),
        (answer(429, retry_after="7"), 7.0),
        (answer(503, retry_after="3"), 3.0),
        (answer(503), None),
        (answer(409, retry_after="3"), None),
        (answer(429, retry_after="Mon, 01 Jan 2030 00:00:00 GMT"), None),
        (answer(429, retry_after="²"), None),
        (answer(429, retry_after="9" * 5000), None),
    ],
)
def test_a_server_asks_to_be_left_alone_in_seconds(given: Answer, seconds: float | None) -> None:
    assert asked_delay(given) == seconds


def test_items_of_a_built_in_list_get_the_kind_the_list_leaves_out() -> None:
    items: list[Object] = [{}, {"kind": "Own", "apiVersion": "x/v1"}]
    name_items(items, {"kind": "PodList", "apiVersion": "v1"})
    assert items == [{"kind": "Pod", "apiVersion": "v1"}, {"kind": "Own", "apiVersion": "x/v1"}]
    bare: list[Object] = [{}]
    name_items(bare, {"kind": "Table"})
    assert bare == [{}]


async def lines(*records: bytes) -> AsyncIterator[bytes]:
    for record in records:
        yield record


async def test_a_watch_yields_events_until_one_is_an_error() -> None:
    good = b'{"type": "ADDED", "object": {"metadata": {"name": "a"}}}'
    bad = b'{"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}'
    events = watch_events(lines(good, bad))
    first = await anext(events)
    assert (first.kind, first.object["metadata"]["name"]) == ("ADDED", "a")
    with pytest.raises(Gone):
        await anext(events)


@pytest.mark.parametrize("record", [b"not json", b'{"object": {}}', b'{"type": "ADDED"}'])
async def test_a_record_that_is_no_event_breaks_the_watch(record: bytes) -> None:
    with pytest.raises(TransportError, match="not an event"):
        await anext(watch_events(lines(record)))


def test_every_failure_is_an_api_error() -> None:
    assert isinstance(answer_failure(answer(418, b"teapot")), ApiError)
