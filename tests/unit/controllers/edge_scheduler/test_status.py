"""What placements say of themselves."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from skerry.api.edge import SCHEDULED, edge_placement_ref
from skerry.api.objects import Object
from skerry.controllers.edge_scheduler.observed import Consent, Result
from skerry.controllers.edge_scheduler.status import (
    GRANTED,
    SATISFIABLE,
    ObservedStatus,
    StatusObserver,
    decide_status,
)
from skerry.logic.machinery.plan import Update

NOW = datetime(2030, 1, 1, tzinfo=UTC)
LATER = datetime(2030, 1, 2, tzinfo=UTC)
PLACE = edge_placement_ref("wmw", "web")


def observed(result: Result, status: Object | None = None) -> ObservedStatus:
    obj: Object = {"metadata": {"name": "web", "resourceVersion": "3"}}
    if status is not None:
        obj["status"] = status
    return ObservedStatus(PLACE, obj, result)


def status_after(result: Result, status: Object | None = None, now: datetime = NOW) -> Object:
    (action,) = decide_status(observed(result, status), now)
    assert isinstance(action, Update)
    assert action.subresource == "status"
    written: Object = action.object["status"]
    return written


def condition(status: Object, kind: str) -> Object:
    (found,) = [each for each in status["conditions"] if each["type"] == kind]
    return dict(found)


FINE = Result(4, matching=2, chosen=2, destinations=3)


def test_counts_and_the_generation_are_reported() -> None:
    written = status_after(FINE)
    assert (written["specGeneration"], written["matchingLocationCount"]) == (4, 2)
    assert written["destinationCount"] == 3
    assert condition(written, SCHEDULED) == {
        "type": SCHEDULED,
        "status": "True",
        "reason": "DestinationsChosen",
        "message": "3 destinations at 2 locations",
        "lastTransitionTime": "2030-01-01T00:00:00Z",
    }
    assert condition(written, SATISFIABLE)["status"] == "True"


def test_a_status_that_says_it_all_is_not_written_again() -> None:
    assert not decide_status(observed(FINE, status_after(FINE)), LATER)


def test_a_time_changes_only_with_the_status() -> None:
    more = Result(4, matching=3, chosen=3, destinations=5)
    written = status_after(more, status_after(FINE), LATER)
    assert condition(written, SCHEDULED)["lastTransitionTime"] == "2030-01-01T00:00:00Z"
    none = status_after(Result(5), written, LATER)
    assert condition(none, SCHEDULED)["lastTransitionTime"] == "2030-01-02T00:00:00Z"


def test_what_others_say_stays() -> None:
    theirs = {"type": "Delivered", "status": "True", "lastTransitionTime": "x"}
    written = status_after(FINE, {"deliveredObjects": 7, "conditions": [theirs]})
    assert written["deliveredObjects"] == 7
    assert condition(written, "Delivered") == theirs


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (Result(1), "NoLocationMatches"),
        (Result(1, matching=2, chosen=2), "NoInstances"),
        (Result(1, errors=("spec.x: bad",)), "InvalidSelector"),
        (
            Result(1, matching=9, chosen=2, destinations=2, wanted_locations=3),
            "TooFewLocations",
        ),
        (
            Result(1, matching=2, chosen=2, destinations=1, broken_locations=("imw|l: bad",)),
            "InvalidInstanceSelector",
        ),
    ],
)
def test_what_is_wrong_is_reported_in_one_word(result: Result, reason: str) -> None:
    written = condition(status_after(result), SCHEDULED)
    assert (written["status"], written["reason"]) == ("False", reason)


def test_an_invalid_selector_leaves_the_counts_of_what_stands() -> None:
    written = status_after(Result(5, errors=("bad",)), status_after(FINE))
    assert (written["matchingLocationCount"], written["destinationCount"]) == (2, 3)
    assert written["specGeneration"] == 5


def test_a_contradiction_is_reported() -> None:
    written = condition(status_after(Result(1, unsatisfiable=("spec.x: never",))), SATISFIABLE)
    assert (written["status"], written["message"]) == ("False", "spec.x: never")


def granted(consent: Consent) -> Object:
    found = Result(4, matching=5, chosen=2, destinations=3, consent=consent)
    return condition(status_after(found), GRANTED)


@pytest.mark.parametrize(
    ("consent", "status", "reason", "text"),
    [
        (Consent(), "True", "Granted", ""),
        (
            Consent(refused=2, refusing=("root:imw",)),
            "False",
            "NotGranted",
            "2 of 5 matching Locations: not granted by root:imw",
        ),
        (
            Consent(refused=2, held=2, refusing=("root:imw",)),
            "False",
            "Held",
            "2 of them keep what runs there until its removal is confirmed",
        ),
        (Consent(refused=2, held=1, refusing=("root:imw",)), "False", "NotGranted", "1 of them"),
        (
            Consent(observed=3, refusing=("root:imw",)),
            "True",
            "WouldBeRefused",
            "would not be granted by root:imw, which only observes",
        ),
    ],
)
def test_what_grants_do_to_a_placement_is_one_condition(
    consent: Consent, status: str, reason: str, text: str
) -> None:
    found = granted(consent)
    assert (found["status"], found["reason"]) == (status, reason)
    assert text in found["message"]


def test_a_placement_that_is_refused_everywhere_is_not_scheduled_for_that() -> None:
    consent = Consent(refused=5, refusing=("root:imw",))
    written = status_after(Result(4, matching=5, consent=consent))
    assert condition(written, SCHEDULED)["reason"] == "NotGranted"


def test_without_grants_the_condition_goes_and_with_wrong_selectors_it_stays() -> None:
    consent = Consent(refused=2, refusing=("root:imw",))
    before = status_after(Result(4, matching=5, chosen=2, destinations=3, consent=consent))
    after = status_after(FINE, before)
    assert GRANTED not in {each["type"] for each in after["conditions"]}
    wrong = status_after(Result(5, errors=("spec: no",)), before)
    assert GRANTED in {each["type"] for each in wrong["conditions"]}


def test_a_refusal_is_announced_when_it_is_news() -> None:
    consent = Consent(refused=2, refusing=("root:imw",))
    refused = Result(4, matching=5, chosen=2, destinations=3, consent=consent)
    [event] = decide_status(observed(refused), NOW).announcements
    assert (event.type, event.reason) == ("Warning", "NotGranted")
    known = status_after(refused)
    other = Result(5, matching=5, chosen=2, destinations=4, consent=consent)
    assert not decide_status(observed(other, known), NOW).announcements


async def test_a_placement_is_looked_at_when_its_slices_are_up_to_date() -> None:
    asked: list[str] = []
    objects: dict[str, Object] = {"web": {"metadata": {"name": "web"}}}
    results = {"web": FINE}

    async def quiet() -> None:
        asked.append("quiet")

    observer = StatusObserver(
        lambda ref: objects.get(ref.name), lambda ref: results.get(ref.name), quiet
    )
    found = await observer.observe(PLACE)
    assert found == ObservedStatus(PLACE, objects["web"], FINE)
    assert asked == ["quiet"]
    objects["web"]["metadata"]["deletionTimestamp"] = "t"
    assert await observer.observe(PLACE) is None
    objects.clear()
    assert await observer.observe(PLACE) is None
