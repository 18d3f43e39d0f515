"""The list of placements: what somebody may see, the worst first."""

from __future__ import annotations

from skerry.web.placements_view import PlacementsView
from tests.kit.chain.console_feed import ALICE, BOB, Town
from tests.kit.chain.console_objects import placement

READY = [{"type": "Ready", "status": "True"}]
NOT_READY = [{"type": "Ready", "status": "False", "reason": "NotDelivered", "message": "1 left"}]


def town() -> Town:
    found = Town()
    placements = found.feed.placements
    placements.put_placement(placement("a", "good", conditions=READY, destinationCount=2))
    placements.put_placement(placement("a", "slow", conditions=NOT_READY, destinationCount=2))
    placements.put_placement(placement("b", "secret", conditions=READY))
    found.grant(ALICE, "a", "edgeplacements")
    return found


def test_placements_are_listed_the_worst_first_within_rights_and_window() -> None:
    place = town()
    view = PlacementsView(place.feed, place.eyes, ALICE, {"rows": [0, 1]}).content()
    assert (view["total"], view["matching"]) == (2, 2)
    [row] = view["rows"]
    assert (row["name"], row["state"], row["problem"]) == ("slow", "progressing", "1 left")
    found = PlacementsView(place.feed, place.eyes, ALICE, {"q": "root:a GOOD"}).content()
    assert [each["name"] for each in found["rows"]] == ["good"]
    assert PlacementsView(place.feed, place.eyes, BOB, {}).content()["total"] == 0


def test_a_placement_that_is_gone_is_no_longer_listed() -> None:
    place = town()
    view = PlacementsView(place.feed, place.eyes, ALICE, {})
    version = view.version()
    place.feed.placements.remove_placement(placement("a", "slow"))
    assert view.version() != version
    assert [each["name"] for each in view.content()["rows"]] == ["good"]
