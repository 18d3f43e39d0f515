from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.kit.steps import finished
from skerry.logic.machinery.rbac.rules import (
    FULL_AUTHORITY,
    Rule,
    TooManyRights,
    compacted,
    escalation_message,
    rules_of,
    uncovering,
)
from tests.kit.counting import growth, steps

GET_PODS = Rule(("get",), ("",), ("pods",))


def uncovered(held: Sequence[Rule], wanted: Iterable[Rule]) -> list[Rule]:
    return finished(uncovering(held, wanted))


@pytest.mark.parametrize(
    ("rule", "asked", "allowed"),
    [
        (GET_PODS, ("get", "", "pods", "", "x"), True),
        (GET_PODS, ("list", "", "pods", "", ""), False),
        (GET_PODS, ("get", "apps", "pods", "", "x"), False),
        (GET_PODS, ("get", "", "pods", "status", "x"), False),
        (GET_PODS, ("get", "", "secrets", "", "x"), False),
        (Rule(("*",), ("*",), ("*",)), ("frob", "g", "r", "s", "n"), True),
        (Rule(("get",), ("",), ("pods/status",)), ("get", "", "pods", "status", "x"), True),
        (Rule(("get",), ("",), ("pods/status",)), ("get", "", "pods", "", "x"), False),
        (Rule(("get",), ("",), ("*/status",)), ("get", "", "pods", "status", "x"), True),
        (Rule(("get",), ("",), ("*/status",)), ("get", "", "pods", "scale", "x"), False),
        (Rule(("get",), ("",), ("pods/*",)), ("get", "", "pods", "status", "x"), False),
        (Rule(("get",), ("",), ("pods",), ("a",)), ("get", "", "pods", "", "a"), True),
        (Rule(("get",), ("",), ("pods",), ("a",)), ("get", "", "pods", "", "b"), False),
        (Rule(("list",), ("",), ("pods",), ("a",)), ("list", "", "pods", "", ""), False),
        (Rule((), ("",), ("pods",)), ("get", "", "pods", "", "x"), False),
        (Rule(("get",), (), ("pods",)), ("get", "", "pods", "", "x"), False),
    ],
)
def test_a_rule_allows_what_its_lists_name(
    rule: Rule, asked: tuple[str, str, str, str, str], allowed: bool
) -> None:
    assert rule.allows_resource(*asked) is allowed


@pytest.mark.parametrize(
    ("urls", "path", "allowed"),
    [
        (("/healthz",), "/healthz", True),
        (("/healthz",), "/healthz/ping", False),
        (("/healthz/*",), "/healthz/ping", True),
        (("/healthz/*",), "/healthz", False),
        (("/api*",), "/apis/apps", True),
        (("*",), "/anything", True),
        ((), "/healthz", False),
    ],
)
def test_a_trailing_star_covers_all_paths_below(
    urls: tuple[str, ...], path: str, allowed: bool
) -> None:
    assert Rule(("get",), non_resource_urls=urls).allows_path("get", path) is allowed


def test_a_rule_survives_the_way_through_an_object() -> None:
    rule = Rule(("get",), ("", "apps"), ("pods",), ("a",), ())
    assert Rule.of(rule.to_object()) == rule
    assert Rule.of({}) == Rule()


def test_the_denial_of_escalation_is_worded_as_in_kubernetes() -> None:
    wanted = [Rule(("get", "list"), ("", "apps"), ("pods",)), Rule(("get",), ("",), ("x",), ("n",))]
    missing = uncovered([Rule(("get", "list"), ("",), ("pods",))], wanted)
    assert escalation_message("bob", ["system:authenticated"], missing) == (
        'user "bob" (groups=["system:authenticated"]) is attempting to grant RBAC permissions '
        "not currently held:\n"
        '{APIGroups:[""], Resources:["x"], ResourceNames:["n"], Verbs:["get"]}\n'
        '{APIGroups:["apps"], Resources:["pods"], Verbs:["get" "list"]}'
    )


@pytest.mark.parametrize(
    ("held", "wanted", "covered"),
    [
        (GET_PODS, GET_PODS, True),
        (Rule(("get",), ("",), ("*",)), Rule(("get",), ("",), ("pods/log",)), True),
        (Rule(("get",), ("",), ("*/log",)), Rule(("get",), ("",), ("pods/log",)), True),
        (Rule(("get",), ("",), ("pods",)), Rule(("get",), ("",), ("*",)), False),
        (Rule(("get",), ("",), ("pods",)), Rule(("*",), ("",), ("pods",)), False),
        (Rule(("get",), ("",), ("pods",), ("a",)), GET_PODS, False),
        (GET_PODS, Rule(("get",), ("",), ("pods",), ("a",)), True),
        (
            Rule(("get",), ("",), ("pods",), ("a", "b")),
            Rule(("get",), ("",), ("pods",), ("b",)),
            True,
        ),
        (
            Rule(("get",), non_resource_urls=("/a/*",)),
            Rule(("get",), non_resource_urls=("/a/b", "/a/*")),
            True,
        ),
        (
            Rule(("get",), non_resource_urls=("/a/*",)),
            Rule(("get",), non_resource_urls=("*",)),
            False,
        ),
    ],
)
def test_who_holds_a_rule_may_grant_what_it_covers(held: Rule, wanted: Rule, covered: bool) -> None:
    assert (uncovered([held], [wanted]) == []) is covered


WORDS = st.sampled_from(["*", "a", "b", "c"])
LISTS = st.lists(WORDS, max_size=3, unique=True).map(tuple)
RESOURCES = st.lists(
    st.sampled_from(["*", "a", "b", "a/s", "b/s", "*/s"]), max_size=3, unique=True
).map(tuple)
RULES = st.builds(
    Rule,
    verbs=LISTS,
    api_groups=LISTS,
    resources=RESOURCES,
    resource_names=st.lists(st.sampled_from(["m", "n"]), max_size=1).map(tuple),
    non_resource_urls=st.lists(st.sampled_from(["*", "/a", "/a/*", "/a/b"]), max_size=2).map(tuple),
)


@given(st.lists(RULES, max_size=4))
def test_everybody_may_grant_what_they_hold(rules: list[Rule]) -> None:
    assert uncovered(rules, rules) == []
    assert uncovered(FULL_AUTHORITY, rules) == []


@given(
    held=st.lists(RULES, max_size=4),
    wanted=RULES,
    asked=st.tuples(
        st.sampled_from("abc"),
        st.sampled_from("abc"),
        st.sampled_from("ab"),
        st.sampled_from(["", "s"]),
        st.sampled_from(["", "m", "n", "o"]),
    ),
)
def test_covered_rules_allow_nothing_that_was_not_allowed_before(
    held: list[Rule], wanted: Rule, asked: tuple[str, str, str, str, str]
) -> None:
    if not uncovered(held, [wanted]) and wanted.allows_resource(*asked):
        assert any(rule.allows_resource(*asked) for rule in held)


@given(st.lists(RULES, max_size=4))
def test_compacting_changes_nothing_that_is_granted(rules: list[Rule]) -> None:
    assert uncovered(compacted(rules), rules) == []
    assert uncovered(rules, compacted(rules)) == []


MANY = tuple(f"w{i}" for i in range(1000))


def test_a_rule_of_a_thousand_million_rights_is_compared_at_once() -> None:
    everything = Rule(("*",), ("*",), ("*",))
    wanted = Rule(MANY, MANY, MANY)
    assert uncovered([everything], [wanted]) == []
    assert steps(lambda: uncovered([everything], [wanted])) < 200_000


def test_of_very_many_missing_rights_the_first_are_reported() -> None:
    missing = uncovered([Rule(MANY[:5], ("*",), ("*",))], [Rule(MANY, MANY, MANY)])
    assert len(missing) == 100
    assert missing[0] == Rule(("w5",), ("w0",), ("w0",))


def test_rules_that_stand_for_too_many_different_rights_are_refused() -> None:
    held = [Rule((w,), (w,), (w,)) for w in MANY[:100]]
    with pytest.raises(TooManyRights, match="more than 10000"):
        uncovered(held, [Rule(MANY, MANY, MANY)])


def paths(*urls: str) -> Rule:
    return Rule(("get",), non_resource_urls=urls)


def test_paths_that_are_compared_with_too_many_patterns_are_refused() -> None:
    held = [paths("/" * length + "*") for length in range(500)]
    with pytest.raises(TooManyRights, match="more than 100000 patterns"):
        uncovered(held, [paths("/" * 500 + str(i)) for i in range(400)])


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (
            {"verbs": ["get"], "apiGroups": None, "resources": ["pods"]},
            Rule(("get",), (), ("pods",)),
        ),
        ({"verbs": ["*"], "nonResourceURLs": ["/a", 7]}, Rule()),
        ("all of it", Rule()),
    ],
)
def test_what_cannot_be_read_in_a_rule_grants_nothing(written: Any, read: Rule) -> None:
    assert rules_of({"rules": [written, {"verbs": ["list"]}]}) == (read, Rule(("list",)))


def test_a_role_without_rules_has_none() -> None:
    assert rules_of({"rules": None}) == rules_of({}) == ()


@pytest.mark.parametrize(
    "rules",
    [
        lambda n: ([Rule(("*",), ("*",), ("*",))], [Rule(MANY[:n], MANY[:n], MANY[:n])]),
        lambda n: ([Rule(("get",), ("",), (word,)) for word in MANY[:n]], [GET_PODS]),
        lambda n: ([GET_PODS], [GET_PODS] * n),
        lambda n: ([Rule(("get",), ("",), ("pods",), MANY[:n])], [GET_PODS] * n),
        lambda n: ([paths(f"/{w}/*") for w in MANY[:n]], [paths(f"/{w}/a") for w in MANY[:n]]),
    ],
)
def test_comparing_takes_work_in_proportion_to_what_is_written(
    rules: Callable[[int], tuple[list[Rule], list[Rule]]],
) -> None:
    assert growth(lambda n: partial(uncovered, *rules(n)), 400) < 2.3


@pytest.mark.parametrize("name", ["", "/", "*"])
def test_no_name_stands_for_every_name(name: str) -> None:
    held = Rule(("get",), ("",), ("pods",), (name,))
    assert uncovered([held], [Rule(("get",), ("",), ("pods",))])
    assert uncovered([held], [Rule(("get",), ("",), ("pods",), ("other",))])
    assert not uncovered([held], [held])
