"""Extensions of CEL that Kubernetes has: strings, formats, optionals, sets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.machinery.cel.typed import CostExceeded
from tests.kit.machinery.expressions import complaint, computed

TEXT = st.text(alphabet="abä", max_size=8)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'äbc'.charAt(0)", "ä"),
        ("'abc'.charAt(3)", ""),
        ("'abab'.indexOf('b')", 1),
        ("'abab'.indexOf('b', 2)", 3),
        ("'abab'.indexOf('x')", -1),
        ("'abab'.lastIndexOf('ab')", 2),
        ("'abab'.lastIndexOf('ab', 1)", 0),
        ("'abab'.lastIndexOf('x')", -1),
        # Letters outside ASCII stay as they are.
        ("'ÄbC'.lowerAscii()", "Äbc"),
        ("'äbC'.upperAscii()", "äBC"),
        ("'  a '.trim()", "a"),
        ("'abc'.reverse()", "cba"),
        ("'aaa'.replace('a', 'b', 2)", "bba"),
        ("'aaa'.replace('a', 'b')", "bbb"),
        ("'aaa'.replace('a', 'b', 0)", "aaa"),
        ("'a,b,c'.split(',')", ["a", "b", "c"]),
        ("'a,b,c'.split(',', 2)", ["a", "b,c"]),
        ("'a,b,c'.split(',', 0)", []),
        ("'abc'.split('')", ["a", "b", "c"]),
        ("'abc'.split('', 2)", ["a", "bc"]),
        ("'abc'.substring(1)", "bc"),
        ("'abc'.substring(1, 2)", "b"),
        ("['a', 'b'].join('-')", "a-b"),
        ("['a', 'b'].join()", "ab"),
        ("strings.quote('a\"\\n')", '"a\\"\\n"'),
    ],
)
def test_strings(text: str, value: object) -> None:
    assert computed(text) == value


@pytest.mark.parametrize(
    "text", ["'a'.charAt(2)", "'a'.indexOf('a', 2)", "'a'.substring(-1)", "'a'.lastIndexOf('a', 3)"]
)
def test_positions_outside_the_text_are_errors(text: str) -> None:
    assert complaint(text).startswith("index out of range")


def test_a_substring_does_not_run_backwards() -> None:
    assert complaint("'abc'.substring(2, 1)") == "invalid substring range. start: 2, end: 1"


@given(TEXT, TEXT)
def test_searches_agree_with_pythons(text: str, part: str) -> None:
    assert computed("a.indexOf(b)", a=text, b=part) == text.find(part)
    assert computed("a.lastIndexOf(b)", a=text, b=part) == text.rfind(part)


@given(TEXT, st.sampled_from(["a", "ab", "ä"]))
def test_what_is_split_can_be_joined(text: str, separator: str) -> None:
    assert computed("a.split(b).join(b)", a=text, b=separator) == text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'%s and %s'.format(['a', 1])", "a and 1"),
        ("'%d%%'.format([50])", "50%"),
        ("'%.2f'.format([1.555])", "1.55"),
        ("'%f'.format([1.5])", "1.500000"),
        ("'%.1e'.format([1234.0])", "1.2e+03"),
        ("'%b %b'.format([5, true])", "101 1"),
        ("'%o'.format([8])", "10"),
        ("'%x %X'.format([255, 'az'])", "ff 617A"),
        ("'%f'.format([0.0 / 0.0])", "NaN"),
        ("'%f'.format([-1.0 / 0.0])", "-Infinity"),
        ("'%s'.format([[1, 'a', null]])", "[1, a, null]"),
        ("'%s'.format([{'b': 1, 'a': true}])", "{a: true, b: 1}"),
        ("'%s'.format([duration('90s')])", "90s"),
        ("'%s'.format([timestamp('2024-01-01T00:00:00Z')])", "2024-01-01T00:00:00Z"),
        ("'%s'.format([type(1)])", "int"),
    ],
)
def test_formats(text: str, value: str) -> None:
    assert computed(text) == value


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("'%s'.format([])", "index out of range in format arguments"),
        ("'%q'.format([1])", "could not parse formatting clause"),
        ("'%'.format([1])", "could not parse formatting clause"),
        ("'%d'.format(['a'])", "error during formatting: verb %d cannot format string"),
        ("'%.999f'.format([1.0])", "precision 999: want at most 400"),
    ],
)
def test_formats_that_fit_nothing(text: str, why: str) -> None:
    assert complaint(text).startswith(why)


def test_a_result_far_longer_than_its_parts_is_paid_for() -> None:
    text = "a.replace('x', b)"
    assert len(computed(text, a="x" * 100, b="y" * 100)) == 10_000
    with pytest.raises(CostExceeded):
        computed(text, limit=900, a="x" * 100, b="y" * 100)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("optional.of(1).value()", 1),
        ("optional.of(1).hasValue()", True),
        ("optional.none().hasValue()", False),
        ("optional.ofNonZeroValue(0).hasValue()", False),
        ("optional.ofNonZeroValue('').hasValue()", False),
        ("optional.ofNonZeroValue([1]).hasValue()", True),
        ("optional.of([1, 2])[1].value()", 2),
        ("optional.of([1])[1].hasValue()", False),
        ("optional.of([1])[-1].hasValue()", False),
        ("optional.of({'a': 1})['a'].value()", 1),
        ("optional.of({'a': 1})['b'].hasValue()", False),
        ("sets.contains([1, 2, 2], [2])", True),
        ("sets.contains([1], [1, 2])", False),
        ("sets.equivalent([1, 2, 2], [2, 1])", True),
        ("sets.equivalent([1], [1, 2])", False),
        ("sets.intersects([1, 2], [2, 3])", True),
        ("sets.intersects([1], [])", False),
    ],
)
def test_optionals_and_sets(text: str, value: object) -> None:
    assert computed(text) == value


def test_nothing_has_no_value() -> None:
    assert complaint("optional.none().value()") == "optional.none() dereference"


@given(st.lists(st.integers(0, 3)), st.lists(st.integers(0, 3)))
def test_sets_agree_with_pythons(left: list[int], right: list[int]) -> None:
    one, other = set(left), set(right)
    assert computed("sets.contains(a, b)", a=left, b=right) == (one >= other)
    assert computed("sets.equivalent(a, b)", a=left, b=right) == (one == other)
    assert computed("sets.intersects(a, b)", a=left, b=right) == bool(one & other)
