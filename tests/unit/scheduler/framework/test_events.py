"""What happens in a cluster: which registration an event is for, and what it is called."""

from __future__ import annotations

import pytest

from skerry.scheduler.framework.events import (
    ALL,
    ANY_EVENT,
    ASSIGNED_POD,
    FORCED_ACTIVATION,
    NODE,
    NODE_ADD,
    POD,
    RESOURCES,
    UNSCHEDULED_POD,
    UPDATE,
    WILDCARD,
    Action,
    ClusterEvent,
)


@pytest.mark.parametrize("action", list(Action))
def test_every_single_change_has_a_name(action: Action) -> None:
    assert action.label
    assert action in ALL
    assert (action in UPDATE) == (action not in (Action.ADD, Action.DELETE))


def test_names_are_those_of_metrics() -> None:
    assert NODE_ADD.label == "NodeAdd"
    assert ClusterEvent(NODE, Action.UPDATE_NODE_TAINT).label == "NodeUpdateNodeTaint"
    assert ClusterEvent(NODE, UPDATE).label == "NodeUpdate"
    assert ClusterEvent(NODE, Action.UPDATE_OTHER).label == "NodeUpdate"
    assert FORCED_ACTIVATION.label == "ForceActivate"
    assert ClusterEvent(WILDCARD, ALL).label == "*"


@pytest.mark.parametrize(
    ("registered", "happened", "matches"),
    [
        (ClusterEvent(NODE, Action.ADD), NODE_ADD, True),
        (ClusterEvent(NODE, Action.DELETE), NODE_ADD, False),
        (ClusterEvent(NODE, ALL), NODE_ADD, True),
        (ClusterEvent(POD, Action.ADD), NODE_ADD, False),
        (ClusterEvent(POD, Action.ADD), ClusterEvent(ASSIGNED_POD, Action.ADD), True),
        (ClusterEvent(POD, Action.ADD), ClusterEvent(UNSCHEDULED_POD, Action.ADD), True),
        (ClusterEvent(ASSIGNED_POD, Action.ADD), ClusterEvent(POD, Action.ADD), False),
        (ClusterEvent(WILDCARD, ALL), NODE_ADD, True),
        (ClusterEvent(WILDCARD, Action.ADD), NODE_ADD, True),
        (ClusterEvent(WILDCARD, Action.DELETE), NODE_ADD, False),
        (
            ClusterEvent(NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
            ClusterEvent(NODE, Action.UPDATE_NODE_LABEL),
            True,
        ),
    ],
)
def test_a_registration_is_for_what_it_covers(
    registered: ClusterEvent, happened: ClusterEvent, matches: bool
) -> None:
    assert registered.matches(happened) is matches


def test_whoever_cannot_say_what_would_help_hears_of_everything() -> None:
    assert {each.event.resource for each in ANY_EVENT} == set(RESOURCES)
    assert all(each.event.action == ALL and each.hint is None for each in ANY_EVENT)
