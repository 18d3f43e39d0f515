"""An expression in two halves comes to what the whole comes to."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.objects import Object
from skerry.logic.fleet.query.expressions import (
    MAX_KEPT_BYTES,
    OF_OBJECT,
    OF_ROW,
    ExpressionError,
    Failure,
    compiled,
    compiled_over,
    kept,
    run,
)
from skerry.logic.machinery.cel.values import EvaluationError

ROW: Object = {
    "report": {"delivered": True, "healthy": "True", "reason": "", "time": ""},
    "location": {"name": "oslo", "cluster": "inv", "labels": {"region": "north"}},
    "syncTarget": {"name": "st", "ready": True, "labels": {}},
    "placement": "web",
}
TEXTS = [
    "status.n",
    "status.?n.orValue(0) > 1 && location.labels.region == 'north'",
    "status.n > 1 || report.delivered",
    "location.labels[?'zone'].orValue('none') + obj.kind",
    "status.list.exists(c, c == location.name)",
    "status.list.map(c, c + 'x').size() + (report.delivered ? 1 : 0)",
    "location.labels.exists(status, status == 'region')",
    "status.list.all(obj, obj != placement)",
    "'%s-%d'.format([location.name, status.n])",
    "{'a': status.n}['a']",
    "has(status.n) ? placement : 'none'",
    "[status.n, 1].exists(x, x == 1)",
]


def value(run_it: Any) -> Any:
    try:
        return run_it()
    except EvaluationError as error:
        return str(error)


@given(
    st.sampled_from(TEXTS),
    st.sampled_from([{}, {"n": 1}, {"n": 2}, {"n": "x"}, {"list": ["oslo"]}, {"list": []}]),
    st.sampled_from([{}, {"kind": "Deployment"}]),
)
def test_both_halves_together_come_to_what_the_whole_comes_to(
    text: str, status: Object, obj: Object
) -> None:
    whole = compiled_over(text, {**OF_OBJECT, **OF_ROW})
    expected = value(lambda: run(whole, {**ROW, "status": status, "obj": obj}))
    halves = compiled(text)
    scope = dict(ROW)
    for part in halves.parts:
        found = kept(part.program, {"status": status, "obj": obj})
        if isinstance(found, Failure):
            return  # a scope that fails on reading is tested with the rows
        scope[part.tree] = found
    assert value(lambda: run(halves.rest, scope)) == expected


def test_what_reads_the_object_alone_is_one_part() -> None:
    found = compiled("status.conditions.exists(c, c.type == 'Ready')")
    assert len(found.parts) == 1
    assert found.only == found.parts[0].tree
    assert found.type.name == "bool"


def test_equal_parts_of_an_expression_are_kept_once() -> None:
    found = compiled("status.n > 1 && location.name == 'x' && status.n > 1")
    assert len(found.parts) == 1
    assert not found.only


def test_a_loop_variable_called_status_is_no_status() -> None:
    assert compiled("location.labels.exists(status, status == 'x')").parts == ()


def test_nothing_long_is_kept_of_an_object() -> None:
    [part] = compiled("status.text + placement").parts
    assert kept(part.program, {"status": {"text": "short"}, "obj": {}}) == "short"
    for long in ("x" * (MAX_KEPT_BYTES + 1), ["x" * MAX_KEPT_BYTES]):
        found = kept(part.program, {"status": {"text": long}, "obj": {}})
        assert isinstance(found, Failure)
        assert "4096 at most" in found.message


def test_a_row_has_a_budget_however_long_its_lists_are() -> None:
    [part] = compiled("status.list.all(x, status.list.all(y, x != y + 1))").parts
    found = kept(part.program, {"status": {"list": list(range(1000))}, "obj": {}})
    assert isinstance(found, Failure)
    assert "costs more than 1000 units" in found.message


@pytest.mark.parametrize("text", ["", "1 +", "nothing", "x" * 5000, "status."])
def test_what_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError):
        compiled(text)
