"""Selectors: their grammar, their refusals, and what they match."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.machinery.selectors import (
    FieldSelector,
    FieldTerm,
    Requirement,
    Selector,
    SelectorError,
)

KEYS = st.sampled_from(["app", "tier", "in", "notin", "example.com/zone", "n"])
VALUES = st.sampled_from(["", "a", "b", "in", "1", "2", "x_y.z"])
INTEGERS = st.integers(-9, 9).filter(lambda n: n >= 0).map(str)


def requirements() -> st.SearchStrategy[Requirement]:
    single = st.builds(
        lambda key, operator, value: Requirement(key, operator, (value,)),
        KEYS,
        st.sampled_from(["=", "==", "!="]),
        VALUES,
    )
    many = st.builds(
        lambda key, operator, values: Requirement(key, operator, tuple(sorted(values))),
        KEYS,
        st.sampled_from(["in", "notin"]),
        st.sets(VALUES, min_size=1, max_size=3),
    )
    unary = st.tuples(KEYS, st.sampled_from(["exists", "!"])).map(lambda pair: Requirement(*pair))
    ordered = st.builds(
        lambda key, operator, value: Requirement(key, operator, (value,)),
        KEYS,
        st.sampled_from(["gt", "lt"]),
        INTEGERS,
    )
    return st.one_of(single, many, unary, ordered)


SELECTORS = st.lists(requirements(), max_size=4).map(Selector)
LABELS = st.dictionaries(KEYS, VALUES, max_size=4)


def satisfied(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    """A plain reading of the API documentation."""
    key, operator, values = requirement
    present = key in labels
    if operator in ("=", "==", "in"):
        return present and labels[key] in values
    if operator in ("!=", "notin"):
        return not present or labels[key] not in values
    if operator == "exists":
        return present
    if operator == "!":
        return not present
    if not present or not labels[key].isdigit():
        return False
    number, limit = int(labels[key]), int(values[0])
    return number > limit if operator == "gt" else number < limit


@given(SELECTORS)
def test_a_selector_written_and_read_again_is_the_same(selector: Selector) -> None:
    assert Selector.parse(str(selector)) == selector


@given(SELECTORS, LABELS)
def test_matching_agrees_with_a_plain_reading(selector: Selector, labels: dict[str, str]) -> None:
    assert selector.matches(labels) == all(
        satisfied(requirement, labels) for requirement in selector.requirements
    )


@given(st.text(max_size=30))
def test_any_text_parses_or_is_refused(text: str) -> None:
    try:
        selector = Selector.parse(text)
    except SelectorError:
        return
    assert Selector.parse(str(selector)) == selector


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("", ""),
        (" a = b ", "a=b"),
        ("z,a", "a,z"),
        ("x in (foo,,baz),y,z notin ()", "x in (,baz,foo),y,z notin ()"),
        ("x in (,)", "x in ()"),
        ("a=,b", "a=,b"),
        ("a!=", "a!="),
        ("!a", "!a"),
        ("a>3,b<4", "a>3,b<4"),
        ("in in (in)", "in in (in)"),
    ],
)
def test_the_grammar_is_read_as_kubernetes_reads_it(text: str, written: str) -> None:
    assert str(Selector.parse(text)) == written


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("=a", "found '=', expected: !, identifier, or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in (=)", "unable to parse requirement: found '=', expected: ',', ')' or identifier"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in (b,=", "unable to parse requirement: found '=', expected: ',', or identifier"),
        ("a=!b", "unable to parse requirement: found '!', expected: identifier"),
        (
            "a gt 3",
            "unable to parse requirement: found 'gt', expected: in, notin, =, ==, !=, gt, lt",
        ),
        (
            "a>b",
            (
                'unable to parse requirement: values[0]: Invalid value: "b": '
                "for 'Gt', 'Lt' operators, the value must be an integer"
            ),
        ),
    ],
)
def test_bad_selectors_are_refused_in_the_words_of_kubernetes(text: str, message: str) -> None:
    with pytest.raises(SelectorError) as caught:
        Selector.parse(text)
    assert str(caught.value) == message


def test_bad_keys_and_values_are_named() -> None:
    with pytest.raises(SelectorError, match="unable to parse requirement: <nil>: Invalid value"):
        Selector.parse("a$b=c")
    with pytest.raises(SelectorError, match=r"values\[0\]\[a\]: Invalid value: \"b%\""):
        Selector.parse("a=b%")
    with pytest.raises(SelectorError, match=r"requirement: \[values\[0\]: .*, values\[0\]\[a\]: "):
        Selector.parse("a>b%")


def test_a_missing_label_selector_matches_nothing_and_an_empty_one_everything() -> None:
    assert not Selector.from_label_selector(None).matches({})
    assert Selector.from_label_selector({}).matches(None)
    assert Selector.from_label_selector({}).empty
    assert not Selector.from_label_selector(None).empty
    assert Selector.from_label_selector(None) != Selector()


def test_a_label_selector_object_is_the_conjunction_of_its_parts() -> None:
    selector = Selector.from_label_selector(
        {
            "matchLabels": {"app": "web"},
            "matchExpressions": [
                {"key": "tier", "operator": "In", "values": ["b", "a"]},
                {"key": "old", "operator": "DoesNotExist"},
            ],
        }
    )
    assert str(selector) == "app=web,!old,tier in (a,b)"
    assert selector.matches({"app": "web", "tier": "a"})
    assert not selector.matches({"app": "web", "tier": "a", "old": ""})


def test_a_bad_label_selector_object_names_its_fields() -> None:
    with pytest.raises(SelectorError) as caught:
        Selector.from_label_selector(
            {
                "matchLabels": {"a": "b c"},
                "matchExpressions": [
                    {"key": "k", "operator": "In"},
                    {"key": "k", "operator": "Exists", "values": ["v"]},
                    {"key": "-", "operator": "Near", "values": ["v w"]},
                ],
            },
            "spec.selector",
        )
    assert [error.field for error in caught.value.errors] == [
        "spec.selector.matchLabels",
        "spec.selector.matchExpressions[0].values",
        "spec.selector.matchExpressions[1].values",
        "spec.selector.matchExpressions[2].operator",
        "spec.selector.matchExpressions[2].key",
        "spec.selector.matchExpressions[2].values[0]",
    ]


def test_a_plain_map_selects_by_equality() -> None:
    assert str(Selector.from_labels({"b": "1", "a": "2"})) == "a=2,b=1"
    assert Selector.from_labels(None).empty


@pytest.mark.parametrize("label", ["9" * 30, "x", ""])
def test_a_label_that_is_no_integer_satisfies_no_order(label: str) -> None:
    assert not Selector.parse("n>1").matches({"n": label})
    assert not Selector.parse("n<1").matches({"n": label})


@given(
    st.lists(
        st.builds(
            FieldTerm,
            st.sampled_from(["metadata.name", "spec.nodeName"]),
            st.sampled_from(["=", "!="]),
            st.text(max_size=8),
        ),
        max_size=3,
    )
)
def test_a_field_selector_written_and_read_again_says_the_same(terms: list[FieldTerm]) -> None:
    selector = FieldSelector.parse(str(FieldSelector(terms)))
    assert sorted(selector.terms) == sorted(terms)
    assert FieldSelector.parse(str(selector)) == selector


def test_field_selectors_compare_text() -> None:
    selector = FieldSelector.parse("metadata.name==web,status.phase!=Running")
    fields = {"metadata.name": "web", "status.phase": "Pending"}
    assert selector.matches(lambda field: fields.get(field, ""))
    assert selector.exact("metadata.name") == "web"
    assert selector.exact("status.phase") is None
    fields["status.phase"] = "Running"
    assert not selector.matches(lambda field: fields.get(field, ""))
    assert FieldSelector.parse("").empty
    assert FieldSelector.parse(",,").matches(str)


def test_escapes_in_field_values_stand_for_themselves() -> None:
    assert FieldSelector.parse(r"a=b\,c\=d\\").terms == (("a", "=", "b,c=d\\"),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a", "invalid selector: 'a'; can't understand 'a'"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
        (r"a=\x", r"invalid field selector: invalid escape sequence: \x"),
        ("a=b\\", "invalid field selector: invalid escape sequence: \\"),
    ],
)
def test_bad_field_selectors_are_refused(text: str, message: str) -> None:
    with pytest.raises(SelectorError) as caught:
        FieldSelector.parse(text)
    assert str(caught.value) == message
