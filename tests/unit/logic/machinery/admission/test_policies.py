"""Policies compiled: what each part may read, what a fault does, and when there is a shortcut."""

from __future__ import annotations

import pytest

from skerry.logic.machinery.admission.policies import (
    BOOL,
    STRING_OR_NULL,
    ExpressionError,
    Scopes,
    binding_of,
    compiled,
    policy_of,
)
from skerry.logic.machinery.cel.types import INT
from tests.kit.machinery.policies import binding, policy


def condition(expression: str) -> dict[str, str]:
    return {"name": "c", "expression": expression}


def test_a_policy_is_read_whole() -> None:
    found = policy_of(
        policy(
            "p",
            "object.a == 1",
            failurePolicy="Ignore",
            matchConditions=[condition("object.b == 1")],
            auditAnnotations=[{"key": "k", "valueExpression": "'v'"}],
            variables=[{"name": "x", "expression": "1"}],
        )
    )
    assert (found.name, found.fails_open) == ("p", True)
    assert [name for name, _ in found.conditions] == ["c"]
    assert list(found.variables) == ["x"]
    assert [key for key, _ in found.audit_annotations] == ["k"]
    assert found.validations[0].reason == "Invalid"
    assert found.shortcut is None


def test_a_policy_fails_closed_unless_it_says() -> None:
    assert policy_of(policy()).fails_open is False


def test_an_expression_that_does_not_compile_is_kept_with_its_complaint() -> None:
    (found,) = policy_of(policy("p", "object.a ==")).validations
    assert found.expression.program is None
    assert found.expression.error.startswith("compilation failed: ERROR: <input>:1:12")
    (found,) = policy_of(policy("p", "'text'")).validations
    assert found.expression.error == "must evaluate to bool but got string"


def test_variables_see_those_before_them() -> None:
    found = policy_of(
        policy(
            "p",
            "variables.y == 2",
            variables=[
                {"name": "x", "expression": "1"},
                {"name": "y", "expression": "variables.x + 1"},
                {"name": "bad", "expression": "variables.later"},
                {"name": "later", "expression": "1"},
            ],
        )
    )
    assert list(found.variables) == ["x", "y", "later"]
    assert list(found.faulty_variables) == ["bad"]
    assert found.validations[0].expression.error == ""


def test_conditions_see_no_variables_and_messages_no_authorizer() -> None:
    scopes = Scopes({"variables": [{}], "paramKind": {"kind": "X"}})
    assert "variables" not in scopes.conditions
    assert "variables" in scopes.validations
    assert "authorizer" in scopes.validations
    assert "authorizer" not in scopes.messages
    assert "params" in scopes.messages
    assert "params" not in Scopes({}).validations
    scopes.declare("n", INT)
    assert compiled("variables.n == 1", scopes.validations, BOOL).type.name == "bool"


def test_an_expression_is_of_one_of_the_wanted_types() -> None:
    scope = Scopes({}).validations
    assert compiled("null", scope, STRING_OR_NULL).type.name == "null"
    with pytest.raises(ExpressionError, match=r"must evaluate to one of \[string null_type\]"):
        compiled("1", scope, STRING_OR_NULL)


def test_messages_are_trimmed_and_may_be_computed() -> None:
    validations = [
        {"expression": "true", "message": " no \n", "reason": "Forbidden"},
        {"expression": "true", "messageExpression": "'no'"},
    ]
    plain, computed = policy_of(policy(validations=validations)).validations
    assert (plain.message, plain.message_expression, plain.reason) == ("no", None, "Forbidden")
    assert computed.message_expression is not None


def test_a_policy_about_objects_alone_has_a_shortcut() -> None:
    found = policy_of(policy("p", "object.a == 1", "oldObject == null",
                             matchConditions=[condition("true")])).shortcut  # fmt: skip
    assert found is not None
    assert (len(found.conditions), len(found.validations)) == (1, 2)
    assert found.objects_only is True
    asks = policy_of(policy("p", "request.operation == 'CREATE'")).shortcut
    assert asks is not None
    assert asks.objects_only is False


@pytest.mark.parametrize(
    "spec",
    [
        {"variables": [{"name": "x", "expression": "1"}]},
        {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}},
        {"auditAnnotations": [{"key": "k", "valueExpression": "'v'"}]},
        {"matchConditions": [condition("authorizer.requestResource.check('get').allowed()")]},
        {"matchConditions": [condition("no such thing")]},
    ],
)
def test_others_have_none(spec: dict[str, object]) -> None:
    assert policy_of(policy("p", "true", **spec)).shortcut is None


def test_bindings_are_read() -> None:
    found = binding_of(binding("b", "p", paramRef={"name": "x"}))
    assert (found.name, found.policy, found.actions) == ("b", "p", ("Deny",))
    assert found.params == {"name": "x"}
    empty = binding_of({"metadata": {"name": "b"}})
    assert (empty.policy, empty.actions, empty.params) == ("", (), None)
