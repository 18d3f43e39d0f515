"""The state of an edge, for people."""

from __future__ import annotations

from skerry.api.refs import ObjectRef
from skerry.logic.fleet.syncing.conditions import MAX_OBJECTS, Standing, conditions, same_conditions
from skerry.logic.fleet.syncing.outcome import SyncOutcome


def test_conditions_keep_their_times_and_their_number() -> None:
    troubled = {
        ObjectRef("", "", "configmaps", "n", f"c{i:03}"): SyncOutcome("Failed", "Rejected", "no")
        for i in range(150)
    }
    first = conditions(Standing(3, troubled), [], "t1")
    assert len(first) == 6 + MAX_OBJECTS
    later = conditions(Standing(3, troubled), first, "t2")
    assert same_conditions(first, later)
    assert {item["lastTransitionTime"] for item in later} == {"t1"}
    well = conditions(Standing(153), later, "t3")
    assert well[0]["status"] == "True"
    assert well[0]["lastTransitionTime"] == "t3"
