"""Rules when a definition is written: compiled, costed, and matched with what was before."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.schema import Schema
from skerry.logic.machinery.crd.rules import TEXT_LIMIT, RuleChecks, field_path_valid

LONG_LIST: dict[str, Any] = {"type": "array", "items": {"type": "string"}}


def checks(
    rule: dict[str, Any],
    *,
    uncorrelated: str = "",
    cardinality: int | None = 1,
    limit: bool = True,
    **raw: Any,
) -> RuleChecks:
    schema = Schema({"type": "string", "maxLength": 10, **raw, "x-kubernetes-validations": [rule]})
    made = RuleChecks(limit_expressions=limit)
    made.check(schema, "s", False, cardinality, uncorrelated)
    return made


def wrong(rule: dict[str, Any], **options: Any) -> list[str]:
    return [str(error) for error in checks(rule, **options).errors]


def test_a_good_rule_is_fine() -> None:
    assert wrong({"rule": "self == 'a'", "messageExpression": "'not ' + self"}) == []


def test_a_rule_that_does_not_compile_is_shown_as_go_would() -> None:
    (text,) = wrong({"rule": 'self == "a" &&', "message": "m"})
    assert text.startswith(
        's.x-kubernetes-validations[0].rule: Invalid value: apiextensions.ValidationRule{Rule:"'
        'self == \\"a\\" &&", Message:"m", MessageExpression:""'
    )
    (text,) = wrong({"rule": "self == 'a'", "messageExpression": "1"})
    assert text.startswith("s.x-kubernetes-validations[0].messageExpression: Invalid value")


def test_a_rule_that_may_cost_too_much_is_refused_unless_it_was_there_before() -> None:
    dear = {"rule": "self.all(a, self.all(b, a.contains(b)))"}
    (text,) = wrong(dear, **LONG_LIST)
    assert "estimated rule cost exceeds budget" in text
    assert wrong(dear, limit=False, **LONG_LIST) == []


def test_a_rule_costs_as_often_as_its_node_can_occur() -> None:
    rule = {"rule": "self.contains('a')"}
    assert wrong(rule, cardinality=10) == []
    assert wrong(rule, cardinality=100_000_000) != []


def test_all_rules_together_have_a_limit_and_the_dearest_are_named() -> None:
    made = RuleChecks(limit_expressions=False)
    schema = Schema({**LONG_LIST, "x-kubernetes-validations": [
        {"rule": "self.all(a, self.all(b, a.contains(b)))"}]})  # fmt: skip
    for place in "abcdef":
        made.check(schema, place, False, 1, "")
    found = made.total_errors("root")
    assert len(found) == 5
    assert found[-1].field == "root"
    assert "estimated rule cost total for entire OpenAPIv3 schema" in found[-1].message
    assert checks({"rule": "self == 'a'"}).total_errors("root") == []


def test_the_text_of_all_rules_has_a_limit_and_is_not_compiled_beyond_it() -> None:
    made = RuleChecks()
    long = Schema(
        {"type": "string", "x-kubernetes-validations": [{"rule": "x" * TEXT_LIMIT + "x"}]}
    )
    made.check(long, "a", False, 1, "")
    made.check(long, "b", False, 1, "")
    (error,) = made.errors
    assert error.field == "a.x-kubernetes-validations"
    assert str(TEXT_LIMIT) in error.message


def test_a_former_value_is_there_only_where_it_can_be_found() -> None:
    rule = {"rule": "self == oldSelf"}
    assert wrong(rule) == []
    (text,) = wrong(rule, uncorrelated="s.items")
    assert text.endswith("uncorrelatable portion of the schema within s.items")


def test_a_rule_about_new_values_says_nothing_of_former_ones() -> None:
    (text,) = wrong({"rule": "self == 'a'", "optionalOldSelf": False})
    assert text.endswith("may not be set if oldSelf is not used in rule")
    assert wrong({"rule": "oldSelf.hasValue()", "optionalOldSelf": True}) == []


@pytest.mark.parametrize(
    ("path", "good"),
    [(".a", True), (" .a ", True), (".a.b", True), (".x", False), ("a", False), (".m['k']", True)],
)
def test_a_path_leads_somewhere(path: str, good: bool) -> None:
    schema = Schema(
        {"type": "object", "properties": {
            "a": {"type": "object", "properties": {"b": {"type": "string"}}},
            "m": {"type": "object", "additionalProperties": {"type": "string"}}}}
    )  # fmt: skip
    assert field_path_valid(path, schema) is good
