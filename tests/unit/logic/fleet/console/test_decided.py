"""Rollouts and StatusQueries as pages show them: waves in order, answers bounded."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.refs import CLUSTER_ANNOTATION
from skerry.logic.fleet.console.decided import (
    ObjectRows,
    query_row,
    query_shown,
    rollout_row,
    rollout_shown,
    waves_of,
)
from skerry.logic.fleet.rollout.bitmaps import encoded

WAVES = [
    {"name": "canary", "until": 2, "soak": "10m"},
    {"name": "early", "until": "25%", "approval": "Required"},
]


def rollout(**status: Any) -> dict[str, Any]:
    metadata = {"name": "web", "annotations": {CLUSTER_ANNOTATION: "shop"}}
    return {"metadata": metadata, "spec": {"waves": WAVES}, "status": status}


def under_way(number: int) -> dict[str, Any]:
    return rollout(
        phase="Progressing",
        attempt=3,
        target=4,
        stable=3,
        wave={"number": number, "name": "early", "slots": encoded([1, 2, 3, 4, 5])},
        verdicts={"attempt": 3, "good": encoded([1, 2, 9]), "bad": encoded([3])},
    )


def test_the_open_wave_counts_whom_it_holds_and_the_others_say_where_they_stand() -> None:
    first, second, last = waves_of(under_way(2))
    assert (first["name"], first["state"], first["until"]) == ("canary", "passed", "2")
    assert first["soakSeconds"] == 600
    assert (second["state"], second["until"], second["approval"]) == ("open", "25%", True)
    assert [second[each] for each in ("size", "good", "bad", "waiting")] == [5, 2, 1, 2]
    assert (last["name"], last["state"], last["until"]) == ("", "ahead", "everybody")


@pytest.mark.parametrize(
    ("status", "states"),
    [
        ({}, ["ahead"] * 3),
        ({"phase": "Settling", "wave": {"number": 2}}, ["ahead"] * 3),
        ({"phase": "RollingBack", "wave": {"number": 2}}, ["ahead"] * 3),
        ({"phase": "Completed"}, ["passed"] * 3),
    ],
)
def test_waves_of_a_rollout_at_rest_are_all_ahead_or_all_passed(
    status: dict[str, Any], states: list[str]
) -> None:
    assert [each["state"] for each in waves_of(rollout(**status))] == states


def test_a_failure_is_reported_and_what_people_wrote_is_bounded() -> None:
    failure = {"revision": 4, "reason": "TooManyBad", "message": "x" * 5000}
    shown = rollout_shown(rollout(phase="RollingBack", failure=failure, counts={"bad": 1}))
    assert (shown["phase"], shown["paused"], shown["counts"]) == ("RollingBack", False, {"bad": 1})
    assert shown["failure"]["reason"] == "TooManyBad"
    assert len(shown["failure"]["message"]) <= 256
    assert rollout_shown(rollout())["failure"] is None


def query(rows: int, **status: Any) -> dict[str, Any]:
    answered = [{"values": [f"region-{number}", number, None, ["a"]]} for number in range(rows)]
    return {
        "metadata": {"name": "q", "annotations": {CLUSTER_ANNOTATION: "shop"}},
        "spec": {"filter": "x" * 5000},
        "status": {"columns": [{"name": "region"}, {"name": "n"}], "rows": answered, **status},
    }


def test_an_answer_is_shown_as_far_as_anybody_reads() -> None:
    shown = query_shown(query(600, rowsOmitted=7, sources={"stale": 2}))
    assert len(shown["rows"]) == 500
    assert (shown["omitted"], shown["stale"]) == (107, 2)
    assert shown["rows"][3] == ["region-3", 3, None, "['a']"]
    assert len(shown["asked"]["filter"]) <= 256
    assert query_shown({"metadata": {"name": "q"}})["rows"] == []


def test_a_query_that_cannot_be_answered_says_why() -> None:
    wrong = [{"type": "Valid", "status": "False", "reason": "Syntax", "message": "no such field"}]
    assert query_row(query(2, rowsOmitted=1)) == {"rows": 3, "problem": ""}
    assert query_row(query(0, conditions=wrong))["problem"] == "Syntax: no such field"


def test_rows_count_every_change_and_know_which_object_it_was() -> None:
    rows = ObjectRows(rollout_row)
    rows.put(rollout(phase="Progressing"))
    rows.put({**rollout(), "metadata": {**rollout()["metadata"], "name": "other"}})
    before = dict(rows.changed)
    rows.put(rollout(phase="Completed"))
    assert rows.rows["shop", "web"]["phase"] == "Completed"
    assert rows.changed["shop", "web"] > before["shop", "web"]
    assert rows.changed["shop", "other"] == before["shop", "other"]
    rows.remove(rollout())
    rows.remove(rollout())
    assert list(rows.rows) == list(rows.changed) == [("shop", "other")]
