"""What is kept of placements from one reconcile to the next."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pyroaring import BitMap

from skerry.api.edge import SliceOwner, edge_placement_ref, location_ref
from skerry.controllers.edge_scheduler.consent import ConsentState
from skerry.controllers.edge_scheduler.guards import GuardState
from skerry.controllers.edge_scheduler.observed import NO_CAUSE, Cause, Gathered, Observed, Result
from skerry.controllers.edge_scheduler.placement_cache import Causes, PlacementCache
from skerry.logic.fleet.placement.destination import Chosen, DestinationTable
from skerry.logic.fleet.placement.records import Destination

NOW = datetime(2025, 6, 6, tzinfo=UTC)

P, OWNER = edge_placement_ref("wmw", "p"), SliceOwner("p", "u")
FIRST = Cause("Location", location_ref("imw", "a"))
SECOND = Cause("Location", location_ref("imw", "b"))


def test_asking_for_causes_does_not_take_them_away() -> None:
    causes = Causes()
    assert causes.of(P) == NO_CAUSE
    causes.note(P, FIRST)
    assert causes.of(P) == causes.of(P) == Gathered((FIRST,), 1)


def test_causes_that_came_during_the_work_outlive_those_it_was_done_for() -> None:
    causes = Causes()
    causes.note(P, FIRST)
    done = causes.of(P)
    causes.note(P, SECOND)
    assert causes.of(P) == Gathered((SECOND, FIRST), 2)
    causes.discharge(P, done)
    assert causes.of(P) == Gathered((SECOND,), 1)
    causes.discharge(P, causes.of(P))
    assert causes.of(P) == NO_CAUSE
    causes.discharge(P, NO_CAUSE)


def test_of_a_storm_the_last_causes_are_kept_and_all_are_counted() -> None:
    causes = Causes()
    for _ in range(1000):
        causes.note(P, FIRST)
    causes.note(P, SECOND)
    found = causes.of(P)
    assert (found.newest, len(found.known), found.total) == (SECOND, 20, 1001)


def empty() -> PlacementCache:
    return PlacementCache(
        ConsentState(DestinationTable(), lambda _: None),
        GuardState(DestinationTable(), lambda: NOW),
    )


def test_results_and_choices_are_those_found_last_until_the_placement_is_gone() -> None:
    found = empty()
    assert (found.result(P), found.chosen(P)) == (None, None)
    chosen = frozenset({location_ref("imw", "a")})
    found.found(Observed(P, OWNER, Result(1), chosen=chosen))
    found.found(Observed(P, OWNER, Result(2)))
    assert found.result(P) == Result(2)
    assert found.chosen(P) == chosen, "without a strategy nothing was chosen anew"
    found.causes.note(P, FIRST)
    found.forget(P)
    assert (found.result(P), found.chosen(P), found.causes.of(P)) == (None, None, NO_CAUSE)


def test_who_begins_to_lead_knows_of_no_choice_and_of_no_event_that_changed_anything() -> None:
    found = empty()
    found.found(Observed(P, OWNER, Result(1), chosen=frozenset({location_ref("imw", "a")})))
    found.causes.note(P, FIRST)
    found.begin()
    assert found.chosen(P) is None
    assert found.causes.of(P) == Gathered((FIRST._replace(initial=True),), 1)
    assert found.result(P) == Result(1), "what a status says until it is found anew"


@pytest.mark.parametrize(("refused", "known"), [([1], True), ([], False)])
def test_what_runs_is_kept_in_mind_while_some_location_refuses_the_placement(
    refused: list[int], known: bool
) -> None:
    found = empty()
    found.running.note(P, (Destination("imw", "a", "t", "u"),))
    chosen = Chosen(BitMap([1]), [1], "", BitMap(refused))
    refusing = tuple(location_ref("imw", "a") for _ in refused)
    found.found(Observed(P, OWNER, Result(1), found=chosen, refused=refusing))
    assert found.running.knows(P) is known
