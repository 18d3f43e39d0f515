"""Records are written beside their placement, and found by whoever wrote them."""

from __future__ import annotations

from skerry.logic.fleet.history.writing import creation, made_by


def test_a_record_is_made_in_the_workspace_of_its_placement_for_what_it_says() -> None:
    made = creation("c1", {"metadata": {"name": "p-1"}, "change": "Joined"})
    assert (made.target.cluster, made.target.name, made.target.namespace) == ("c1", "p-1", "")
    assert made.target.gvr.resource == "decisionrecords"
    assert made.reason == "Joined"


def test_each_controller_finds_its_own_records_of_a_placement() -> None:
    first, second = made_by("edge-scheduler", "p"), made_by("placement-translator", "p")
    assert first != second
    assert first.endswith("=edge-scheduler")
    assert "=p," in first


def test_a_name_that_is_too_long_for_a_label_is_found_by_what_stands_for_it() -> None:
    selector = made_by("edge-scheduler", "x" * 200)
    value = selector.partition(",")[0].partition("=")[2]
    assert len(value) <= 63
    assert value != made_by("edge-scheduler", "x" * 201).partition(",")[0].partition("=")[2]
