"""How things stand with every object, and what that comes to."""

from __future__ import annotations

from skerry.api.refs import ObjectRef
from skerry.edge.syncer.metrics import SyncerMetrics
from skerry.edge.syncer.outcomes import Outcomes
from skerry.logic.fleet.syncing.outcome import APPLIED, GONE, SyncOutcome

PAGE = ObjectRef("", "", "configmaps", "shop", "page")
OTHER = ObjectRef("", "", "configmaps", "other", "page")
REJECTED = SyncOutcome("Failed", "Rejected", "no room")


class Kept:
    """Outcomes, and how often they changed."""

    def __init__(self) -> None:
        self.outcomes = Outcomes(SyncerMetrics())
        self.changes = 0
        self.outcomes.changed.connect(self._changed)

    def _changed(self) -> None:
        self.changes += 1


def test_an_object_nobody_heard_of_is_gone() -> None:
    kept = Kept()
    assert kept.outcomes.get(PAGE) == GONE
    kept.outcomes.forget(PAGE)
    assert kept.changes == 0


def test_trouble_is_listed_until_it_is_over() -> None:
    kept = Kept()
    kept.outcomes.set(PAGE, REJECTED)
    kept.outcomes.set(OTHER, APPLIED)
    assert kept.outcomes.troubled == {PAGE: REJECTED}
    assert kept.outcomes.applied == 1
    kept.outcomes.set(PAGE, APPLIED)
    assert not kept.outcomes.troubled
    assert kept.outcomes.applied == 2
    kept.outcomes.forget(PAGE)
    assert kept.outcomes.applied == 1


def test_the_same_again_is_no_news() -> None:
    kept = Kept()
    kept.outcomes.set(PAGE, REJECTED)
    before = kept.changes
    kept.outcomes.set(PAGE, REJECTED)
    assert kept.changes == before


def test_a_hub_that_was_not_heard_is_no_trouble_of_the_objects() -> None:
    kept = Kept()
    for reason in ("HubAway", "NoSyncerConfig"):
        kept.outcomes.set(PAGE, SyncOutcome("Held", reason))
        assert not kept.outcomes.troubled
    kept.outcomes.set(PAGE, SyncOutcome("Waiting", "Deleting"))
    assert not kept.outcomes.troubled


def test_what_waits_for_a_namespace_is_found_by_it() -> None:
    kept = Kept()
    kept.outcomes.set(PAGE, SyncOutcome("Waiting", "DependencyMissing"))
    kept.outcomes.set(OTHER, REJECTED)
    assert list(kept.outcomes.waiting_in("shop")) == [PAGE]


def test_what_is_about_to_go_is_not_wanted_and_what_failed_was_refused() -> None:
    kept = Kept()
    kept.outcomes.set(PAGE, APPLIED)
    kept.outcomes.set(OTHER, REJECTED)
    assert (kept.outcomes.wanted, kept.outcomes.refused) == (2, 1)
    for reason in ("Deleting", "DeletionHeld", "Finalizing"):
        kept.outcomes.set(PAGE, SyncOutcome("Waiting", reason))
        assert kept.outcomes.wanted == 1
    kept.outcomes.forget(PAGE)
    assert kept.outcomes.wanted == 1
    kept.outcomes.set(PAGE, APPLIED)
    assert kept.outcomes.wanted == 2
