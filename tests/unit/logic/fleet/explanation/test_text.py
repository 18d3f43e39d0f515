"""Answers in columns: aligned, bounded, with notes below their row."""

from __future__ import annotations

from skerry.api.edge import edge_placement_ref, location_ref
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.customization.customize import Problem
from skerry.logic.fleet.explanation.answer import (
    Answer,
    LocationAnswer,
    ObjectAnswer,
    PairAnswer,
)
from skerry.logic.fleet.explanation.changes import PlacementChange
from skerry.logic.fleet.explanation.contents import ContentChange, Foreseen
from skerry.logic.fleet.explanation.links import Chain, Link
from skerry.logic.fleet.explanation.problems import PlacementProblem
from skerry.logic.fleet.explanation.text import answer_text, changes_text, problems_text
from skerry.logic.fleet.placement.explain import Explanation
from skerry.logic.fleet.placement.records import Destination

PLACE = edge_placement_ref("wmw", "p")
WEB = ObjectRef("", "apps", "deployments", "shop", "web")
ROLE = ObjectRef("", "rbac.authorization.k8s.io", "clusterroles", "", "reader")
WHERE = Explanation(True, True, ("st",), (), (), None)


def location(name: str, link: Link) -> LocationAnswer:
    return LocationAnswer(location_ref("imw", name), WHERE, link, "root:imw")


def pair(*links: Link, target: str = "st") -> PairAnswer:
    return PairAnswer(WEB, location_ref("imw", "florin"), target, Chain(links))


def answered(*pairs: PairAnswer, locations: int = 0) -> str:
    many = tuple(location(f"l{n:03}", Link("location", True)) for n in range(locations))
    refused = location(
        "guilder", Link("location", False, "PassedOver", ("two are enough",), "raise maxLocations")
    )
    held = location("florin", Link("location", True, "Held", ("its removal waits",)))
    objects = (
        ObjectAnswer(WEB, Link("selection", True)),
        ObjectAnswer(ROLE, Link("selection", None, "InvalidSelector", ("malformed",))),
    )
    return answer_text(Answer(PLACE, (held, refused, *many), objects, pairs, "root:wmw"))


def test_an_answer_counts_and_lists_with_notes_below_the_verdict() -> None:
    lines = answered().splitlines()
    assert lines[0] == "EdgePlacement p in root:wmw: 1 of 2 locations, 1 of 2 objects"
    table = lines[lines.index("") + 1 :]
    head, florin, note, guilder, why, edit, *_ = table
    column = head.index("DESTINATION")
    assert florin[column:] == "yes: Held"
    assert note.strip() == "its removal waits"
    assert guilder[column:] == "no: PassedOver"
    assert (why.strip(), edit.strip()) == ("two are enough", "to change that: raise maxLocations")
    assert why.startswith(" " * (column + 2)), "below the last column"


def test_objects_are_shown_by_kind_and_name_within_their_namespace() -> None:
    text = answered()
    assert "deployments.apps" in text
    assert "shop/web" in text
    assert "unknown: InvalidSelector" in text


def test_a_pair_shows_how_far_it_gets() -> None:
    whole = pair(Link("applied", True), Link("health", True))
    without = pair(Link("applied", True))
    stuck = pair(Link("applied", False, "Rejected", ("no",)), target="")
    *_, one, two, three, note = answered(whole, without, stuck).splitlines()
    assert one.endswith("st     Healthy")
    assert two.endswith("there")
    assert three.endswith("-      applied: Rejected")
    assert note.strip() == "no"


def test_long_lists_are_cut_and_say_so() -> None:
    lines = answered(locations=300).splitlines()
    assert "… and 102 more (all with -o json)" in lines


EVIL = "no\x1b[2J image\nall is well"
INERT = "no?[2J image all is well"


def test_what_an_edge_says_is_text_line_by_line() -> None:
    """A message may come from an edge, which may have written anything into it."""
    found = answered(pair(Link("applied", False, "Rejected", (EVIL,))))
    assert found.endswith(f"{INERT}\n")
    problem = PlacementProblem(1, PLACE, "root:wmw", WEB, Link("applied", False, "X", (EVIL,)), ())
    assert INERT in problems_text([problem])
    held = Foreseen(WEB, Problem("X", EVIL), (Destination("imw", "a", "a", "u"),))
    change = PlacementChange(PLACE, withheld=(held,))
    shown = changes_text([change], lambda _: "root", [EVIL])
    assert shown.startswith(f"+ new {INERT}\n")
    assert shown.endswith(f"X: {INERT}\n")
    assert "\x1b" not in found + shown


def test_nothing_is_said_in_a_word() -> None:
    empty = answer_text(Answer(PLACE, (), (), (), "root:wmw"))
    assert empty.count("\nnone\n") == 2
    assert problems_text(()) == "no problems\n"
    assert changes_text(()) == "nothing would change\n"
    assert changes_text((), created=["Location florin"]) == (
        "+ new Location florin\nnothing else would change\n"
    )


def test_a_problem_names_ten_places_and_counts_the_others() -> None:
    places = tuple(f"l{n:02}" for n in range(13))
    link = Link("applied", False, "Rejected", ("no",))
    text = problems_text([PlacementProblem(0, PLACE, "root:wmw", WEB, link, places)])
    assert "applied: Rejected" in text
    assert "at l00, l01, l02, l03, l04, l05, l06, l07, l08, l09, and 3 more" in text
    whole = problems_text([PlacementProblem(0, PLACE, "root:wmw", None, link, ("l",))])
    assert "   -        applied" in whole


def test_changes_are_signed_and_aligned() -> None:
    def at(name: str) -> Destination:
        return Destination("imw", name, "st", f"u-{name}")

    change = PlacementChange(
        PLACE,
        destinations_added=(at("a"),),
        destinations_removed=(at("longer"),),
        destinations_held=(at("h"),),
        destinations_freed=(at("f"),),
        objects_added=(WEB,),
        objects_removed=(ROLE,),
        arriving=(ROLE,),
        contents=(ContentChange(WEB, ("spec.replicas: 1 -> 2",), (at("a"),)),),
        withheld=(Foreseen(WEB, Problem("MissingParameter", "no x"), (at("a"), at("b"))),),
    )
    lines = changes_text([change], lambda cluster: f"root:{cluster}").splitlines()
    assert lines[0] == "EdgePlacement p in root:wmw"
    assert "  + destination a by st       root:imw" in lines
    assert "  - destination longer by st  root:imw" in lines
    assert "  ! held destination h by st       root:imw" in lines
    assert f"  + object {WEB}" in lines
    assert f"  - object {ROLE}" in lines
    assert f"  > goes there too: object {ROLE}" in lines
    assert f"  ~ object {WEB} at 1 destination: a" in lines
    assert "      spec.replicas: 1 -> 2" in lines
    assert f"  ! withheld: object {WEB} at 2 destinations: a, b" in lines
    assert "      MissingParameter: no x" in lines
