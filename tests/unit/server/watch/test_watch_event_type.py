"""What a watcher with a selection sees: objects entering and leaving it are added and deleted."""

from __future__ import annotations

import pytest

from skerry.server.change import Change
from skerry.server.codec import encode
from skerry.server.http.message import Request
from skerry.server.request.options import list_options
from skerry.server.request.selection import Selection
from skerry.server.watch.watch_event_type import watch_event_type
from skerry.store.base import Event
from tests.kit.server.calls import call_of


def stored(labels: dict[str, str] | None) -> bytes | None:
    if labels is None:
        return None
    metadata = {"name": "a", "labels": labels}
    return encode({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})


IN, OUT = {"app": "web"}, {"app": "db"}


@pytest.mark.parametrize(
    ("before", "after", "seen"),
    [
        (None, IN, "ADDED"),
        (None, OUT, None),
        (IN, IN, "MODIFIED"),
        (OUT, IN, "ADDED"),
        (IN, OUT, "DELETED"),
        (OUT, OUT, None),
        (IN, None, "DELETED"),
        (OUT, None, None),
    ],
)
def test_in_the_eyes_of_a_watcher_with_a_selector(
    before: dict[str, str] | None, after: dict[str, str] | None, seen: str | None
) -> None:
    selection = Selection(call_of(), list_options(Request("GET", "/", "labelSelector=app%3Dweb")))
    change = Change(Event(2, "/a", stored(after), stored(before), 1 if before else 0))
    assert watch_event_type(selection, change) == seen


def test_who_watches_everything_sees_what_happened() -> None:
    everything = Selection(call_of(), list_options(Request("GET", "/")))
    assert watch_event_type(everything, Change(Event(2, "/a", stored(OUT), None, 0))) == "ADDED"
    assert watch_event_type(everything, Change(Event(3, "/a", None, stored(OUT), 2))) == "DELETED"
