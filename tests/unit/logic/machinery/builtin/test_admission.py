# ruff: noqa: E501 (refusals stand on one line, as a client reads them)
"""What policies and bindings may not say, in Kubernetes' words, and what they say by default."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.kinds import GroupResource
from skerry.logic.machinery.builtin.admission import RULES
from tests.kit.machinery.policies import CONFIG_MAP_RULE, binding, policy

POLICY = RULES[GroupResource("admissionregistration.k8s.io", "validatingadmissionpolicies")]
BINDING = RULES[GroupResource("admissionregistration.k8s.io", "validatingadmissionpolicybindings")]
NAME_PART = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


def rule(**changes: Any) -> dict[str, Any]:
    return {"matchConstraints": {"resourceRules": [{**CONFIG_MAP_RULE, **changes}]}}


def check(**spec: Any) -> dict[str, Any]:
    return {"validations": [spec]}


def refusals(spec: dict[str, Any]) -> list[str]:
    return [str(error) for error in POLICY.validate_create(policy("p", **spec))]


R = "spec.matchConstraints.resourceRules[0]"
V = "spec.validations[0]"


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({"matchConstraints": None}, ["spec.matchConstraints: Required value"]),
        ({"matchConstraints": {}}, ["spec.matchConstraints.resourceRules: Required value"]),
        (
            {"validations": None},
            [
                f"spec.{part}: Required value: validations or auditAnnotations must contain at "
                "least one item"
                for part in ("validations", "auditAnnotations")
            ],
        ),
        (
            {"matchConstraints": {"resourceRules": [{}]}},
            [
                f"{R}.{part}: Required value"
                for part in ("operations", "apiGroups", "apiVersions", "resources")
            ],
        ),
        (
            rule(operations=["FOO"]),
            [
                (
                    f'{R}.operations[0]: Unsupported value: "FOO": supported values: "*", "CONNECT", '
                    '"CREATE", "DELETE", "UPDATE"'
                )
            ],
        ),
        (
            rule(operations=["*", "CREATE"], apiGroups=["*", "x"], resources=["*/*", "pods"]),
            [
                (
                    f'{R}.operations: Invalid value: []admissionregistration.OperationType{{"*", '
                    "\"CREATE\"}: if '*' is present, must not specify other operations"
                ),
                (
                    f'{R}.apiGroups: Invalid value: []string{{"*", "x"}}: if \'*\' is present, must '
                    "not specify other API groups"
                ),
                (
                    f'{R}.resources: Invalid value: []string{{"*/*", "pods"}}: if \'*/*\' is present, '
                    "must not specify other resources"
                ),
            ],
        ),
        (
            rule(scope="Foo"),
            [
                (
                    f'{R}.scope: Unsupported value: "Foo": supported values: "*", "Cluster", '
                    '"Namespaced"'
                )
            ],
        ),
        (rule(resourceNames=["a", "a", ""]), [f'{R}.resourceNames[1]: Duplicate value: "a"']),
        (
            {"failurePolicy": "Foo"},
            ['spec.failurePolicy: Unsupported value: "Foo": supported values: "Fail", "Ignore"'],
        ),
        (check(expression=" "), [f"{V}.expression: Required value: expression is not specified"]),
        (
            check(expression="1+1"),
            [f'{V}.expression: Invalid value: "1+1": must evaluate to bool but got int'],
        ),
        (
            check(expression="object.x"),
            [f'{V}.expression: Invalid value: "object.x": must evaluate to bool but got dyn'],
        ),
        (
            check(expression="true", messageExpression="1"),
            [f'{V}.messageExpression: Invalid value: "1": must evaluate to string but got int'],
        ),
        (
            check(expression="true", messageExpression="  "),
            [f'{V}.messageExpression: Invalid value: "  ": must be non-empty if specified'],
        ),
        (
            check(expression="true", message="a\nb"),
            [f'{V}.message: Invalid value: "a\\nb": message must not contain line breaks'],
        ),
        (
            check(expression="true ||\n false"),
            [
                (
                    f"{V}.message: Required value: message must be specified if expression contains "
                    "line breaks"
                )
            ],
        ),
        (
            check(expression="true", reason="Foo"),
            [
                (
                    f'{V}.reason: Unsupported value: "Foo": supported values: "Forbidden", "Invalid", '
                    '"RequestEntityTooLarge"'
                )
            ],
        ),
        (
            {"variables": [{"name": "a-b", "expression": "1"}]},
            ['spec.variables[0].name: Invalid value: "a-b": name is not a valid CEL identifier'],
        ),
        (
            {"variables": [{"name": "namespace", "expression": "1"}]},
            [
                (
                    'spec.variables[0].name: Invalid value: "namespace": name is not a valid CEL '
                    "identifier"
                )
            ],
        ),
        (
            {"matchConditions": [{"name": "", "expression": ""}]},
            [
                "spec.matchConditions[0].expression: Required value",
                "spec.matchConditions[0].name: Required value",
            ],
        ),
        (
            {"matchConditions": [{"name": "a", "expression": "true"}] * 2},
            ['spec.matchConditions[1].name: Duplicate value: "a"'],
        ),
        (
            {"matchConditions": [{"name": f"a{n}", "expression": "true"} for n in range(65)]},
            ["spec.matchConditions: Too many: 65: must have at most 64 items"],
        ),
        (
            {"paramKind": {}},
            [f"spec.paramKind.{part}: Required value" for part in ("apiVersion", "kind")],
        ),
        (
            {"paramKind": {"apiVersion": "a/b/c", "kind": "Foo"}},
            [
                (
                    'spec.paramKind.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion '
                    "string: a/b/c"
                )
            ],
        ),
        (
            {"auditAnnotations": [{"key": "a b", "valueExpression": "'x'"}]},
            [f'spec.auditAnnotations[0].key: Invalid value: "p/a b": {NAME_PART}'],
        ),
        (
            {"auditAnnotations": [{"key": "a", "valueExpression": "1"}]},
            [
                (
                    'spec.auditAnnotations[0].valueExpression: Invalid value: "1": must evaluate to '
                    "one of [string null_type] but got int"
                )
            ],
        ),
    ],
)
def test_a_policy_is_refused_by_the_field_at_fault(spec: dict[str, Any], wanted: list[str]) -> None:
    assert refusals(spec) == wanted


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        (check(expression="foo == 1"), "1:1: undeclared reference to 'foo'"),
        (check(expression="params.x == 1"), "1:1: undeclared reference to 'params'"),
        (check(expression="variables.x"), "1:1: undeclared reference to 'variables'"),
        (check(expression="request.foo == 'x'"), "1:8: undefined field 'foo'"),
        (check(expression="namespaceObject.foo == 'x'"), "1:16: undefined field 'foo'"),
        (check(expression="authorizer.foo()"), "1:15: undeclared reference to 'foo'"),
        (
            check(expression="true", messageExpression="authorizer.path('/x').check('get')"),
            "1:1: undeclared reference to 'authorizer'",
        ),
        (
            {
                "variables": [
                    {"name": "a", "expression": "variables.b"},
                    {"name": "b", "expression": "1"},
                ]
            },
            "1:10: undefined field 'b'",
        ),
        (
            {
                "variables": [{"name": "a", "expression": "1"}],
                **check(expression="variables.a == 'x'"),
            },
            "1:13: found no matching overload for '_==_' applied to '(int, string)'",
        ),
        (
            {
                "variables": [{"name": "a", "expression": "true"}],
                "matchConditions": [{"name": "m", "expression": "variables.a"}],
            },
            "1:1: undeclared reference to 'variables'",
        ),
    ],
)
def test_an_expression_that_reads_what_is_not_there_is_refused(
    spec: dict[str, Any], complaint: str
) -> None:
    (refusal,) = refusals(spec)
    assert f"compilation failed: ERROR: <input>:{complaint}" in refusal


@pytest.mark.parametrize(
    "expression",
    [
        "authorizer.group('').resource('pods').namespace('x').check('create').allowed()",
        "authorizer.requestResource.check('custom').allowed()",
        "authorizer.serviceAccount('a', 'b').path('/x').check('get').reason() == ''",
        "authorizer.group('').resource('pods').fieldSelector('a=b').check('list').errored()",
        "request.userInfo.groups.exists(g, g == 'x') && request.dryRun",
        (
            "namespaceObject == null || namespaceObject.metadata.creationTimestamp < timestamp("
            "'2030-01-01T00:00:00Z')"
        ),
    ],
)
def test_what_expressions_may_see_compiles(expression: str) -> None:
    assert refusals(check(expression=expression)) == []


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({"policyName": ""}, ["spec.policyName: Required value"]),
        (
            {"validationActions": []},
            ["spec.validationActions: Required value: at least one validation action is required"],
        ),
        (
            {"validationActions": ["Deny", "Warn"]},
            [
                (
                    "spec.validationActions: Invalid value: "
                    '[]admissionregistration.ValidationAction{"Deny", "Warn"}: must not contain both '
                    "Deny and Warn (repeating the same validation failure information in the API "
                    "response and headers serves no purpose)"
                )
            ],
        ),
        (
            {"validationActions": ["Deny", "Deny"]},
            ['spec.validationActions[1]: Duplicate value: "Deny"'],
        ),
        (
            {"paramRef": {}},
            [
                "spec.paramRef: Required value: one of name or selector must be specified",
                "spec.paramRef.parameterNotFoundAction: Required value",
            ],
        ),
        (
            {"paramRef": {"name": "a", "selector": {}, "parameterNotFoundAction": "Deny"}},
            [
                f"spec.paramRef.{part}: Forbidden: name and selector are mutually exclusive"
                for part in ("name", "selector")
            ],
        ),
        (
            {"paramRef": {"name": "a", "parameterNotFoundAction": "Foo"}},
            [
                (
                    'spec.paramRef.parameterNotFoundAction: Unsupported value: "Foo": supported '
                    'values: "Deny", "Allow"'
                )
            ],
        ),
    ],
)
def test_a_binding_is_refused_by_the_field_at_fault(
    spec: dict[str, Any], wanted: list[str]
) -> None:
    assert [str(error) for error in BINDING.validate_create(binding(**spec))] == wanted


def test_selectors_scope_and_policies_are_filled_in() -> None:
    made = policy("p")
    POLICY.default(made)
    match = made["spec"]["matchConstraints"]
    assert made["spec"]["failurePolicy"] == "Fail"
    assert match["matchPolicy"] == "Equivalent"
    assert (match["namespaceSelector"], match["objectSelector"]) == ({}, {})
    assert match["resourceRules"][0]["scope"] == "*"
