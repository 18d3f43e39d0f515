"""Who hears of which event."""

from __future__ import annotations

from skerry.scheduler.framework.events import (
    ASSIGNED_POD_ADD,
    NODE,
    NODE_ADD,
    Action,
    ClusterEvent,
    Hint,
    Registration,
)
from skerry.scheduler.hints import Listeners

UPDATE_LABEL = ClusterEvent(NODE, Action.UPDATE_NODE_LABEL)


def hint(*_: object) -> Hint:
    return Hint.QUEUE


def listeners() -> Listeners:
    return Listeners(
        {
            "one": {
                "B": [Registration(NODE_ADD, hint)],
                "A": [Registration(NODE_ADD), Registration(UPDATE_LABEL, hint)],
            },
            "two": {},
        }
    )


def test_plugins_hear_of_what_they_registered_in_the_order_they_are_configured() -> None:
    found = listeners()
    assert list(found.of("one", NODE_ADD)) == [("B", hint), ("A", None)]
    assert list(found.of("one", UPDATE_LABEL)) == [("A", hint)]
    assert list(found.of("one", ASSIGNED_POD_ADD)) == []
    assert list(found.of("two", NODE_ADD)) == list(found.of("absent", NODE_ADD)) == []


def test_an_event_is_interesting_when_anybody_listens() -> None:
    found = listeners()
    for _ in range(2):  # the second time it is known
        assert found.interesting(NODE_ADD)
        assert not found.interesting(ASSIGNED_POD_ADD)
