"""Terms say what selectors say."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skerry.api.objects import Object
from skerry.logic.fleet.placement.terms import (
    Term,
    contradictions,
    failing,
    matches,
    read_selector,
    terms_of,
)
from skerry.logic.machinery.selectors import Selector
from tests.kit.chain.building import expression, labels, selectors

_terms = st.builds(
    Term,
    st.frozensets(st.sampled_from("abc"), max_size=3),
    st.booleans(),
    st.booleans(),
)
_value = st.one_of(st.none(), st.sampled_from("abcd"))


@given(selectors, labels)
def test_terms_match_exactly_what_the_selector_matches(
    selector: Object, present: dict[str, str]
) -> None:
    terms = read_selector(selector, "spec").terms
    assert terms is not None
    wanted = Selector.from_label_selector(selector).matches(present)
    assert matches(terms, present) == wanted
    assert bool(failing(terms, present)) != wanted


@given(_terms, _terms, _value)
def test_the_conjunction_of_terms_admits_what_both_admit(
    one: Term, other: Term, value: str | None
) -> None:
    assert (one & other).admits(value) == (one.admits(value) and other.admits(value))


@given(_terms)
def test_an_impossible_term_admits_nothing_and_only_it(term: Term) -> None:
    admits = any(term.admits(value) for value in (None, "a", "b", "c", "unheard-of"))
    assert term.impossible != admits


@given(_terms, _terms, _terms)
def test_conjunction_is_associative_and_commutative(one: Term, two: Term, three: Term) -> None:
    assert (one & two) & three == one & (two & three)
    assert one & two == two & one
    assert one & one == one


def test_equal_demands_are_equal_however_they_are_written() -> None:
    plain = read_selector({"matchLabels": {"env": "a"}}, "")
    spelt = read_selector(expression("env", "In", "a"), "")
    assert plain == spelt


def test_a_missing_selector_matches_nothing_and_an_empty_one_everything() -> None:
    assert read_selector(None, "").terms is None
    assert terms_of(Selector(nothing=True)) is None
    assert read_selector({}, "").terms == ()


def test_a_contradiction_names_its_key() -> None:
    selector = {
        "matchLabels": {"env": "a", "tier": "b"},
        "matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["a"]}],
    }
    terms = read_selector(selector, "").terms
    assert terms is not None
    assert contradictions(terms) == ["env"]


def test_an_invalid_selector_is_reported_by_its_field() -> None:
    read = read_selector(expression("env", "In"), "spec.locationSelectors[0]")
    assert read.terms is None
    field = "spec.locationSelectors[0].matchExpressions[0].values"
    text = "Required value: must be specified when `operator` is 'In' or 'NotIn'"
    assert read.errors == (f"{field}: {text}",)


def test_something_that_is_no_selector_at_all_is_reported() -> None:
    read = read_selector([1], "spec.x")  # type: ignore[arg-type]
    assert read.errors[0].startswith("spec.x: not a label selector")


def test_terms_are_readable() -> None:
    shown = {
        str(term)
        for selector in (
            expression("k", "In", "b", "a"),
            expression("k", "NotIn", "a"),
            expression("k", "Exists"),
            expression("k", "DoesNotExist"),
        )
        for _, term in read_selector(selector, "").terms or ()
    }
    assert shown == {"in (a,b)", "notin (a)", "exists", "does not exist"}
    both = Term(frozenset("a"), complement=True, absent=False)
    assert str(both) == "exists and notin (a)"
    assert str(Term(frozenset("a"), complement=False, absent=True)) == "in (a) or is absent"
    assert str(Term(frozenset(), complement=True, absent=True)) == "is anything"
