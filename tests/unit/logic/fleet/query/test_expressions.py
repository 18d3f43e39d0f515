"""An expression in two halves comes to what the whole comes to."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.objects import Object
from skerry.logic.fleet.query.expressions import (
    MAX_COST,
    MAX_KEPT_BYTES,
    MAX_MESSAGE,
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


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("bytes(status.text) == bytes(placement)", {"text": "x" * 2 * MAX_KEPT_BYTES}),
        ("[bytes(status.text)] == [bytes(placement)]", {"text": "x" * 2 * MAX_KEPT_BYTES}),
        ("status.?text.orValue(placement)", {"text": "x" * 100_000}),
        ("url(status.text) == url(placement)", {"text": "https://h/" + "x" * MAX_KEPT_BYTES}),
    ],
)
def test_what_is_kept_is_bounded_whatever_its_type(text: str, status: Object) -> None:
    [part] = compiled(text).parts
    found = kept(part.program, {"status": status, "obj": {}})
    assert isinstance(found, Failure)
    assert f"want {MAX_KEPT_BYTES} at most" in found.message


@pytest.mark.parametrize(
    "value_", [None, True, False, 0, -7, 2.5, "", "text", [1, "a"], {"a": [1]}]
)
def test_short_values_are_kept_as_they_are(value_: Any) -> None:
    [part] = compiled("dyn(status.x) == dyn(placement)").parts
    found = kept(part.program, {"status": {"x": value_}, "obj": {}})
    assert found == value_
    assert type(found) is type(value_)


def test_a_text_of_just_the_size_is_kept_and_a_longer_one_is_not() -> None:
    [part] = compiled("status.text + placement").parts
    fitting = "x" * MAX_KEPT_BYTES
    assert kept(part.program, {"status": {"text": fitting}, "obj": {}}) == fitting
    over = kept(part.program, {"status": {"text": fitting + "x"}, "obj": {}})
    assert over == Failure(f"a value of {MAX_KEPT_BYTES + 1} bytes: want {MAX_KEPT_BYTES} at most")


@pytest.mark.parametrize(
    "text", ["status.?x.orValue(placement)", "bytes(status.x) == bytes(placement)"]
)
def test_a_short_value_is_kept_also_where_it_is_no_json(text: str) -> None:
    found = compiled(text)
    [part] = found.parts
    for status, wanted in (({"x": "web"}, ("web", True)), ({"x": "y"}, ("y", False))):
        value_ = kept(part.program, {"status": status, "obj": {}})
        assert not isinstance(value_, Failure)
        assert run(found.rest, {**ROW, part.tree: value_}) in wanted


def test_a_part_that_fails_is_kept_as_a_failure_with_a_message_of_bounded_length() -> None:
    [part] = compiled("{'a': 1}[status.key] + size(placement)").parts
    found = kept(part.program, {"status": {"key": "k" * 5000}, "obj": {}})
    assert isinstance(found, Failure)
    assert len(found.message) == MAX_MESSAGE


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("obj.kind == status.kind", 1),
        ("obj.kind == placement", 1),
        ("[status.a, placement]", 1),
        ("{status.a: placement, placement: status.b}", 2),
        ("{'k': [status.a, location.name]}", 1),
        ("has(status.a) && has(location.labels.region)", 1),
        ("location.labels[?status.a].orValue(obj.kind)", 2),
        ("status.list.filter(x, x == placement).size()", 1),
        ("location.labels.map(k, k + status.suffix)", 1),
        ("location.name + placement", 0),
        ("1 + 2", 0),
    ],
)
def test_the_largest_parts_that_read_the_object_alone_are_kept(text: str, parts: int) -> None:
    found = compiled(text)
    assert len(found.parts) == parts
    assert not {"obj", "status"} & set(found.rest.names)


def test_a_variable_of_a_loop_keeps_what_depends_on_it_out_of_the_parts() -> None:
    found = compiled("location.labels.exists(k, status.wanted.exists(w, w == k))")
    assert [each.program.names for each in found.parts] == [frozenset(("status",))]
    scope = {**ROW, found.parts[0].tree: ["region"]}
    assert run(found.rest, scope) is True
    assert run(found.rest, {**ROW, found.parts[0].tree: ["zone"]}) is False


def test_what_a_rest_reads_is_what_a_change_of_it_matters_for() -> None:
    found = compiled("status.n > 1 && location.name == placement")
    reads = {name for name in (*OF_ROW, *OF_OBJECT) if found.reads(name)}
    assert reads == {"location", "placement"}


def test_without_an_object_there_is_no_object_to_read() -> None:
    assert compiled("location.name", with_object=False).parts == ()
    with pytest.raises(ExpressionError, match="undeclared reference to 'status'"):
        compiled("status.n", with_object=False)


def test_what_costs_too_much_for_certain_is_refused_with_both_numbers() -> None:
    text = f"size([{', '.join(['{}'] * 100)}]) > 0"
    with pytest.raises(ExpressionError, match=rf"costs \d+ units for one row: want {MAX_COST}"):
        compiled(text)


def test_every_run_has_a_budget_of_its_own() -> None:
    program = compiled_over("l.all(x, x > 0)", {"l": OF_OBJECT["obj"]})
    long, short = {"l": [1] * 2000}, {"l": [1] * 20}
    for _ in range(3):
        assert run(program, short) is True
        with pytest.raises(EvaluationError, match=f"costs more than {MAX_COST} units"):
            run(program, long)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("status.n + 1", "status.n  +  1", True),
        ("status.n + 1", "status.n + 2", False),
        ("status.n + 1", "status.m + 1", False),
        ("status.n == 1", "status.n == 1.0", False),
        ("status.n == '1'", "status.n == 1", False),
        ("status['n']", "status['m']", False),
        ("has(status.n)", "status.n", False),
        ("status.a.b", "status.b.a", False),
    ],
)
def test_parts_are_the_same_if_they_mean_the_same_whatever_the_spaces(
    one: str, other: str, same: bool
) -> None:
    [first], [second] = compiled(one).parts, compiled(other).parts
    assert (first == second) is same


@pytest.mark.parametrize(
    ("text", "status", "bound"),
    [
        ("bytes(status.x) == bytes(placement)", {"x": "y" * (MAX_KEPT_BYTES - 2)}, True),
        ("url(status.x) == url(placement)", {"x": "https://h/short"}, True),
        ("[url(status.x)] == [url(placement)]", {"x": "https://h/" + "x" * MAX_KEPT_BYTES}, False),
        ("[status.n] == [placement.size()]", {"n": 2**70}, True),
        ("[status.n] == [placement.size()]", {"n": 10**4200}, False),
    ],
)
def test_the_size_of_a_value_is_known_also_where_json_has_no_such_value(
    text: str, status: Object, bound: bool
) -> None:
    [part] = compiled(text).parts
    found = kept(part.program, {"status": status, "obj": {}})
    assert isinstance(found, Failure) is not bound
