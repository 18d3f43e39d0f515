"""What people and tools can wait for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.summary.conditions import placement_conditions
from skerry.logic.fleet.summary.health import Health
from skerry.logic.fleet.summary.standing import HeldAt, Hold, Named, Standing, Worst

SCHEDULED = {"type": "Scheduled", "status": "True", "reason": "DestinationsChosen"}
CONFLICT_FREE = {"type": "ConflictFree", "status": "True", "reason": "NoConflicts"}
OTHERS = [SCHEDULED, CONFLICT_FREE]
WELL = Standing(destinations=2, delivered=2, healthy=2, objects=3)
LOST = (Named("berlin", "last heard of 2030-01-01T00:00:00Z"),)
WEB = ObjectRef("", "apps", "deployments", "shop", "web")


def conditions(
    standing: Standing, *problems: Object, others: list[Object] | None = None
) -> dict[str, Any]:
    found = placement_conditions(standing, problems, OTHERS if others is None else others)
    return {each["type"]: each for each in found}


def statuses(found: dict[str, Any]) -> dict[str, str]:
    return {kind: each["status"] for kind, each in found.items()}


def test_what_is_everywhere_and_healthy_is_ready() -> None:
    found = conditions(WELL)

    assert statuses(found) == {
        "Delivered": "True",
        "Healthy": "True",
        "Held": "False",
        "Ready": "True",
    }
    assert found["Delivered"]["message"] == "2 of 2 destinations delivered"
    assert found["Ready"]["message"] == "2 of 2 destinations ready"


def test_what_guards_hold_is_held_and_says_by_what_it_is_confirmed() -> None:
    removals = {"held": {"name": "7f21c0", "why": "too many"}, "charges": []}
    found = {e["type"]: e for e in placement_conditions(WELL, (), OTHERS, removals)}

    assert statuses(found)["Ready"] == "False"
    assert found["Ready"]["reason"] == found["Held"]["reason"] == "RemovalsHeld"
    assert found["Held"]["message"] == "too many; edge.kcp.io/confirm=7f21c0 lets them go"


def test_unknown_destinations_are_counted_in_every_message_and_hold_nothing_back() -> None:
    found = conditions(
        Standing(destinations=3, delivered=2, healthy=2, unknown=1, objects=1, unheard=LOST)
    )

    assert statuses(found)["Ready"] == "True"
    tail = "1 unknown: berlin last heard of 2030-01-01T00:00:00Z"
    assert found["Delivered"]["message"] == f"2 of 3 destinations delivered, {tail}"
    assert found["Healthy"]["message"] == f"2 of 3 destinations healthy, {tail}"
    assert found["Ready"]["message"] == f"2 of 3 destinations ready, {tail}"


def test_with_none_heard_of_nothing_is_known() -> None:
    found = conditions(Standing(destinations=1, unknown=1, objects=1, unheard=LOST))

    assert statuses(found) == {
        "Delivered": "Unknown",
        "Healthy": "Unknown",
        "Held": "False",
        "Ready": "Unknown",
    }
    assert found["Ready"]["reason"] == "NoneReachable"
    assert "berlin last heard of" in found["Ready"]["message"]


def test_without_destinations_it_is_the_scheduler_who_says_why() -> None:
    nowhere = {
        "type": "Scheduled",
        "status": "False",
        "reason": "NoLocationMatches",
        "message": "No Location matches the selectors",
    }

    found = conditions(Standing(), others=[nowhere, CONFLICT_FREE])

    assert (found["Ready"]["status"], found["Ready"]["reason"]) == ("False", "NoLocationMatches")
    assert found["Delivered"]["reason"] == "NoDestinations"


def test_the_translators_problems_come_first() -> None:
    problem = {"reason": "KindWithheld", "message": "widgets w is withheld", "destinations": 2}

    found = conditions(WELL, problem)

    assert found["Delivered"]["status"] == "False"
    assert found["Delivered"]["reason"] == found["Ready"]["reason"] == "KindWithheld"
    assert found["Delivered"]["message"] == (
        "widgets w is withheld (at 2 destinations); 2 of 2 destinations delivered"
    )


def test_what_is_not_delivered_is_said_to_be_missing_somewhere() -> None:
    found = conditions(
        Standing(destinations=6, delivered=1, objects=1, undelivered=("a", "b", "c"))
    )

    assert found["Ready"]["reason"] == "NotDelivered"
    assert found["Delivered"]["message"] == (
        "1 of 6 destinations delivered; not yet at a, b, c and 2 more"
    )


def test_the_first_unhealthy_object_is_named_with_its_cause() -> None:
    worst = Worst(WEB, "berlin", Health("False", "ImagePullBackOff", "not in the catalogue"))

    found = conditions(
        Standing(destinations=2, delivered=2, healthy=1, unhealthy=1, objects=1, worst=worst)
    )

    assert (found["Healthy"]["status"], found["Healthy"]["reason"]) == ("False", "Unhealthy")
    assert found["Healthy"]["message"] == (
        "1 of 2 destinations healthy; 1 unhealthy: berlin deployments shop/web ImagePullBackOff: "
        "not in the catalogue"
    )
    assert found["Ready"]["message"] == found["Healthy"]["message"]


def test_what_is_still_to_be_reported_is_pending() -> None:
    found = conditions(Standing(destinations=2, delivered=2, healthy=1, objects=1))

    assert (found["Healthy"]["status"], found["Healthy"]["reason"]) == ("False", "Pending")
    assert found["Healthy"]["message"] == "1 of 2 destinations healthy; 1 pending"


def test_what_an_edge_holds_back_is_a_condition_and_not_ready() -> None:
    hold = HeldAt("berlin", Hold("DeletionsHeld", "40 deletions wait for approval"))

    found = conditions(Standing(destinations=1, delivered=1, healthy=1, objects=1, held=(hold,)))

    assert (found["Held"]["status"], found["Held"]["reason"]) == ("True", "DeletionsHeld")
    assert (found["Ready"]["status"], found["Ready"]["reason"]) == ("False", "DeletionsHeld")
    assert found["Ready"]["message"] == "berlin: 40 deletions wait for approval"


@pytest.mark.parametrize("absent", ["Scheduled", "ConflictFree"])
def test_nothing_is_ready_before_everybody_has_spoken(absent: str) -> None:
    found = conditions(WELL, others=[each for each in OTHERS if each["type"] != absent])

    assert (found["Ready"]["status"], found["Ready"]["reason"]) == ("Unknown", "Pending")


def test_a_placement_of_nothing_says_so() -> None:
    found = conditions(Standing(destinations=1, delivered=1, healthy=1))

    assert found["Delivered"]["message"] == ("1 of 1 destinations delivered (nothing is selected)")


def test_what_has_no_effect_somewhere_is_reported_and_holds_nothing_back() -> None:
    policy = ObjectRef("", "networking.k8s.io", "networkpolicies", "shop", "deny")
    inert = Worst(policy, "berlin", Health("Unknown", "NotEnforced", "traffic is not filtered"))
    found = conditions(replace(WELL, inert=inert))

    assert statuses(found)["Ready"] == statuses(found)["Healthy"] == "True"
    assert found["Healthy"]["message"] == (
        "2 of 2 destinations healthy; "
        "berlin networkpolicies shop/deny NotEnforced: traffic is not filtered"
    )
