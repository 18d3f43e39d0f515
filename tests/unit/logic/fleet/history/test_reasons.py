"""Why destinations come and go."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.edge import edge_placement_ref
from skerry.api.kcp.resources import workspace_ref
from skerry.api.objects import Object
from skerry.logic.fleet.history.reasons import RESTORED, why_joined, why_left
from skerry.logic.fleet.history.record import Reason
from skerry.logic.fleet.placement.destination import DestinationTable
from skerry.logic.fleet.placement.grants import grant_of
from skerry.logic.fleet.placement.records import (
    Destination,
    location_of,
    placement_of,
    sync_target_of,
)
from skerry.scheduler.placement import location_chooser
from tests.kit.chain import building
from tests.kit.chain.building import equal, expression

P = edge_placement_ref("wmw", "p")
PROD = equal(env="prod")
T = Destination("imw", "l", "t", "uid-t")


def table(
    *selectors: Object,
    labels: dict[str, str] | None = None,
    instances: Object | None = None,
    target: str | None = "uid-t",
    **spec: Any,
) -> DestinationTable:
    index = DestinationTable(location_chooser)
    index.put_placement(placement_of(building.placement("p", *selectors, **spec)))
    if labels is not None:
        found = {} if instances is None else instances
        index.put_location(location_of(building.location("l", labels, found)))
    if target is not None:
        index.put_sync_target(sync_target_of(building.sync_target("t", {}, uid=target)))
    return index


@pytest.mark.parametrize(
    ("index", "code", "text"),
    [
        (
            table(PROD, labels={"env": "dr"}),
            "NotSelected",
            "locationSelectors[0]: env must be prod",
        ),
        (table(PROD, labels={}), "NotSelected", "locationSelectors[0]: env must be prod"),
        (
            table(PROD, equal(a="b"), labels={}),
            "NotSelected",
            "locationSelectors[0]: env must be prod, nor does the other match",
        ),
        (
            table(expression("env", "NotIn", "dr"), labels={"env": "dr"}),
            "NotSelected",
            "locationSelectors[0]: env must not be dr",
        ),
        (
            table(expression("env", "In", "a", "b"), labels={}),
            "NotSelected",
            "locationSelectors[0]: env must satisfy in (a,b)",
        ),
        (table(labels={}), "NotSelected", "locationSelectors is empty, which selects nothing"),
        (table(PROD), "LocationDeleted", "the Location was deleted"),
        (table({}, labels={}, target=None), "SyncTargetDeleted", "the SyncTarget was deleted"),
        (table({}, labels={}, target="another"), "SyncTargetDeleted", "the SyncTarget was deleted"),
        (
            table({}, labels={}, instances=equal(a="b")),
            "NoInstance",
            "instanceSelector: a must be b",
        ),
        (
            table({}, labels={}, locationWorkspaceSelector=equal(org="x")),
            "WorkspaceNotSelected",
            "locationWorkspaceSelector: org must be x",
        ),
        (
            table({}, labels={}, strategy={"numberOfLocations": 1}),
            "PassedOver",
            "strategy: other Locations were chosen",
        ),
        (DestinationTable(), "PlacementDeleted", "the EdgePlacement was deleted"),
    ],
)
def test_why_a_destination_left(index: DestinationTable, code: str, text: str) -> None:
    assert why_left(index, P, T) == Reason(code, text)


def test_what_still_matches_was_put_there_by_somebody_else() -> None:
    assert why_left(table({}, labels={}), P, T) == RESTORED


def test_why_a_destination_joined() -> None:
    found = why_joined(table(equal(a="b"), PROD, labels={"env": "prod"}), P, T)
    assert found == Reason("Selected", "locationSelectors[1] matches")
    assert (
        why_joined(table({}, labels={}, strategy={"numberOfLocations": 1}), P, T).code == "Chosen"
    )
    assert why_joined(DestinationTable(), P, T) == Reason("Selected")


TWO = (equal(env="test"), PROD)


@pytest.mark.parametrize(
    ("index", "text"),
    [
        (table(PROD, labels={"env": "prod"}), "locationSelectors[0] matches"),
        (table(*TWO, labels={"env": "prod"}), "locationSelectors[1] matches"),
        # Nobody knows any more, and a record says no more than is known.
        (table(*TWO, labels=None), ""),
        (table(*TWO, labels={"env": "dr"}), ""),
    ],
)
def test_a_destination_comes_in_by_the_first_selector_that_matches(
    index: DestinationTable, text: str
) -> None:
    assert why_joined(index, P, T) == Reason("Selected", text)


def test_of_a_placement_that_is_gone_it_is_only_known_that_it_selected() -> None:
    index = table(PROD, labels={"env": "prod"})
    index.remove_placement(P)
    assert why_joined(index, P, T) == Reason("Selected")
    assert why_left(index, P, T).code == "PlacementDeleted"


@pytest.mark.parametrize(
    ("selectors", "ending"),
    [
        ((PROD,), "must be prod"),
        ((PROD, equal(env="a")), ", nor does the other match"),
        ((PROD, equal(env="a"), equal(env="b")), ", nor do 2 others match"),
    ],
)
def test_of_several_selectors_the_first_is_named_and_the_others_counted(
    selectors: tuple[Object, ...], ending: str
) -> None:
    found = why_left(table(*selectors, labels={"env": "dr"}), P, T)
    assert found.code == "NotSelected"
    assert found.text.endswith(ending)


def test_a_destination_whose_sync_target_was_made_anew_left_with_the_old_one() -> None:
    index = table(PROD, labels={"env": "prod"}, target="uid-other")
    assert why_left(index, P, T).code == "SyncTargetDeleted"


def test_a_location_without_an_instance_selector_has_no_instance() -> None:
    index = table(PROD, labels={"env": "prod"})
    bare = building.location("l", {"env": "prod"})
    index.put_location(location_of(bare))
    assert why_left(index, P, T) == Reason(
        "NoInstance", "the Location's instanceSelector matches nothing"
    )


def test_a_sync_target_that_its_location_does_not_select_is_no_instance() -> None:
    index = table(PROD, labels={"env": "prod"}, instances=equal(id="t"))
    assert why_left(index, P, T) == Reason("NoInstance", "instanceSelector: id must be t")


def governed(mode: str, *, paths: tuple[str, ...] = ("root:other",)) -> DestinationTable:
    """A placement everywhere, whose only Location is in a workspace with a grant for others."""
    index = table({}, labels={}, instances={})
    for cluster in ("imw", "wmw"):
        index.put_workspace(cluster, {}, workspace_ref("root", cluster))
    spec: dict[str, Any] = {"mode": mode, "paths": paths, "selector": {}}
    index.put_grant(grant_of(building.grant("eu-only", **spec)))
    return index


@pytest.mark.parametrize(
    ("index", "reason"),
    [
        (governed("Enforce"), Reason("NotGranted", "not granted by root:imw/eu-only")),
        # It is in a workspace with grants, and none of them is why it left.
        (governed("Observe"), RESTORED),
        (governed("Enforce", paths=("root:wmw",)), RESTORED),
    ],
)
def test_a_location_that_no_grant_admits_to_names_the_grant(
    index: DestinationTable, reason: Reason
) -> None:
    assert why_left(index, P, T) == reason


def test_a_strategy_that_does_not_let_a_location_through_says_why() -> None:
    index = table({}, labels={}, instances={}, strategy={"numberOfLocations": 1})
    tainted = building.location("l", {}, {}, taints="drain=yes:NoSchedule")
    index.put_location(location_of(tainted))
    found = why_left(index, P, T)
    assert found.code == "PassedOver"
    assert found.text.startswith("strategy: ")
    assert "drain" in found.text
