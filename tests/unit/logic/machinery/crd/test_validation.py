"""What may be defined, and the words that refuse the rest."""

# Messages are compared whole and read best on one line, beside what provokes them.
# ruff: noqa: E501

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from skerry.api.objects import Object
from skerry.logic.machinery.crd import default_crd, validate_crd
from tests.kit.machinery.crds import (
    cron_tab,
    established,
    schema_of,
    version_of,
    with_spec,
)

AT = "spec.validation.openAPIV3Schema"


def messages(crd: Object, old: Object | None = None) -> list[str]:
    return [str(error) for error in validate_crd(crd, old)]


def test_the_status_of_a_new_definition_is_the_servers() -> None:
    crd = cron_tab()
    crd["status"] = {"storedVersions": [], "acceptedNames": {"plural": "Not Valid!"}}
    assert messages(crd) == []
    old = established(cron_tab())
    changed = {**old, "status": {**old["status"], "storedVersions": []}}
    assert messages(changed, old) == [
        "status.storedVersions: Invalid value: []: must have at least one stored version"
    ]


def test_a_definition_that_stores_no_version_says_so_of_its_status_too() -> None:
    crd = cron_tab()
    version_of(crd)["storage"] = False
    assert any(text.startswith("status.storedVersions: ") for text in messages(crd))


def test_a_good_definition_is_accepted() -> None:
    assert messages(cron_tab()) == []


def _set(path: str, value: Any) -> Callable[[Object], None]:
    def change(crd: Object) -> None:
        at: Any = crd
        *parents, last = path.split(".")
        for name in parents:
            at = at[int(name)] if name.isdigit() else at[name]
        if value is None:
            del at[last]
        else:
            at[last] = value

    return change


V = "spec.versions.0"
LABEL = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or "
    "'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        (
            "metadata.name",
            "x.stable.example.com",
            ('metadata.name: Invalid value: "x.stable.example.com": '
            'must be spec.names.plural+"."+spec.group'),
        ),
        ("spec.scope", "Global", 'spec.scope: Unsupported value: "Global": supported values: "Cluster", "Namespaced"'),
        ("spec.scope", None, "spec.scope: Required value"),
        ("spec.names.kind", "Cron Tab", 'spec.names.kind: Invalid value: "Cron Tab": may have mixed case, but should otherwise match: ' + LABEL),
        ("spec.names.listKind", "CronTab", 'spec.names.listKind: Invalid value: "CronTab": kind and listKind may not be the same'),
        ("spec.names.singular", None, "spec.names.singular: Required value"),
        ("spec.names.shortNames", ["Ct"], 'spec.names.shortNames[0]: Invalid value: "Ct": ' + LABEL),
        ("spec.names.categories", ["A"], 'spec.names.categories[0]: Invalid value: "A": ' + LABEL),
        (f"{V}.name", "V1", 'spec.versions[0].name: Invalid value: "V1": ' + LABEL),
        (f"{V}.schema", None, "spec.versions[0].schema.openAPIV3Schema: Required value"),
        (f"{V}.storage", False, 'spec.versions: Invalid value: [{"name":"v1","served":true,"storage":false}]: must have exactly one version marked as storage version'),
        (f"{V}.deprecationWarning", "old", 'spec.versions[0].deprecationWarning: Invalid value: "old": can only be set for deprecated versions'),
        (f"{V}.subresources.scale.specReplicasPath", ".status.replicas", 'spec.subresources.scale.specReplicasPath: Invalid value: ".status.replicas": should be a json path under .spec'),
        (f"{V}.subresources.scale.specReplicasPath", "spec", 'spec.subresources.scale.specReplicasPath: Invalid value: "spec": must be a simple json path starting with .'),
        (f"{V}.subresources.scale.statusReplicasPath", None, "spec.subresources.scale.statusReplicasPath: Required value"),
        (f"{V}.subresources.scale.labelSelectorPath", ".metadata.x", 'spec.subresources.scale.labelSelectorPath: Invalid value: ".metadata.x": should be a json path under either .spec or .status'),
        (f"{V}.additionalPrinterColumns", [{"name": "a", "type": "text", "jsonPath": ".a"}], 'spec.additionalPrinterColumns[0].type: Invalid value: "text": must be one of boolean,date,integer,number,string'),
        (f"{V}.additionalPrinterColumns", [{"name": "a", "type": "string", "jsonPath": "a"}], 'spec.additionalPrinterColumns[0].JSONPath: Invalid value: "a": must be a simple json path starting with .'),
        (f"{V}.additionalPrinterColumns", [{"name": "a", "type": "string", "format": "x", "jsonPath": ".a"}], 'spec.additionalPrinterColumns[0].format: Invalid value: "x": must be one of byte,date,date-time,double,float,int32,int64,password'),
        (f"{V}.selectableFields", [{"jsonPath": ".spec.nope"}], 'spec.selectableFields[0].jsonPath: Invalid value: ".spec.nope": is an invalid path: does not refer to a valid field'),
        (f"{V}.selectableFields", [{"jsonPath": ".spec.env"}], 'spec.selectableFields[0].jsonPath: Invalid value: ".spec.env": must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.'),
        (f"{V}.selectableFields", [{"jsonPath": ".spec.image"}] * 2, 'spec.selectableFields[1].jsonPath: Duplicate value: ".spec.image"'),
        ("spec.preserveUnknownFields", True, "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"),
        ("spec.conversion.strategy", "Magic", 'spec.conversion.strategy: Unsupported value: "Magic": supported values: "None", "Webhook"'),
    ],
)  # fmt: skip
def test_each_mistake_gets_kubernetes_answer(path: str, value: Any, expected: str) -> None:
    crd = cron_tab()
    _set(path, value)(crd)
    # One mistake may have others in its train; the first to be reported is its own.
    assert messages(crd)[0] == expected


@pytest.mark.parametrize(
    ("group", "message"),
    [
        ("", "spec.group: Required value"),
        ("example", "should be a domain with at least one dot"),
        ("Example.com", "a lowercase RFC 1123 subdomain must consist of"),
    ],
)
def test_a_group_is_a_domain(group: str, message: str) -> None:
    crd = cron_tab()
    crd["spec"]["group"] = group
    crd["metadata"]["name"] = f"crontabs.{group}"
    assert len(messages(crd)) == 1
    assert message in messages(crd)[0]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, f"{AT}.type: Required value: must not be empty at the root"),
        ({"type": "array", "items": {"type": "string"}}, f'{AT}.type: Invalid value: "array": must be object at the root'),
        ({"type": "object", "additionalProperties": {"type": "string"}}, f"{AT}.additionalProperties: Forbidden: must not be used at the root"),
        ({"type": "object", "properties": {"spec": {}}}, f"{AT}.properties[spec].type: Required value: must not be empty for specified object fields"),
        ({"type": "object", "properties": {"l": {"type": "array"}}}, f"{AT}.properties[l].items: Required value: must be specified"),
        ({"type": "object", "properties": {"l": {"type": "array", "items": {}}}}, f"{AT}.properties[l].items.type: Required value: must not be empty for specified array items"),
        ({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}}, f"{AT}.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified"),
        ({"type": "object", "properties": {"kind": {"type": "integer"}}}, f'{AT}.properties[kind].type: Invalid value: "integer": must be string'),
        ({"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}, f'{AT}.properties[a].pattern: Invalid value: "(": must be a valid regular expression, but isn\'t: error parsing regexp'),
        ({"type": "object", "anyOf": [{"properties": {"x": {"minimum": 1}}}]}, f"{AT}.properties[x]: Required value: because it is defined in {AT}.anyOf[0].properties[x]"),
        ({"type": "object", "properties": {"a": {"type": "string", "allOf": [{"type": "string", "description": "x"}]}}}, f"{AT}.properties[a].allOf[0].description: Forbidden: must be empty to be structural"),
        ({"type": "object", "properties": {"a": {"type": "string", "not": {"nullable": True}}}}, f"{AT}.properties[a].not.nullable: Forbidden: must be false to be structural"),
        ({"type": "object", "properties": {"a": {"type": "object", "x-kubernetes-embedded-resource": True}}}, f"{AT}.properties[a].properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"),
        ({"type": "object", "properties": {"a": {"type": "string", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}}}, f'{AT}.properties[a].type: Invalid value: "string": must be object if x-kubernetes-embedded-resource is true'),
        ({"type": "object", "properties": {"a": {"x-kubernetes-int-or-string": True, "x-kubernetes-preserve-unknown-fields": True}}}, f"{AT}.properties[a].x-kubernetes-preserve-unknown-fields: Invalid value: true: must be false if x-kubernetes-int-or-string is true"),
    ],
)  # fmt: skip
def test_a_schema_must_be_structural(schema: Object, expected: str) -> None:
    crd = with_spec()
    version_of(crd)["schema"]["openAPIV3Schema"] = schema
    version_of(crd).pop("subresources")
    assert messages(crd)[0].startswith(expected)


def test_the_two_spellings_of_int_or_string_are_structural() -> None:
    either = [{"type": "integer"}, {"type": "string"}]
    crd = with_spec(
        a={"x-kubernetes-int-or-string": True, "anyOf": either},
        b={"x-kubernetes-int-or-string": True, "allOf": [{"anyOf": either}, {"enum": [1]}]},
    )
    assert messages(crd) == []


S = f"{AT}.properties[spec].properties[a]"
ITEM = {"type": "object", "required": ["n"], "properties": {"n": {"type": "string"}}}


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ({"type": "text"}, f'{S}.type: Unsupported value: "text": supported values: "array", "boolean", "integer", "number", "object", "string"'),
        ({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, f"{S}.uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic"),
        ({"type": "object", "$ref": "#/x"}, f"{S}.$ref: Forbidden: $ref is not supported"),
        ({"type": "object", "properties": {"b": {"type": "string"}}, "additionalProperties": {"type": "string"}}, f"{S}.additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive"),
        ({"type": "object", "x-kubernetes-preserve-unknown-fields": False}, f"{S}.x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined"),
        ({"type": "string", "x-kubernetes-list-type": "set"}, f'{S}.type: Invalid value: "string": must be array if x-kubernetes-list-type is specified'),
        ({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "bag"}, f'{S}.x-kubernetes-list-type: Unsupported value: "bag": supported values: "atomic", "map", "set"'),
        ({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "set"}, f"{S}.items.x-kubernetes-map-type: Invalid value: \"null\": must be atomic as item of a list with x-kubernetes-list-type=set"),
        ({"type": "array", "items": ITEM, "x-kubernetes-list-type": "map"}, f"{S}.x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map"),
        ({"type": "array", "items": ITEM, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["x"]}, f'{S}.x-kubernetes-list-map-keys: Invalid value: ["x"]: entries must all be names of item properties'),
        ({"type": "array", "items": ITEM, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n", "n"]}, f'{S}.x-kubernetes-list-map-keys: Invalid value: ["n","n"]: must not contain duplicate entries'),
        ({"type": "array", "items": {**ITEM, "required": []}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"]}, f"{S}.items.properties[n].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"),
        ({"type": "array", "items": ITEM, "x-kubernetes-list-map-keys": ["n"]}, f"{S}.x-kubernetes-list-type: Required value: must be map if x-kubernetes-list-map-keys is non-empty"),
        ({"type": "array", "items": {"type": "string", "nullable": True}, "x-kubernetes-list-type": "set"}, f"{S}.items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is set"),
        ({"type": "string", "x-kubernetes-map-type": "atomic"}, f'{S}.type: Invalid value: "string": must be object if x-kubernetes-map-type is specified'),
        ({"type": "integer", "default": "a"}, f'{S}.default: Invalid value: "string": {S}.default in body must be of type integer: "string"'),
        ({"type": "object", "default": {"x": 1}, "properties": {"b": {"type": "string"}}}, f'{S}.default: Invalid value: {{"x":1}}: must not have unknown fields'),
        ({"type": "string", "default": "x", "x-kubernetes-validations": [{"rule": "self == 'y'"}]}, f"{S}.default: Invalid value: \"string\": failed rule: self == 'y'"),
    ],
)  # fmt: skip
def test_each_node_follows_its_rules(field: Object, expected: str) -> None:
    assert messages(with_spec(a=field)) == [expected]


def ruled(rule: Object, **fields: Any) -> list[str]:
    crd = with_spec(**{"x": {"type": "string"}, **fields})
    schema_of(crd)["properties"]["spec"]["x-kubernetes-validations"] = [rule]
    return messages(crd)


R = f"{AT}.properties[spec].x-kubernetes-validations[0]"


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"rule": ""}, f"{R}.rule: Required value: rule is not specified"),
        ({"rule": "true", "message": " "}, f'{R}.message: Invalid value: " ": must be non-empty if specified'),
        ({"rule": "true", "message": "a\nb"}, f'{R}.message: Invalid value: "a\\nb": must not contain line breaks'),
        ({"rule": "true ||\ntrue"}, f"{R}.message: Required value: message must be specified if rule contains line breaks"),
        ({"rule": "true", "reason": "Odd"}, f'{R}.reason: Unsupported value: "Odd": supported values: "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"'),
        ({"rule": "true", "fieldPath": ".nope"}, f'{R}.fieldPath: Invalid value: ".nope": must be a valid path'),
        ({"rule": "true", "messageExpression": " "}, f"{R}.messageExpression: Required value: messageExpression must be non-empty if specified"),
        ({"rule": "true", "optionalOldSelf": True}, f"{R}.optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule"),
    ],
)  # fmt: skip
def test_rules_have_a_form(rule: Object, expected: str) -> None:
    assert ruled(rule) == [expected]


def test_a_rule_with_wrong_types_is_refused_with_the_place() -> None:
    (error,) = ruled({"rule": "self.x > 1"})
    assert error == (
        f'{R}.rule: Invalid value: apiextensions.ValidationRule{{Rule:"self.x > 1", Message:"", '
        'MessageExpression:"", Reason:(*apiextensions.FieldValueErrorReason)(nil), FieldPath:"", '
        "OptionalOldSelf:(*bool)(nil)}: compilation failed: ERROR: <input>:1:8: found no "
        "matching overload for '_>_' applied to '(string, int)'\n | self.x > 1\n | .......^"
    )


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"rule": "self.x"}, "cel expression must evaluate to a bool"),
        ({"rule": "dyn(true)"}, "cel expression must evaluate to a bool"),
        ({"rule": "true", "messageExpression": "1"}, "messageExpression must evaluate to a string"),
        ({"rule": "true", "messageExpression": "nope"}, "messageExpression compilation failed"),
    ],
)
def test_rules_are_true_or_false_and_messages_are_text(rule: Object, message: str) -> None:
    (error,) = ruled(rule)
    assert message in error


def test_a_rule_that_could_cost_too_much_is_refused() -> None:
    unbounded = {"type": "array", "items": {"type": "string"}}
    rule = {"rule": "self.l.all(a, self.l.all(b, a != b))"}
    errors = ruled(rule, l=unbounded)
    assert errors[0] == (
        f"{R}.rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x "
        "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where "
        "arrays, maps, and strings are declared)"
    )
    assert any("for entire OpenAPIv3 schema exceeds budget" in error for error in errors)
    bounded = {"type": "array", "maxItems": 20, "items": {"type": "string", "maxLength": 30}}
    assert ruled(rule, l=bounded) == []


def test_an_unchanged_schema_is_not_judged_by_its_cost_again() -> None:
    crd = with_spec(l={"type": "array", "maxItems": 7000, "items": {"type": "integer"}})
    schema_of(crd)["properties"]["spec"]["x-kubernetes-validations"] = [
        {"rule": "self.l.all(a, self.l.filter(b, a == b).size() == 1)"}
    ]
    costly = [error for error in messages(crd) if "estimated rule cost exceeds" in error]
    assert costly
    assert [error for error in messages(crd, crd) if "estimated rule cost exceeds" in error] == []


def test_transition_rules_need_items_that_can_be_followed() -> None:
    items = {
        "type": "object",
        "properties": {"n": {"type": "string"}},
        "x-kubernetes-validations": [{"rule": "self == oldSelf"}],
    }
    field = {"type": "array", "maxItems": 3, "items": items}
    (error,) = messages(with_spec(a=field))
    assert error == (
        f'{S}.items.x-kubernetes-validations[0].rule: Invalid value: "self == oldSelf": oldSelf '
        f"cannot be used on the uncorrelatable portion of the schema within {S}"
    )


def test_several_versions_are_distinguished_by_their_index() -> None:
    crd = cron_tab()
    other = copy.deepcopy(version_of(crd))
    other.update({"name": "v2", "storage": False})
    other["schema"]["openAPIV3Schema"]["properties"]["spec"] = {"type": "text"}
    other.pop("selectableFields")
    crd["spec"]["versions"].append(other)
    assert messages(crd)[0].startswith(
        "spec.versions[1].schema.openAPIV3Schema.properties[spec].type: Unsupported value"
    )
    other["name"] = "v1"
    assert any("must contain unique version names" in error for error in messages(crd))


def test_more_than_eight_selectable_fields_are_too_many() -> None:
    crd = with_spec(**{f"f{index}": {"type": "string"} for index in range(9)})
    version_of(crd)["selectableFields"] = [{"jsonPath": f".spec.f{index}"} for index in range(9)]
    assert messages(crd) == ["spec.selectableFields: Too many: 9: must have at most 8 items"]


def test_with_a_status_subresource_the_root_says_little() -> None:
    crd = cron_tab()
    schema_of(crd)["anyOf"] = [{"required": ["spec"]}]
    (error,) = messages(crd)
    assert error.startswith(f"{AT}: Invalid value: {{")
    assert "fields are allowed at the root of the schema if the status subresource" in error


def test_defaults_are_forbidden_in_metadata() -> None:
    crd = cron_tab()
    schema_of(crd)["properties"]["metadata"] = {
        "type": "object",
        "properties": {"name": {"type": "string", "default": "x"}},
    }
    assert messages(crd) == [
        (
            f"{AT}.properties[metadata].properties[name].default: Forbidden: must not be set in "
            "top-level metadata"
        )
    ]


class TestUpdates:
    """What an existing definition may become."""

    def test_names_that_decide_storage_are_fixed(self) -> None:
        old = established(cron_tab())
        new = copy.deepcopy(old)
        new["spec"]["scope"] = "Cluster"
        new["spec"]["names"].update({"kind": "Other", "plural": "others"})
        assert messages(new, old) == [
            'spec.scope: Invalid value: "Cluster": field is immutable',
            'spec.names.kind: Invalid value: "Other": field is immutable',
            'spec.names.plural: Invalid value: "others": field is immutable',
        ]

    def test_before_it_is_established_scope_and_kind_may_change(self) -> None:
        old, new = cron_tab(), cron_tab()
        new["spec"]["scope"] = "Cluster"
        assert messages(new, old) == []

    def test_a_version_that_was_stored_must_stay(self) -> None:
        crd = cron_tab()
        crd["status"]["storedVersions"] = ["v1", "v1beta1"]
        (error,) = messages(crd, cron_tab())
        assert error.startswith(
            'status.storedVersions[1]: Invalid value: "v1beta1": missing from spec.versions; '
            "v1beta1 was previously a storage version"
        )


class TestConversion:
    """Webhook configurations are checked and kept as data."""

    def webhook(self, **config: Any) -> Object:
        crd = cron_tab()
        crd["spec"]["conversion"] = {
            "strategy": "Webhook",
            "webhook": {"clientConfig": config, "conversionReviewVersions": ["v1"]},
        }
        return crd

    def test_a_webhook_is_accepted(self) -> None:
        crd = self.webhook(url="https://example.com/convert")
        assert messages(crd) == []

    def test_either_a_url_or_a_service_is_wanted(self) -> None:
        where = "spec.conversion.webhookClientConfig"
        assert messages(self.webhook()) == [
            f"{where}: Required value: exactly one of url or service is required"
        ]
        assert messages(self.webhook(url="http://u@h/p?q#f")) == [
            (
                f"{where}.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; "
                "desired format: https://host[/path]"
            ),
            f'{where}.url: Invalid value: "u": user information is not permitted in the URL',
            f'{where}.url: Invalid value: "f": fragments are not permitted in the URL',
            f'{where}.url: Invalid value: "q": query parameters are not permitted in the URL',
        ]
        assert messages(self.webhook(service={"port": 0, "path": "a//b"})) == [
            f"{where}.service.name: Required value: service name is required",
            f"{where}.service.namespace: Required value: service namespace is required",
            (
                f"{where}.service.port: Invalid value: 0: port is not valid: must be between 1 and "
                "65535, inclusive"
            ),
            f"{where}.service.path: Invalid value: \"a//b\": must start with a '/'",
            f'{where}.service.path: Invalid value: "a//b": segment[0] may not be empty',
            f'{where}.service.path: Invalid value: "a//b": segment[1] may not be empty',
        ]

    def test_a_known_review_version_is_wanted(self) -> None:
        crd = self.webhook(url="https://example.com")
        crd["spec"]["conversion"]["webhook"]["conversionReviewVersions"] = ["v9", "v9"]
        assert messages(crd) == [
            'spec.conversion.conversionReviewVersions[1]: Invalid value: "v9": duplicate version',
            (
                'spec.conversion.conversionReviewVersions: Invalid value: ["v9","v9"]: must include '
                "at least one of v1, v1beta1"
            ),
        ]

    def test_without_a_webhook_strategy_its_configuration_is_forbidden(self) -> None:
        crd = self.webhook(url="https://example.com")
        crd["spec"]["conversion"]["strategy"] = "None"
        assert len(messages(crd)) == 2


def test_groups_of_the_kubernetes_project_need_approval() -> None:
    crd = cron_tab()
    crd["spec"]["group"] = "stable.k8s.io"
    crd["metadata"]["name"] = "crontabs.stable.k8s.io"
    assert messages(crd)[0].startswith(
        "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must "
        'have approval annotation "api-approved.kubernetes.io"'
    )
    for accepted in ("unapproved, testing", "https://example.com/approval"):
        crd["metadata"]["annotations"] = {"api-approved.kubernetes.io": accepted}
        assert messages(crd) == []
    crd["metadata"]["annotations"] = {"api-approved.kubernetes.io": "no"}
    assert "with either a URL or a reason" in messages(crd)[0]


def test_kubernetes_defaults_are_filled_in() -> None:
    crd = cron_tab()
    del crd["spec"]["conversion"], crd["status"]
    del crd["spec"]["names"]["singular"], crd["spec"]["names"]["listKind"]
    default_crd(crd)
    assert crd["spec"]["names"]["singular"] == "crontab"
    assert crd["spec"]["names"]["listKind"] == "CronTabList"
    assert crd["spec"]["conversion"] == {"strategy": "None"}
    assert crd["status"]["storedVersions"] == ["v1"]
    once = copy.deepcopy(crd)
    default_crd(crd)
    assert crd == once


def test_a_webhook_service_gets_its_port() -> None:
    crd = TestConversion().webhook(service={"name": "a", "namespace": "b"})
    default_crd(crd)
    assert crd["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["port"] == 443


@pytest.mark.parametrize("spec", [{}, {"versions": [None]}, {"versions": [{"schema": {}}]}])
def test_a_definition_of_any_shape_is_answered_not_crashed_on(spec: Any) -> None:
    crd: Object = {"metadata": {"name": "a"}, "spec": spec}
    default_crd(crd)
    assert messages(crd)
