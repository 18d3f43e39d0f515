"""What expressions compute, what they refuse, and that both evaluators agree."""

from __future__ import annotations

import math
from typing import Any

import pytest
from cel_expr_python import cel
from cel_expr_python.ext import ext_bindings, ext_optional, ext_strings
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.api.schema import Schema
from skerry.logic.machinery.cel.compiler import CompileError, compile_expression
from skerry.logic.machinery.cel.typed import COST, CostExceeded
from skerry.logic.machinery.cel.types import DYN, CelType, declared
from skerry.logic.machinery.cel.values import EvaluationError, Optional_

SCHEMA = Schema(
    {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "maxLength": 63},
            "replicas": {"type": "integer"},
            "ratio": {"type": "number"},
            "paused": {"type": "boolean"},
            "a-b": {"type": "string"},
            "namespace": {"type": "string"},
            "port": {"x-kubernetes-int-or-string": True},
            "note": {"type": "string", "nullable": True},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "items": {
                "type": "array",
                "maxItems": 10,
                "items": {
                    "type": "object",
                    "properties": {"name": {"type": "string"}, "v": {"type": "integer"}},
                },
            },
            "tags": {
                "type": "array",
                "x-kubernetes-list-type": "set",
                "items": {"type": "string"},
            },
        },
    }
)
SELF = declared(SCHEMA)
VALUE: dict[str, Any] = {
    "name": "web",
    "replicas": 3,
    "ratio": 0.5,
    "paused": False,
    "a-b": "dash",
    "namespace": "default",
    "port": 80,
    "note": None,
    "labels": {"app": "web", "tier": "1"},
    "items": [{"name": "x", "v": 1}, {"name": "y", "v": 2}],
    "tags": ["a", "b"],
}


def computed(text: str, value: Any = None, kind: CelType | None = SELF) -> Any:
    assert kind is not None
    program = compile_expression(text, {"self": kind, "oldSelf": kind})
    data = VALUE if value is None else value
    return program.run({"self": data, "oldSelf": data, COST: 1_000_000})


@pytest.mark.parametrize(
    "text",
    [
        "self.replicas > 2 && self.name.startsWith('w')",
        "self.a__dash__b == 'dash'",
        "self.__namespace__ == 'default'",
        "self.labels['app'] == self.name && self.labels.app == 'web'",
        "'app' in self.labels && !('zone' in self.labels)",
        "has(self.name) && has(self.labels.app) && !has(self.labels.zone)",
        "self.note == null",
        "self.port == 80 || self.port == 'http'",
        "type(self.port) == int",
        "self.items.all(i, i.v > 0)",
        "self.items.exists(i, i.name == 'y')",
        "self.items.exists_one(i, i.v == 2)",
        "self.items.map(i, i.v).sum() == 3",
        "self.items.filter(i, i.v > 1)[0].name == 'y'",
        "self.items.map(i, i.v > 1, i.name) == ['y']",
        "self.labels.all(k, self.labels[k].size() > 0)",
        "self.tags == ['b', 'a']",
        "(self.tags + ['a', 'c']).size() == 3",
        "self.?note.orValue('x') == null",
        "self.labels[?'zone'].orValue('none') == 'none'",
        "self.?labels.app.orValue('') == 'web'",
        "self.items[?5].hasValue() == false",
        "self.?tags[0].orValue('') == 'a' && !self.?tags[9].hasValue()",
        "[[1]][?0][0].orValue(2) == 1 && !self.labels[?'no'].hasValue()",
        "{'a': {'b': 1}}[?'a']['b'].value() == 1 && !{'a': {'b': 1}}[?'x']['b'].hasValue()",
        "optional.of(1).or(optional.none()).value() == 1",
        "optional.of(2).optMap(v, v * 2).value() == 4",
        "cel.bind(n, self.replicas, n * n) == 9",
        "self.replicas > 2.5 && 1 < 2u",
        "-7 / 2 == -3 && -7 % 2 == -1 && 7u / 2u == 3u",
        "size('é') == 1 && b'é'.size() == 2",
        "1.0 / 0.0 > 1000.0",
        "int('12') + int(3.9) + int(4u) == 19",
        "string(1) + string(true) + string(1.5) == '1true1.5'",
        "double('1.5') == 1.5 && bool('true') && uint(3) == 3u",
        "bytes('ab') == b'ab' && string(b'ab') == 'ab'",
        "timestamp('2024-03-05T06:07:08Z').getFullYear() == 2024",
        "timestamp('2024-03-05T06:07:08Z').getMonth() == 2",
        "timestamp('2024-03-05T06:07:08Z').getDate() == 5",
        "timestamp('2024-03-05T06:07:08Z').getDayOfMonth() == 4",
        "timestamp('2024-03-03T00:00:00Z').getDayOfWeek() == 0",
        "timestamp('2024-03-05T23:00:00Z').getHours('+02:00') == 1",
        "timestamp('2024-01-01T00:00:00Z') + duration('24h') == timestamp('2024-01-02T00:00:00Z')",
        "timestamp('2024-01-02T00:00:00Z') - timestamp('2024-01-01T00:00:00Z') == duration('24h')",
        "duration('1h30m').getMinutes() == 90 && string(duration('90s')) == '90s'",
        "string(timestamp('2024-01-01T00:00:00.5Z')) == '2024-01-01T00:00:00.5Z'",
        "'a,b,c'.split(',') == ['a', 'b', 'c'] && 'a,b,c'.split(',', 2) == ['a', 'b,c']",
        "['a', 'b'].join('-') == 'a-b' && 'ABC'.lowerAscii() == 'abc'",
        "'tacocat'.indexOf('ac') == 1 && 'tacocat'.lastIndexOf('a') == 5",
        "'tacocat'.substring(1, 4) == 'aco' && 'abc'.charAt(1) == 'b'",
        "'hello hello'.replace('he', 'we', 1) == 'wello hello' && ' a '.trim() == 'a'",
        "'%s is %d, %.2f %x %s'.format(['a', 3, 1.5, 255, [1, 2]]) == 'a is 3, 1.50 ff [1, 2]'",
        "strings.quote('a\"b') == '\"a\\\\\"b\"'",
        "'abc123'.find('[0-9]+') == '123' && 'a1b2'.findAll('[0-9]') == ['1', '2']",
        "'a1b2'.findAll('[0-9]', 1) == ['1']",
        "[1, 2, 2].isSorted() && ![2, 1].isSorted() && [3, 1].min() == 1 && [3, 1].max() == 3",
        "[1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2 && ['a'].indexOf('b') == -1",
        "sets.contains([1, 2], [2]) && sets.equivalent([1, 2], [2, 1, 1])",
        "!sets.intersects([1], [2])",
        "quantity('1Gi').isGreaterThan(quantity('1000Mi')) && !isQuantity('1x')",
        "quantity('500m').add(quantity('500m')) == quantity('1')",
        "quantity('50k').sub(20000).asInteger() == 30000 && !quantity('1m').isInteger()",
        "quantity('1500m').asApproximateFloat() == 1.5 && quantity('-1').sign() == -1",
        "quantity('1').compareTo(quantity('2')) == -1",
        "isURL('https://example.com') && !isURL('nope')",
        "url('https://user@example.com:80/a b?x=1&x=2').getHost() == 'example.com:80' || true",
        "url('https://[::1]:80/p').getHostname() == '::1'",
        "url('https://example.com:80/p?x=1&x=2').getQuery()['x'] == ['1', '2']",
        "url('/path').getEscapedPath() == '/path' && url('https://a').getPort() == ''",
        "ip('10.0.0.1').family() == 4 && ip('::1').isLoopback() && isIP('1.2.3.4')",
        "!isIP('1.2.3') && ip.isCanonical('::1') && !ip.isCanonical('0:0::1')",
        "ip('10.0.0.1').isGlobalUnicast() && !ip('127.0.0.1').isGlobalUnicast()",
        "cidr('10.0.0.0/8').containsIP('10.1.2.3') && !isCIDR('10.0.0.0')",
        "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')",
        "cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8')",
        "cidr('10.1.2.3/8').prefixLength() == 8 && cidr('10.1.2.3/8').ip() == ip('10.1.2.3')",
        "format.dns1123Label().validate('Bad').hasValue()",
        "!format.named('dns1123Label').value().validate('good').hasValue()",
        "true || self.items[9].v == 1",
        "self.items[9].v == 1 || true",
        "!(self.items[9].v == 1 && false)",
        "self.paused ? 1 / 0 == 1 : true",
        "[1, ?optional.none()].size() == 1 && {?'a': optional.of(1)}.size() == 1",
        "{'a': 1, 'b': 2}.map(k, k).size() == 2",
    ],
)  # fmt: skip
def test_kubernetes_expressions_hold(text: str) -> None:
    assert computed(text) is True


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("self.foo", "undefined field 'foo'"),
        ("self.name + 1", "found no matching overload for '_+_' applied to '(string, int)'"),
        (
            "self.replicas == 'a'",
            "found no matching overload for '_==_' applied to '(int, string)'",
        ),
        ("self.replicas == null", "applied to '(int, null_type)'"),
        ("self.name.nope()", "undeclared reference to 'nope' (in container '')"),
        ("nope", "undeclared reference to 'nope' (in container '')"),
        ("self.name && true", "applied to '(string, bool)'"),
        ("[1, 'a']", "expected type 'int' but found 'string'"),
        ("self.replicas.all(x, true)", "cannot be range of a comprehension"),
        ("self.name.x", "type 'string' does not support field selection"),
        ("self.", "Syntax error"),
        ("true ? 1 : 'a'", "applied to '(bool, int, string)'"),
        ("self.items.exists(i, i.nope)", "undefined field 'nope'"),
        ("optional.of(1).orValue('a')", "applied to 'optional_type(int).(string)'"),
        ("quantity('1') == 1", "applied to '(kubernetes.Quantity, int)'"),
        ("Foo{}", "undeclared reference to 'Foo'"),
    ],
)
def test_wrong_types_are_found_before_anything_runs(text: str, message: str) -> None:
    with pytest.raises(CompileError) as caught:
        computed(text)
    assert message in str(caught.value)


@pytest.mark.parametrize("text", ["1" + " + 1" * 5000 + " > 0", "(" * 5000 + "true" + ")" * 5000])
def test_expressions_nested_beyond_reason_are_refused(text: str) -> None:
    with pytest.raises(CompileError):
        computed(text)


def test_long_chains_of_conditions_are_accepted() -> None:
    assert computed(" || ".join(f"self.replicas == {n}" for n in range(100, 2, -1))) is True
    assert computed(" + ".join(["1"] * 30) + " == 30") is True


def test_a_complaint_shows_the_place() -> None:
    with pytest.raises(CompileError) as caught:
        computed("true &&\n  self.foo")
    assert str(caught.value) == (
        "ERROR: <input>:2:7: undefined field 'foo'\n |   self.foo\n | ......^"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("self.items[5].v == 1", "index out of bounds: 5"),
        ("self.labels['zone'] == ''", "no such key: zone"),
        ("1 / (self.replicas - 3) == 1", "division by zero"),
        ("1 % (self.replicas - 3) == 1", "modulus by zero"),
        ("9223372036854775807 + self.replicas == 1", "integer overflow"),
        ("2u - 3u == 1u", "unsigned integer overflow"),
        ("self.name.matches('(')", "error parsing regexp"),
        ("int(self.name) == 1", "type conversion error from 'string' to 'int'"),
        ("optional.none().value() == 1", "optional.none() dereference"),
        ("self.port.startsWith('a')", "no such overload"),
        ("timestamp('no').getHours() == 1", "type conversion error from 'string' to 'timestamp'"),
        ("'abc'.charAt(9) == ''", "index out of range: 9"),
        ("[1].filter(x, x > 1).min() == 1", "min called on empty list"),
        ("{'a': 1, self.name.substring(3) + 'a': 2}.size() == 1", "Failed with repeated key: a"),
        ("ip('nope').family() == 4", 'IP Address "nope" parse error'),
    ],
)
def test_errors_at_run_time_speak_as_cel_go_does(text: str, message: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        computed(text)
    assert message in str(caught.value)


def test_a_loop_that_costs_too_much_is_stopped() -> None:
    value = {"items": [{"name": "x", "v": 1}] * 2000}
    with pytest.raises(CostExceeded):
        computed("self.items.all(i, self.items.all(j, i.v == j.v))", value)


def test_the_estimate_grows_with_the_declared_sizes() -> None:
    assert SELF is not None
    small = compile_expression("self.items.all(i, i.v > 0)", {"self": SELF})
    nested = compile_expression("self.items.all(i, self.items.all(j, j.v > i.v))", {"self": SELF})
    endless = compile_expression("self.labels.all(k, self.labels.all(l, k == l))", {"self": SELF})
    assert small.worst < nested.worst < 10_000_000 < endless.worst


def test_only_the_fields_a_rule_reads_are_named() -> None:
    assert SELF is not None
    variables = {"self": SELF, "oldSelf": SELF}
    assert compile_expression("self.a__dash__b == ''", variables).reads == frozenset({"a-b"})
    assert compile_expression("self.?name.hasValue()", variables).reads == frozenset({"name"})
    assert compile_expression("self == oldSelf", variables).reads is None
    assert compile_expression("self.name == oldSelf.name", variables).names == {"self", "oldSelf"}


# --- the CEL project's evaluator as a twin

_ENVIRONMENT = cel.NewEnv(
    variables={"self": cel.Type.DYN},
    extensions=[ext_strings.ExtStrings(), ext_optional.ExtOptional(), ext_bindings.ExtBindings()],
)

_integers = st.sampled_from(["0", "1", "-3", "7", "self.n", "self.m", "size(self.s)", "self.l[0]"])
_strings = st.sampled_from(["''", "'a'", "self.s", "'aXb'", "self.k.x"])
_lists = st.sampled_from(["[]", "[1, 2]", "self.l", "[self.n]"])


def _binary(operators: str, parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(
        lambda left, operator, right: f"({left} {operator} {right})",
        parts,
        st.sampled_from(operators.split()),
        parts,
    )


_numbers = st.recursive(_integers, lambda inner: _binary("+ - * / %", inner), max_leaves=4)
_texts = st.recursive(
    _strings,
    lambda inner: (
        _binary("+", inner)
        | inner.map(lambda text: f"{text}.upperAscii()")
        | inner.map(lambda text: f"{text}.replace('a', 'bb')")
        | inner.map(lambda text: f"{text}.trim()")
    ),
    max_leaves=3,
)
_truths = st.recursive(
    st.one_of(
        _binary("< <= > >= == !=", _numbers),
        _binary("< == !=", _texts),
        st.builds(lambda number, items: f"{number} in {items}", _numbers, _lists),
        st.builds(lambda text, part: f"{text}.contains({part})", _texts, _texts),
        st.builds(lambda text: f"{text}.matches('^a.*b$')", _texts),
        st.builds(lambda items, number: f"{items}.all(x, x < {number})", _lists, _numbers),
        st.builds(lambda items, number: f"{items}.exists(x, x == {number})", _lists, _numbers),
        st.builds(lambda items: f"{items}.map(x, x * 2).size() > 1", _lists),
        st.builds(lambda items: f"{items}.filter(x, x > 1) == [2]", _lists),
        st.just("has(self.k.x)"),
        st.just("has(self.k.zzz)"),
        st.just("self.?zzz.hasValue()"),
    ),
    lambda inner: st.one_of(
        _binary("&& ||", inner.map(lambda text: f"({text})")),
        inner.map(lambda text: f"!({text})"),
        st.builds(lambda a, b, c: f"(({a}) ? ({b}) : ({c}))", inner, inner, inner),
    ),
    max_leaves=5,
)


def _ours(text: str, value: dict[str, Any]) -> Any:
    try:
        program = compile_expression(text, {"self": DYN})
        return program.run({"self": value, COST: 1_000_000})
    except EvaluationError:
        return "error"


def _theirs(text: str, value: dict[str, Any]) -> Any:
    result = _ENVIRONMENT.compile(text).eval(data={"self": value})
    return "error" if result.type() == cel.Type.ERROR else result.value()


@settings(max_examples=80, deadline=None)
@given(
    _truths,
    st.fixed_dictionaries(
        {
            "n": st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-3, 3),
            "m": st.integers(-3, 3),
            "s": st.text(alphabet="abX ", max_size=4),
            "l": st.lists(st.integers(-3, 3), max_size=3),
            "k": st.fixed_dictionaries({}, optional={"x": st.text(alphabet="ab", max_size=2)}),
        }
    ),
)
def test_both_evaluators_agree(text: str, value: dict[str, Any]) -> None:
    assert _ours(text, value) == _theirs(text, value)


def test_null_may_be_compared_with_what_is_not_simple() -> None:
    assert computed("format.dns1123Label().validate('a') == null") is False
    assert computed("self.items[0] != null && quantity('1') != null") is True


def test_keys_of_maps_count_as_free_in_estimates() -> None:
    assert SELF is not None
    keys = compile_expression("self.labels.all(k, k.split('/')[0].size() < 253)", {"self": SELF})
    values = compile_expression("self.labels.all(k, self.labels[k].matches('a'))", {"self": SELF})
    assert keys.worst * 1000 < values.worst


def test_not_a_number_is_not_itself() -> None:
    assert computed("0.0 / 0.0 == 0.0 / 0.0") is False
    assert math.isnan(computed("0.0 / 0.0"))


def test_an_optional_old_self_is_an_optional() -> None:
    assert SELF is not None
    variables = {"self": SELF, "oldSelf": CelType("optional", (SELF,))}
    program = compile_expression(
        "oldSelf.hasValue() ? oldSelf.value().replicas <= self.replicas : true", variables
    )
    scope = {"self": VALUE, "oldSelf": Optional_(VALUE), COST: 100}
    assert program.run(scope) is True


_tokens = st.sampled_from(
    [
        "self", ".", "name", "items", "(", ")", "[", "]", "{", "}", "==", "<", "+", "-", "&&", "||",
        "!", "?", ":", ",", "1", "1u", "1.5", "'a'", "b'a'", "true", "null", "in", ".all(", "i",
        ".map(",
        ".size()", ".?", "optional", ".of(", "has(", "dyn(", "replicas", "port", "labels", "int(",
        "timestamp(", ".sum()", ".format(", "quantity(", "\n", "x.y", "cel.bind(",
    ]
)  # fmt: skip


@settings(max_examples=80, deadline=None)
@given(st.lists(_tokens, max_size=12).map("".join) | st.text(max_size=10))
def test_any_text_compiles_or_is_refused_and_runs_or_fails(text: str) -> None:
    try:
        computed(text)
    except (CompileError, EvaluationError, CostExceeded):
        return
