"""Only what is wrong, the worst first."""

from __future__ import annotations

from skerry.api.edge import edge_placement_ref, location_ref
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.explanation.answer import Answer, LocationAnswer, PairAnswer
from skerry.logic.fleet.explanation.links import Chain, Link
from skerry.logic.fleet.explanation.problems import problems
from skerry.logic.fleet.explanation.text import problems_text
from skerry.logic.fleet.placement.explain import Explanation

PLACE = edge_placement_ref("wmw", "p")
WEB = ObjectRef("", "apps", "deployments", "shop", "web")
PAGE = ObjectRef("", "", "configmaps", "shop", "page")
THERE = Explanation(True, True, ("st",), (), (), None)


def _pair(item: ObjectRef, location: str, *links: Link) -> PairAnswer:
    return PairAnswer(item, location_ref("imw", location), location, Chain(links), "root:imw")


def _location(name: str, link: Link) -> LocationAnswer:
    return LocationAnswer(location_ref("imw", name), THERE, link, "root:imw")


def _answer(locations: list[LocationAnswer], *pairs: PairAnswer) -> Answer:
    return Answer(PLACE, tuple(locations), (), pairs, "root:wmw")


WELL = Link("health", True, "Healthy")
PULL = Link("health", False, "ImagePullBackOff", ("no such image",))
TAKEN = Link("copy", False, "NameTaken", ("the name belongs to workspace root:other there",))
SILENT = Link("edge", None, "LeaseLapsed", ("st last heard of 90 s ago",))
COMING = Link("applied", False, "NotApplied")


def test_what_is_well_and_what_was_never_meant_is_left_out() -> None:
    passed = Link("location", False, "PassedOver")
    locations = [
        _location("florin", Link("location", True)),
        _location("guilder", Link("location", False, "LocationNotSelected")),
        _location("pinta", passed),
    ]
    assert problems([_answer(locations, _pair(WEB, "florin", WELL))]) == []
    assert problems_text([]) == "no problems\n"


def test_the_worst_comes_first_and_equal_ones_are_one() -> None:
    found = problems(
        [
            _answer(
                [_location("lost", Link("location", False, "NoSyncTarget"))],
                _pair(PAGE, "c", COMING),
                _pair(PAGE, "b", SILENT),
                _pair(PAGE, "a", TAKEN),
                _pair(WEB, "a", PULL),
                _pair(WEB, "b", PULL),
            )
        ]
    )
    assert [(each.link.reason, each.places) for each in found] == [
        ("ImagePullBackOff", ("a", "b")),
        ("NoSyncTarget", ("lost",)),
        ("NameTaken", ("a",)),
        ("LeaseLapsed", ("b",)),
        ("NotApplied", ("c",)),
    ]
    text = problems_text(found).splitlines()
    assert text[0].split() == ["WORKSPACE", "PLACEMENT", "OBJECT", "PROBLEM"]
    assert text[1].split()[-2:] == ["health:", "ImagePullBackOff"]
    assert text[2].strip() == "at a, b"
    assert text[3].strip() == "no such image"
    assert found[0].as_json()["locations"] == ["a", "b"]


def test_a_pair_that_fails_for_its_location_is_the_locations_problem() -> None:
    unscheduled = Link("location", False, "NotYetScheduled")
    found = problems([_answer([_location("a", unscheduled)], _pair(WEB, "a", unscheduled))])
    assert [(each.item, each.link.reason) for each in found] == [(None, "NotYetScheduled")]


def test_what_is_held_at_a_location_is_a_problem_though_it_runs() -> None:
    held = Link("location", True, "Held", ("not granted by root:imw/g",))
    [found] = problems([_answer([_location("a", held)])])
    assert found.link.reason == "Held"
