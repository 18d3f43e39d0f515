"""The product of what goes and where: asked for by row, and touched by factor."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.edge import Mailbox, edge_placement_ref, location_ref
from skerry.api.refs import ObjectRef, namespace_ref
from skerry.logic.fleet.translation.route import Route, Touched, destinations_of
from skerry.logic.fleet.translation.selected import CHOSEN, NAMED, Malformed, placement_row
from skerry.logic.fleet.translation.sources import record_of, wide
from skerry.logic.fleet.translation.types import ServedType
from skerry.logic.fleet.translation.workspaces import NAMESPACE_WATCH, Workspaces

P, Q = edge_placement_ref("one", "p"), edge_placement_ref("one", "q")
A, B = Mailbox("imw", "a"), Mailbox("imw", "b")
FLORIN, GUILDER = location_ref("imw", "florin"), location_ref("imw", "guilder")
MAPS = wide("", "v1", "configmaps")
ROLES = wide("rbac.authorization.k8s.io", "v1", "clusterroles")
PAGE = ObjectRef("", "", "configmaps", "n", "page")
ROLE = ObjectRef("", *ROLES.group_resource, "", "r")
GO = placement_row({"spec": {"namespaceSelector": {"matchLabels": {"go": "yes"}}}})
ALL = placement_row(
    {
        "spec": {
            "namespaceSelector": {"matchLabels": {"go": "yes"}},
            "nonNamespacedObjects": [
                {"apiGroup": ROLE.group, "resources": ["*"], "resourceNames": ["*"]}
            ],
        }
    }
)
COMMON = (
    ServedType("", "namespaces", "Namespace", False, ("v1",)),
    ServedType("", "configmaps", "ConfigMap", True, ("v1",)),
    ServedType(ROLE.group, "clusterroles", "ClusterRole", False, ("v1",)),
)


def _object(name: str, namespace: str = "", **more: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "annotations": {"kcp.io/cluster": "one", **more}}
    metadata["labels"] = {"go": "yes"}
    if namespace:
        metadata["namespace"] = namespace
    return {"metadata": metadata}


@pytest.fixture
def route() -> Route:
    workspaces = Workspaces(dict)
    workspaces.learn_hub(COMMON, copies_are_inert=True)
    workspaces.follow("one")
    workspaces.retype("one")
    for key, obj in (
        (NAMESPACE_WATCH, _object("n")),
        (MAPS, _object("page", "n")),
        (MAPS, _object("own", "n", **{"edge.kcp.io/customizer": "c"})),
        (ROLES, _object("r", **{"edge.kcp.io/expand-parameters": "true"})),
    ):
        workspaces.watch(key).put(record_of(key, obj))
    return Route(workspaces)


def test_the_first_placement_of_a_workspace_and_the_last_are_known(route: Route) -> None:
    assert route.put_placement(P, GO)
    assert not route.put_placement(Q, GO)
    assert not route.put_placement(P, ALL)
    assert not route.drop_placement(P)
    assert route.drop_placement(Q)
    assert len(route.candidates) == 0
    route.settle()
    assert len(route.selected) == 0


def test_a_new_destination_touches_everything_its_placement_selects(route: Route) -> None:
    route.put_placement(P, GO)
    assert route.settle() == [Touched(P, namespace_ref("n"), CHOSEN, ())]
    route.put_destinations(P, {A: (FLORIN,)})
    assert route.settle() == [Touched(P, None, CHOSEN | NAMED, (A,))]
    route.put_destinations(P, {A: (FLORIN,), B: (FLORIN,)})
    assert route.settle() == [Touched(P, None, CHOSEN | NAMED, (B,))]
    route.put_destinations(P, {A: (FLORIN,), B: (FLORIN,)})
    assert route.settle() == []


def test_a_changed_selection_touches_what_changed_at_every_destination(route: Route) -> None:
    route.put_placement(P, GO)
    route.put_destinations(P, {B: (FLORIN,), A: (FLORIN,)})
    route.settle()
    route.put_placement(P, ALL)
    assert route.settle() == [Touched(P, ROLE, NAMED, (A, B))]
    route.put_candidate("one", namespace_ref("n"), {"go": "no"})
    assert route.settle() == [Touched(P, namespace_ref("n"), CHOSEN, (A, B))]
    route.put_candidate("one", ROLE, None)
    assert route.settle() == [Touched(P, ROLE, NAMED, (A, B))]


def test_a_placement_that_goes_touches_the_mailboxes_it_left(route: Route) -> None:
    route.put_placement(P, GO)
    route.put_destinations(P, {A: (FLORIN,)})
    route.settle()
    route.drop_placement(P)
    assert route.settle() == [
        Touched(P, namespace_ref("n"), CHOSEN, (A,)),
        Touched(P, None, CHOSEN | NAMED, (A,)),
    ]
    assert route.at_location(FLORIN) == []
    assert list(route) == []


def test_a_row_is_found_from_the_mailbox_the_item_and_the_location(route: Route) -> None:
    route.put_placement(P, ALL)
    route.put_placement(Q, GO)
    route.put_destinations(P, {A: (FLORIN, GUILDER)})
    route.put_destinations(Q, {A: (FLORIN,), B: (GUILDER,)})
    route.settle()
    assert route.contributors(A) == {"one": (P, Q)}
    assert route.contributors(B) == {"one": (Q,)}
    assert route.placements_of(A, "one", PAGE) == [P, Q]
    assert route.placements_of(A, "one", namespace_ref("n")) == [P, Q]
    assert route.placements_of(A, "one", ROLE) == [P]
    assert route.placements_of(B, "one", ROLE) == []
    assert route.locations(P, A) == (FLORIN, GUILDER)
    assert route.locations(P, B) == ()
    assert route.at_location(GUILDER) == [P, Q]
    assert route.mailboxes([P, Q]) == [A, B]


def test_what_is_in_a_chosen_namespace_is_enumerated_when_asked(route: Route) -> None:
    route.put_placement(P, ALL)
    route.settle()
    own = ObjectRef("", "", "configmaps", "n", "own")
    assert set(route.items(P)) == {namespace_ref("n"), ROLE, PAGE, own}
    assert set(route.items_within("one", "n")) == {namespace_ref("n"), PAGE, own}
    assert set(route.customized_items(P)) == {ROLE, own}
    assert len(route.selected) == 2


def test_a_malformed_placement_is_there_and_selects_nothing_known(route: Route) -> None:
    route.put_placement(P, Malformed("wrong"))
    route.settle()
    assert list(route) == [P]
    assert route.what(P) is None
    assert list(route.items(P)) == []


def test_the_cost_of_a_change_is_that_of_what_it_touches(route: Route) -> None:
    route.put_placement(P, ALL)
    many = {Mailbox("imw", str(number)): (FLORIN,) for number in range(500)}
    route.put_destinations(P, many)
    route.settle()
    before = route._flow.touched
    route.put_candidate("one", namespace_ref("n"), {"go": "no"})
    [touched] = route.settle()
    assert len(touched.mailboxes) == 500
    assert route._flow.touched - before <= 2


def _destination(location: str, uid: str) -> dict[str, str]:
    return {
        "cluster": "imw",
        "locationName": location,
        "syncTargetName": "t",
        "syncTargetUID": uid,
    }


def test_all_slices_of_a_placement_count_and_one_mailbox_may_have_several_locations() -> None:
    slices = [
        {"destinations": [_destination("b", "1"), _destination("c", "2")]},
        {"destinations": [_destination("a", "1"), _destination("b", "1")]},
        {},
    ]
    assert destinations_of(slices) == {
        Mailbox("imw", "1"): (location_ref("imw", "a"), location_ref("imw", "b")),
        Mailbox("imw", "2"): (location_ref("imw", "c"),),
    }


def test_a_placement_sends_its_namespaces_what_is_in_them_and_what_it_names(route: Route) -> None:
    route.put_placement(P, ALL)
    route.settle()
    sent = set(route.items(P))
    assert {namespace_ref("n"), PAGE, ROLE} <= sent
    assert PAGE._replace(name="own") in sent


def test_what_is_within_a_namespace_is_found_whether_or_not_it_is_placed(route: Route) -> None:
    assert set(route.items_within("one", "n")) >= {namespace_ref("n"), PAGE}
    assert list(route.items_within("one", "absent")) == [namespace_ref("absent")]


def test_only_what_is_customized_differs_from_location_to_location(route: Route) -> None:
    route.put_placement(P, ALL)
    route.settle()
    assert set(route.customized_items(P)) == {PAGE._replace(name="own"), ROLE}


def test_who_sends_an_object_to_a_mailbox_is_listed_by_name(route: Route) -> None:
    for placement in (Q, P):
        route.put_placement(placement, GO)
        route.put_destinations(placement, {A: (FLORIN,)})
    route.settle()
    assert route.placements_of(A, "one", PAGE) == [P, Q]
    assert route.placements_of(B, "one", PAGE) == []
    route.put_destinations(Q, {B: (GUILDER,)})
    route.settle()
    assert route.placements_of(A, "one", PAGE) == [P]
