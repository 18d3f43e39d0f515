"""Expressions pay for what they do: no short rule does more than its budget buys."""

from __future__ import annotations

import contextlib
import tracemalloc
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.api.schema import Schema
from skerry.logic.machinery.cel import check_rules
from skerry.logic.machinery.cel.ast import MAX_LENGTH
from skerry.logic.machinery.cel.compiler import CompileError, compile_expression
from skerry.logic.machinery.cel.typed import COST, CostExceeded, Scope
from skerry.logic.machinery.cel.types import declared
from skerry.logic.machinery.cel.values import EvaluationError
from skerry.logic.machinery.work import LongWork, limited, spend
from tests.kit.counting import steps

CALL = 1_000_000
SCHEMA = Schema(
    {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "part": {"type": "string"},
            "numbers": {"type": "array", "items": {"type": "integer"}},
            "words": {"type": "array", "items": {"type": "string"}},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "tags": {
                "type": "array",
                "x-kubernetes-list-type": "set",
                "items": {"type": "string"},
            },
            "ports": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": {
                    "type": "object",
                    "properties": {"name": {"type": "string"}, "v": {"type": "integer"}},
                },
            },
            "times": {"type": "array", "items": {"type": "string", "format": "date-time"}},
        },
    }
)
SELF = declared(SCHEMA)


def value(n: int) -> dict[str, Any]:
    """Return an object whose every list and text has *n* members."""
    return {
        "text": "ab" * (n // 2),
        "part": "b" + "a" * (n // 4),
        "numbers": list(range(n)),
        "words": [f"word-{index}" for index in range(n)],
        "labels": {f"label-{index}": "x" for index in range(n)},
        "tags": [f"tag-{index}" for index in range(n)],
        "ports": [{"name": f"port-{index}", "v": index} for index in range(n)],
        "times": ["2030-01-01T00:00:00Z"] * n,
    }


def spent(text: str, obj: dict[str, Any], budget: float = CALL) -> float:
    """Run an expression to its end, or to the end of its budget; return what it was charged."""
    assert SELF is not None
    program = compile_expression(text, {"self": SELF, "oldSelf": SELF})
    scope: Scope = {"self": obj, "oldSelf": obj, COST: budget - program.cost}
    with contextlib.suppress(CostExceeded, EvaluationError):
        program.run(scope)
    return budget - float(scope[COST])


def doubled(start: str, step: str, times: int, end: str) -> str:
    """Return a chain of variables, each made of two of the one before."""
    names = [chr(ord("a") + index) for index in range(times)]
    text = end.format(names[-1])
    for index in range(times - 1, -1, -1):
        made = start if index == 0 else step.format(names[index - 1])
        text = f"cel.bind({names[index]}, {made}, {text})"
    return text


_PRINTED = "'%s'.format([{0}]) == ''"
_IN_MAPS = "{{'k': {0}, 'l': {0}}}"
GROWING = {
    "lists added to themselves": doubled("self.numbers", "{0} + {0}", 20, "{0}.size() > 0"),
    "texts added to themselves": doubled("self.text", "{0} + {0}", 20, "{0}.size() > 0"),
    "of no known type": doubled("dyn(self.text)", "{0} + {0}", 20, "{0} == ''"),
    "lists of no known type": doubled("dyn(self.numbers)", "{0} + {0}", 20, "{0} == []"),
    "lists in lists, compared": doubled("[self.numbers]", "[{0}, {0}]", 20, "{0} == {0}"),
    "lists in lists, printed": doubled("[self.numbers]", "[{0}, {0}]", 20, _PRINTED),
    "maps in maps, compared": doubled("{'k': self.text}", _IN_MAPS, 20, "{0} == {0}"),
    "replaced by more": "self.text.replace('', self.text).size() > 0",
    "replaced again": "self.text.replace('a', self.text).replace('a', self.text).size() > 0",
    "joined by much": "self.words.join(self.text).size() > 0",
    "a precise number": "'%.999999999f'.format([1.0]) == ''",
    "many precise numbers": "self.numbers.all(n, '%.400f'.format([n]) != '')",
    "regular expression with counts": "self.text.matches('(.*a.{900}b)')",
    "expression from data": "self.words.all(w, self.words.all(v, v.matches(w + '.{0,200}')))",
    "matches that look ahead": "self.text.findAll('a.*c|a').size() > 0",
    "large expression": "self.text.matches('[\\\\p{L}\\\\p{N}]{0,60}x')",
    "zones from data": "self.words.all(w, timestamp('2030-01-01T00:00:00Z').getHours(w) == 1)",
}  # fmt: skip


@pytest.mark.parametrize("text", GROWING.values(), ids=GROWING.keys())
def test_what_grows_is_stopped_before_it_is_large(text: str) -> None:
    obj = value(2000)
    tracemalloc.start()
    try:
        spent(text, obj)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 40_000_000


LINEAR = {
    "equality of lists": "self.words == oldSelf.words",
    "equality of maps": "self.labels == oldSelf.labels",
    "equality of sets": "self.tags == oldSelf.tags",
    "sum of sets": "(self.tags + oldSelf.tags).size() > 0",
    "sum of list-maps": "(self.ports + oldSelf.ports).size() > 0",
    "membership": "self.words.all(w, w in oldSelf.words)",
    "sets": "sets.equivalent(self.words, oldSelf.words)",
    "order": "self.words.isSorted()",
    "smallest": "self.numbers.min() == self.numbers.max()",
    "first of all": "self.words.indexOf('no') == self.words.lastIndexOf('no')",
    "last place": "self.text.lastIndexOf(self.part) == 3",
    "map": "self.numbers.map(n, n * 2).size() > 0",
    "filter": "self.words.filter(w, w.size() > 3).size() > 0",
    "nested": "self.numbers.all(n, self.numbers.exists(m, m == n))",
    "splitting": "self.text.split('').size() > 0",
    "comparing texts": "self.words.all(w, w <= self.text)",
    "addresses": "self.words.all(w, !isIP(w))",
    "quantities": "self.words.all(w, !isQuantity(w))",
    "printing": "'%s'.format([self.ports]).size() > 0",
}


@pytest.mark.parametrize("text", LINEAR.values(), ids=LINEAR.keys())
def test_steps_are_in_proportion_to_what_is_charged(text: str) -> None:
    for size in (50, 100):
        obj = value(size)
        counted = steps(partial(spent, text, obj))
        assert counted < 8 * spent(text, obj) + 5000, (size, counted)


def test_a_large_list_is_mapped_in_one_pass() -> None:
    text = "self.numbers.map(n, n + 1).filter(n, n > 1).size() > 0"
    small, large = (steps(partial(spent, text, value(n))) for n in (500, 1000))
    assert large < 2.5 * small


@pytest.mark.parametrize("depth", [10, 20])
def test_nested_macros_are_compiled_in_proportion_to_their_text(depth: int) -> None:
    def nested(levels: int) -> str:
        text = "1"
        for level in range(levels):
            text = f"[1].map(v{level}, {text})"
        return f"{text}.size() > 0"

    for compiled in (nested(depth), nested(depth).replace(".map(", ".filter(")):
        try:
            counted = steps(partial(compile_expression, compiled, {}))
        except CompileError:
            continue
        assert counted < 200_000


@pytest.mark.parametrize(
    "text",
    ["||".join(["true"] * 1000), "[" + "1," * 3000 + "1].size() > 0", f"'{'x' * 5000}' == ''"],
    ids=["logic", "list", "text"],
)
def test_an_expression_has_a_length(text: str) -> None:
    assert len(text) > MAX_LENGTH
    with pytest.raises(CompileError, match="exceeds the limit of 4096"):
        compile_expression(text, {})


def test_compiling_is_spent_and_may_be_broken_off() -> None:
    text = " || ".join(f"self.text == '{number}'" for number in range(100))
    assert SELF is not None
    variables = {"self": SELF}
    with pytest.raises(LongWork):
        limited(10_000, lambda: compile_expression(text, variables))
    assert limited(10_000_000, lambda: compile_expression(text, variables)).type.name == "bool"


def ruled(rule: str, **more: Any) -> Schema:
    raw = {**SCHEMA.raw, "x-kubernetes-validations": [{"rule": rule, **more}]}
    return Schema(raw)


HEAVY = "self.numbers.all(n, self.numbers.all(m, n + m >= 0))"


def _broken_off(schema: Schema, obj: dict[str, Any]) -> None:
    with pytest.raises(LongWork):
        limited(10_000, lambda: check_rules(schema, obj))


def test_rules_that_are_long_are_broken_off_soon_and_judge_the_same_elsewhere() -> None:
    schema, obj = ruled(HEAVY), value(120)
    assert check_rules(schema, obj) == []
    broken = steps(partial(_broken_off, schema, obj))
    whole = steps(lambda: check_rules(schema, obj))
    assert broken < whole / 5
    assert limited(100_000_000, lambda: check_rules(schema, obj)) == []


def test_a_rule_beyond_its_own_budget_is_refused_wherever_it_is_run() -> None:
    schema, obj = ruled(HEAVY), value(800)
    for units in (None, 100_000_000):
        errors = (
            check_rules(schema, obj)
            if units is None
            else limited(units, lambda: check_rules(schema, obj))
        )
        assert "call cost exceeds limit" in errors[0].message


def test_what_a_rule_reads_is_paid_for_before_it_is_run() -> None:
    schema = ruled("self.times.size() >= 0")
    with pytest.raises(LongWork):
        limited(20_000, lambda: check_rules(schema, value(2000)))


def test_visiting_many_values_is_spent_though_each_rule_is_free() -> None:
    raw = {
        "type": "object",
        "properties": {
            "numbers": {
                "type": "array",
                "items": {"type": "integer", "x-kubernetes-validations": [{"rule": "true"}]},
            }
        },
    }
    schema = Schema(raw)
    with pytest.raises(LongWork):
        limited(20_000, lambda: check_rules(schema, value(5000)))


def test_only_so_many_failures_are_looked_for() -> None:
    raw = {
        "type": "object",
        "properties": {
            "numbers": {
                "type": "array",
                "items": {"type": "integer", "x-kubernetes-validations": [{"rule": "self < 0"}]},
            }
        },
    }
    errors = check_rules(Schema(raw), value(50_000))
    assert len(errors) < 12_000
    assert "running out of cost budget" in errors[-1].message


def test_without_a_limit_spending_does_nothing() -> None:
    spend(1e30)


@settings(max_examples=60, deadline=None)
@given(
    st.recursive(
        st.sampled_from(["self.text", "'a'", "self.part", "self.words[0]"]),
        lambda inner: st.one_of(
            st.tuples(inner, inner).map(lambda pair: f"({pair[0]} + {pair[1]})"),
            st.tuples(inner, inner, inner).map(lambda t: f"{t[0]}.replace({t[1]}, {t[2]})"),
            st.tuples(inner, inner).map(lambda pair: f"{pair[0]}.split({pair[1]}).join({pair[0]})"),
            inner.map(lambda one: f"'%s%s'.format([{one}, {one}])"),
            inner.map(lambda one: f"{one}.upperAscii()"),
        ),
        max_leaves=8,
    )
)
def test_no_chain_of_text_functions_outgrows_its_budget(text: str) -> None:
    tracemalloc.start()
    try:
        spent(f"{text}.size() > 0", value(400))
        assert tracemalloc.get_traced_memory()[1] < 30_000_000
    finally:
        tracemalloc.stop()
