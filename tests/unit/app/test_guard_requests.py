"""What a request is answered is in ``test_guard_admission``; here is what it is made of."""

from __future__ import annotations

from skerry.api.edge import PLACEMENT_GUARDS
from skerry.api.refs import ObjectRef
from skerry.app.guard_requests import protections
from skerry.logic.fleet.guards.spec import Guard, Protection
from skerry.logic.machinery.selectors import Selector

_REF = ObjectRef("shop", *PLACEMENT_GUARDS.group_resource, "", "own")


def guard(*, enforces: bool = True) -> Guard:
    named = frozenset({"hq"})
    protection = Protection("Location", named, Selector(nothing=True), frozenset({"Delete"}))
    return Guard(_REF, "own", enforces, protections=(protection,))


def test_a_protected_object_asks_and_where_the_guard_observes_it_warns() -> None:
    [asks] = protections([guard()], "Location", "hq", {}, {"Delete"})
    assert asks == ("own", "Confirm", "PlacementGuard own protects Location hq")
    [warns] = protections([guard(enforces=False)], "Location", "hq", {}, {"Delete"})
    assert warns.action == "Warn"


def test_other_kinds_names_and_ways_of_losing_are_free() -> None:
    assert protections([guard()], "Namespace", "hq", {}, {"Delete"}) == []
    assert protections([guard()], "Location", "oslo", {}, {"Delete"}) == []
    assert protections([guard()], "Location", "hq", {}, {"Relabel"}) == []
