"""Rules at the nodes of a schema: what they see, what they say, what they may cost."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.schema import Schema
from skerry.logic.machinery.cel import check_rules, rules_of
from skerry.logic.machinery.cel.cost import exceeded
from skerry.logic.machinery.cel.escaping import escaped
from skerry.logic.machinery.cel.field_paths import FieldPathError, rendered, resolved_path
from skerry.logic.machinery.work import LongWork, limited


def rule(text: str, **more: Any) -> dict[str, Any]:
    return {"rule": text, **more}


def spec_schema(*rules: dict[str, Any], **fields: Any) -> Schema:
    properties = {
        "replicas": {"type": "integer"},
        "max": {"type": "integer"},
        "name": {"type": "string"},
        **fields,
    }
    spec = {
        "type": "object",
        "properties": properties,
        "x-kubernetes-validations": list(rules),
    }
    return Schema({"type": "object", "properties": {"spec": spec}})


def errors(schema: Schema, spec: Any, old: Any = None) -> list[str]:
    former = None if old is None else {"spec": old}
    return [str(error) for error in check_rules(schema, {"spec": spec}, former)]


LIMIT = rule("self.replicas <= self.max")


def test_a_failed_rule_is_quoted() -> None:
    schema = spec_schema(LIMIT)
    assert errors(schema, {"replicas": 1, "max": 2}) == []
    assert errors(schema, {"replicas": 3, "max": 2}) == [
        'spec: Invalid value: "object": failed rule: self.replicas <= self.max'
    ]


def test_a_message_takes_the_place_of_the_rule() -> None:
    schema = spec_schema({**LIMIT, "message": " too many "})
    assert errors(schema, {"replicas": 3, "max": 2}) == ['spec: Invalid value: "object": too many']


def test_a_computed_message_wins_unless_it_fails() -> None:
    computed = {**LIMIT, "messageExpression": "'at most ' + string(self.max)", "message": "plain"}
    assert errors(spec_schema(computed), {"replicas": 3, "max": 2}) == [
        'spec: Invalid value: "object": at most 2'
    ]
    for useless in ("self.name", "''", "'a\\nb'"):
        broken = {**computed, "messageExpression": useless}
        assert errors(spec_schema(broken), {"replicas": 3, "max": 2}) == [
            'spec: Invalid value: "object": plain'
        ]


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("FieldValueForbidden", "spec.replicas: Forbidden: no"),
        ("FieldValueRequired", "spec.replicas: Required value: no"),
        ("FieldValueDuplicate", 'spec.replicas: Duplicate value: "object"'),
        ("FieldValueInvalid", 'spec.replicas: Invalid value: "object": no'),
    ],
)
def test_reason_and_field_path_shape_the_error(reason: str, expected: str) -> None:
    made = {**LIMIT, "message": "no", "reason": reason, "fieldPath": ".replicas"}
    assert errors(spec_schema(made), {"replicas": 3, "max": 2}) == [expected]


def test_a_missing_field_is_an_error_of_the_rule() -> None:
    assert errors(spec_schema(LIMIT), {"replicas": 3}) == [
        'spec: Invalid value: "object": no such key: max evaluating rule: self.replicas <= self.max'
    ]


def test_rules_at_the_root_see_the_name_and_speak_of_no_field() -> None:
    schema = Schema(
        {
            "type": "object",
            "properties": {"spec": {"type": "object"}},
            "x-kubernetes-validations": [rule("self.metadata.name.startsWith('a')")],
        }
    )
    assert check_rules(schema, {"metadata": {"name": "abc"}}) == []
    assert [str(error) for error in check_rules(schema, {"metadata": {"name": "b"}})] == [
        "<nil>: Invalid value: \"object\": failed rule: self.metadata.name.startsWith('a')"
    ]


def test_transition_rules_wait_for_a_former_value() -> None:
    schema = spec_schema(rule("self.name == oldSelf.name", message="name is immutable"))
    assert errors(schema, {"name": "a"}) == []
    assert errors(schema, {"name": "a"}, {"name": "a"}) == []
    assert errors(schema, {"name": "b"}, {"name": "a"}) == [
        'spec: Invalid value: "object": name is immutable'
    ]


def test_an_optional_old_self_is_asked_on_create_too() -> None:
    made = rule("oldSelf.hasValue() || self.name == 'first'", optionalOldSelf=True)
    assert errors(spec_schema(made), {"name": "other"}) != []
    assert errors(spec_schema(made), {"name": "first"}) == []
    assert errors(spec_schema(made), {"name": "other"}, {"name": "first"}) == []


def _listed(list_type: str) -> Schema:
    items = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "v": {"type": "integer"}},
        "x-kubernetes-validations": [rule("self.v >= oldSelf.v")],
    }
    listed: dict[str, Any] = {"type": "array", "items": items, "x-kubernetes-list-type": list_type}
    if list_type == "map":
        listed["x-kubernetes-list-map-keys"] = ["name"]
    return spec_schema(items=listed)


def test_items_of_a_list_map_meet_their_former_selves_by_key() -> None:
    old = {"items": [{"name": "a", "v": 1}, {"name": "b", "v": 9}]}
    new = {"items": [{"name": "b", "v": 8}, {"name": "a", "v": 2}, {"name": "c", "v": 0}]}
    assert errors(_listed("map"), new, old) == [
        'spec.items[0]: Invalid value: "object": failed rule: self.v >= oldSelf.v'
    ]
    assert errors(_listed("atomic"), new, old) == []


def test_values_of_maps_meet_their_former_selves_by_key() -> None:
    values = {"type": "integer", "x-kubernetes-validations": [rule("self >= oldSelf")]}
    schema = spec_schema(counts={"type": "object", "additionalProperties": values})
    old, new = {"counts": {"a": 2, "b": 1}}, {"counts": {"a": 1, "b": 1, "c": 0}}
    assert errors(schema, new, old) == [
        'spec.counts[a]: Invalid value: "integer": failed rule: self >= oldSelf'
    ]


def test_what_was_wrong_and_is_untouched_is_forgiven_except_by_transition_rules() -> None:
    schema = spec_schema(
        LIMIT, more={"type": "integer", "x-kubernetes-validations": [rule("self > 5")]}
    )
    old = {"replicas": 3, "max": 2, "more": 1}
    assert errors(schema, old, old) == []
    assert errors(schema, {**old, "name": "new"}, old) == [
        'spec: Invalid value: "object": failed rule: self.replicas <= self.max'
    ]
    never = spec_schema(rule("oldSelf.name != self.name"))
    assert errors(never, {"name": "a"}, {"name": "a"}) != []


def test_times_bytes_and_numbers_are_what_the_schema_says() -> None:
    schema = spec_schema(
        rule("self.when > timestamp('2024-01-01T00:00:00Z')"),
        rule("self.wait < duration('1h')"),
        rule("self.data == b'hi'"),
        rule("self.ratio / 2.0 == 0.5"),
        rule("self.days.all(d, d.getFullYear() == 2024)"),
        when={"type": "string", "format": "date-time"},
        wait={"type": "string", "format": "duration"},
        data={"type": "string", "format": "byte"},
        ratio={"type": "number"},
        days={"type": "array", "items": {"type": "string", "format": "date"}},
    )
    spec = {
        "when": "2024-05-01T00:00:00Z",
        "wait": "30m",
        "data": "aGk=",
        "ratio": 1,
        "days": ["2024-01-01"],
    }
    assert errors(schema, spec) == []
    assert spec["ratio"] == 1
    assert isinstance(spec["when"], str)
    assert len(errors(schema, {**spec, "wait": "2h", "ratio": 2})) == 2


def test_null_is_not_judged_by_its_own_rules() -> None:
    field = {
        "type": "string",
        "nullable": True,
        "x-kubernetes-validations": [rule("self.size() > 3")],
    }
    schema = spec_schema(note=field)
    assert errors(schema, {"note": None}) == []
    assert len(errors(schema, {"note": "ab"})) == 1


def test_a_rule_that_does_not_compile_is_reported_with_its_errors() -> None:
    found = errors(spec_schema(rule("self.nope")), {})
    assert found[0].startswith(
        'spec: Invalid value: "object": rule compile error: compilation failed: ERROR: <input>:1:5'
    )


def test_a_call_that_costs_too_much_ends_the_object_s_rules() -> None:
    numbers = {"type": "array", "items": {"type": "integer"}}
    schema = spec_schema(rule("self.l.all(i, self.l.all(j, i + j > 0))"), rule("1 == 2"), l=numbers)
    found = errors(schema, {"l": [1] * 2000})
    assert len(found) == 1
    assert "actual cost limit exceeded" in found[0]


def test_an_object_s_rules_share_one_budget() -> None:
    item = {
        "type": "array",
        "items": {"type": "integer"},
        "x-kubernetes-validations": [rule("self.all(i, self.all(j, i + j > 0))")],
    }
    schema = spec_schema(rows={"type": "array", "items": item})
    found = errors(schema, {"rows": [[1] * 200] * 100})
    assert found[-1].endswith(
        "validation failed due to running out of cost budget, "
        "no further validation rules will be run"
    )


def test_values_that_defy_their_schema_are_an_error_not_a_crash() -> None:
    schema = spec_schema(rule("self.replicas + 1 > 0 && self.name.size() > 0"))
    found = errors(schema, {"replicas": "three", "name": 5})
    assert "call arguments did not match a supported operator" in found[0]


def test_a_schema_without_rules_costs_nothing() -> None:
    assert rules_of(spec_schema()) is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("plain", "plain"),
        ("a-b", "a__dash__b"),
        ("a.b", "a__dot__b"),
        ("a/b", "a__slash__b"),
        ("a__b", "a__underscores__b"),
        ("namespace", "__namespace__"),
        ("1a", None),
        ("", None),
        ("a$b", None),
    ],
)
def test_field_names_are_escaped_as_kubernetes_does(name: str, expected: str | None) -> None:
    assert escaped(name) == expected


def test_field_paths_follow_the_schema() -> None:
    schema = Schema(
        {
            "type": "object",
            "properties": {
                "a-b": {"type": "object", "additionalProperties": {"type": "string"}},
                "l": {"type": "array", "items": {"type": "string"}},
            },
        }
    )
    steps, _ = resolved_path(".a-b['x.y']", schema)
    assert rendered(steps) == "a-b[x.y]"
    for text, message in [
        (".nope", "does not refer to a valid field"),
        ("l", "expected [ or . but got: l"),
        (".l.x", "does not refer to a valid field"),
        (".", "unexpected end of JSON path"),
        ("['a-b'", "unexpected end of JSON path"),
        ("[0]", "expected single quoted string but got 0"),
        ("['a\\q']", "invalid string literal: invalid escape char \\q"),
    ]:
        with pytest.raises(FieldPathError) as caught:
            resolved_path(text, schema)
        assert str(caught.value) == message
    with pytest.raises(FieldPathError, match="array notation is not allowed"):
        resolved_path("['l']", schema, brackets=False)


def test_the_excess_of_a_cost_is_reported_by_its_factor() -> None:
    assert "by factor of more than 100x (" in exceeded("rule", 10_000, 10)
    assert "by factor of 2.0x (" in exceeded("rule", 20, 10)
    assert "by factor of 1.100000x (" in exceeded("rule", 11, 10)


IMMUTABLE = rule("self.name == oldSelf.name", message="is immutable")


def test_a_create_is_not_kept_waiting_by_rules_that_judge_changes_only() -> None:
    """Compiling them takes longer than a loop has for one request; and a limit that is met while
    they are compiled is met by the next request too, for ever."""
    long = rule(" && ".join(f"self.{name} == oldSelf.{name}" for name in ["name"] * 60))
    schema = spec_schema(long)
    assert limited(5_000, lambda: errors(schema, {"name": "a"})) == []
    with pytest.raises(LongWork):
        limited(5_000, lambda: errors(schema, {"name": "b"}, {"name": "a"}))
    assert errors(schema, {"name": "b"}, {"name": "a"})


@pytest.mark.parametrize(
    "text",
    [
        "self.name != 'oldSelf'",
        "self.max == 1 // oldSelf",
        "self.oldSelf == 1",
        "self . oldSelf == 1",
        "self.oldSelfish == 1",
        "[0].all(x1oldSelf, x1oldSelf == self.max)",
    ],
)
def test_a_rule_that_only_mentions_the_former_value_judges_creates_too(text: str) -> None:
    fields = {"oldSelf": {"type": "integer"}, "oldSelfish": {"type": "integer"}}
    schema = spec_schema(IMMUTABLE, rule(text), **fields)
    wrong = {"name": "oldSelf", "max": 2, "oldSelf": 2, "oldSelfish": 2}
    assert len(errors(schema, wrong)) == 1


def test_an_optional_former_value_leaves_nothing_out() -> None:
    schema = spec_schema(rule("oldSelf.hasValue()", optionalOldSelf=True))
    assert len(errors(schema, {"name": "a"})) == 1
