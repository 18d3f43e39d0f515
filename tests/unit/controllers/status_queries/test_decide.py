"""A status is written when it says something else, and at no other time."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.controllers.status_queries.decide import decide
from skerry.controllers.status_queries.observe import Observed
from skerry.logic.fleet.query.answer import Answer
from skerry.logic.machinery.conditions import find_condition
from skerry.logic.machinery.plan import NOTHING, Delete, Update

NOW = datetime(2030, 1, 1, tzinfo=UTC)
REF = ObjectRef("wmw", "edge.kcp.io", "statusqueries", "", "q")
ANSWER = Answer({"rows": [{"values": [1]}], "asOf": {"newestReport": "2029-12-31T00:00:00Z"}})


def query(generation: int = 1, **status: Any) -> Object:
    metadata = {"name": "q", "uid": "u", "generation": generation}
    return {"metadata": metadata, "spec": {}, "status": status}


def written(observed: Observed) -> Object:
    [action] = decide(observed, NOW)
    assert isinstance(action, Update)
    assert action.subresource == "status"
    status: Object = action.object["status"]
    return status


def reason(status: Object, kind: str) -> tuple[str, str]:
    found = find_condition({"status": status}, kind)
    assert found is not None
    return found["status"], found["reason"]


def test_an_answer_is_written_once() -> None:
    status = written(Observed(REF, query(), answer=ANSWER, revision=7))
    assert status["asOf"]["resourceVersion"] == "7"
    assert status["observedGeneration"] == 1
    assert reason(status, "Complete") == ("True", "Read")
    assert reason(status, "WithinLimits") == ("True", "Whole")
    again = Observed(REF, query(**status), answer=ANSWER, revision=9)
    assert decide(again, NOW) == NOTHING


def test_what_was_cut_is_a_condition() -> None:
    status = written(Observed(REF, query(), answer=Answer(ANSWER.status, "too many groups")))
    assert reason(status, "WithinLimits") == ("False", "Cut")


def test_a_query_that_makes_no_sense_has_no_rows_and_says_why() -> None:
    old = query(rows=[{"values": [1]}])
    status = written(Observed(REF, old, errors=("spec.filter: Invalid value",)))
    assert "rows" not in status
    assert reason(status, "Valid") == ("False", "InvalidSpec")
    assert find_condition({"status": status}, "Valid")["message"] == "spec.filter: Invalid value"  # type: ignore[index]


def test_the_old_answer_stands_while_the_same_question_is_read_again() -> None:
    waiting = ("Reading", "being read")
    old = query(observedGeneration=1, rows=[{"values": [1]}])
    assert decide(Observed(REF, old, waiting=waiting), NOW) == NOTHING


def test_old_rows_never_stand_under_the_columns_of_a_new_question() -> None:
    old = query(2, observedGeneration=1, rows=[{"values": [1]}])
    status = written(Observed(REF, old, waiting=("Reading", "being read")))
    assert "rows" not in status
    assert status["observedGeneration"] == 2
    assert reason(status, "Complete") == ("False", "Reading")


def test_an_answer_stays_while_a_watch_is_interrupted() -> None:
    gap = ("WatchInterrupted", "as last seen")
    status = written(Observed(REF, query(), answer=ANSWER, waiting=gap))
    assert status["rows"] == ANSWER.status["rows"]
    assert reason(status, "Complete") == ("False", "WatchInterrupted")


def test_a_query_whose_time_is_over_is_deleted() -> None:
    [action] = decide(Observed(REF, query(), expired=True), NOW)
    assert isinstance(action, Delete)
    assert action.uid == "u"
