"""What a policy says of a request."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.machinery.admission import remote
from skerry.logic.machinery.admission.environment import Check, Decide, Verdict
from skerry.logic.machinery.admission.evaluation import (
    Denial,
    Inputs,
    Outcome,
    is_satisfied,
    judge,
)
from skerry.logic.machinery.admission.policies import policy_of
from skerry.logic.machinery.cel.rules import CALL_LIMIT
from skerry.logic.machinery.work import LongWork, limited
from tests.kit.machinery.policies import policy

OBJECT = {"metadata": {"name": "vv"}, "data": {"deny": "x"}}
REQUEST = {
    "operation": "CREATE",
    "name": "vv",
    "namespace": "shop",
    "requestResource": {"group": "", "version": "v1", "resource": "configmaps"},
}


def allow(_: Check) -> Verdict:
    return Verdict(allowed=True)


def judged(
    *expressions: str,
    obj: Any = None,
    old: Any = None,
    params: Any = None,
    namespace: Any = None,
    decide: Decide = allow,
    **spec: Any,
) -> Outcome:
    made = policy_of(policy("p", *expressions, **spec))
    return judge(made, Inputs(obj or OBJECT, old, REQUEST, namespace), params, decide)


def messages(outcome: Outcome) -> list[str]:
    return [denial.message for denial in outcome.denials]


def test_a_validation_that_holds_says_nothing() -> None:
    assert judged("'deny' in object.data") == Outcome()


@pytest.mark.parametrize(
    ("validation", "message"),
    [
        ({}, "failed expression: !('deny' in object.data)"),
        ({"message": "no deny please"}, "no deny please"),
        ({"message": "m", "messageExpression": "'got ' + object.metadata.name"}, "got vv"),
        ({"message": "m", "messageExpression": "string(object.nope)"}, "m"),
        ({"message": "m", "messageExpression": "''"}, "m"),
        ({"message": "m", "messageExpression": "'a\\nb'"}, "m"),
    ],
)
def test_a_failure_has_the_best_message_there_is(validation: dict[str, str], message: str) -> None:
    spec = [{"expression": "!('deny' in object.data)", "reason": "Forbidden", **validation}]
    assert judged(validations=spec).denials == [Denial(message, "Forbidden")]


def test_an_error_denies_unless_the_failure_policy_ignores_it() -> None:
    expression = "object.data.zz == 'x'"
    why = f"expression '{expression}' resulted in error: no such key: zz"
    assert messages(judged(expression)) == [why]
    assert judged(expression, failurePolicy="Ignore") == Outcome()


def test_every_failed_validation_is_reported_with_its_index() -> None:
    assert [(d.message, d.index) for d in judged("true", "false", "1 > 2").denials] == [
        ("failed expression: false", 1),
        ("failed expression: 1 > 2", 2),
    ]


def condition(*expressions: str) -> list[dict[str, str]]:
    return [{"name": f"c{n}", "expression": text} for n, text in enumerate(expressions)]


def test_match_conditions_decide_whether_a_policy_is_asked() -> None:
    assert judged("false", matchConditions=condition("object.metadata.name == 'x'")) == Outcome()
    assert judged("false", matchConditions=condition("true")).denials


def test_a_condition_that_fails_to_evaluate_denies_unless_another_is_false() -> None:
    broken = "object.foo.bar == 'x'"
    why = f"expression '{broken}' resulted in error: no such key: foo"
    assert messages(judged("true", matchConditions=condition(broken))) == [why]
    assert judged("true", matchConditions=condition(broken, "false")) == Outcome()
    ignoring = judged("false", matchConditions=condition(broken), failurePolicy="Ignore")
    assert ignoring == Outcome()


def variables(**named: str) -> list[dict[str, str]]:
    return [{"name": name, "expression": text} for name, text in named.items()]


def test_variables_build_on_each_other() -> None:
    made = variables(n="object.metadata.name", m="variables.n + '!'")
    assert judged("variables.m == 'vv!'", variables=made) == Outcome()


def test_an_error_in_a_variable_names_it_and_only_where_it_is_read() -> None:
    made = variables(n="object.zz.yy")
    assert judged("true", variables=made) == Outcome()
    assert messages(judged("variables.n == 'x'", variables=made)) == [
        (
            "expression 'variables.n == 'x'' resulted in error: composited variable \"n\" fails to "
            "evaluate: no such key: zz"
        )
    ]


def test_a_variable_is_computed_once_however_often_it_is_read() -> None:
    asked: list[Check] = []

    def count(check: Check) -> Verdict:
        asked.append(check)
        return Verdict(allowed=True)

    made = variables(ok="authorizer.path('/x').check('get').allowed()")
    assert judged("variables.ok", "variables.ok", variables=made, decide=count) == Outcome()
    assert len(asked) == 1


def test_a_loop_variable_does_not_reach_into_variables() -> None:
    made = variables(n="object.metadata.name")
    looped = "['a', 'b'].all(object, variables.n == 'vv')"
    assert judged(looped, variables=made) == Outcome()


def test_parameters_are_seen_and_are_null_without_any() -> None:
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    params = {"data": {"max": "1"}}
    limited_to = "size(object.data) <= int(params.data.max)"
    assert judged(limited_to, params=params, paramKind=kind) == Outcome()
    assert judged("params == null", paramKind=kind) == Outcome()


def test_of_a_namespace_only_what_is_declared_is_seen_and_times_are_times() -> None:
    namespace = {
        "metadata": {"name": "shop", "creationTimestamp": "2026-01-02T03:04:05Z", "x": 1},
        "spec": {"finalizers": ["kubernetes"]},
        "other": {},
    }
    expression = "namespaceObject.metadata.creationTimestamp.getFullYear() == 2026"
    assert judged(expression, namespace=namespace) == Outcome()
    assert judged("namespaceObject == null") == Outcome()


def test_the_authorizer_is_asked_what_the_expression_says() -> None:
    asked: list[Check] = []

    def deny(check: Check) -> Verdict:
        asked.append(check)
        return Verdict(allowed=False, reason="nobody may")

    expression = (
        "authorizer.serviceAccount('a', 'b').group('apps').resource('deployments')"
        ".subresource('scale').namespace('shop').name(object.metadata.name).check('get')"
        ".reason() == 'nobody may' && !authorizer.requestResource.check('frob').allowed()"
    )
    assert judged(expression, decide=deny) == Outcome()
    assert asked == [
        Check(("a", "b"), "", "apps", "deployments", "scale", "shop", "vv", "get"),
        Check(None, "", "", "configmaps", "", "shop", "vv", "frob"),
    ]


def test_an_expression_may_ask_the_authorizer_twice() -> None:
    check = "authorizer.path('/x').check('get').allowed()"
    assert judged(f"{check} && {check}") == Outcome()
    (message,) = messages(judged(f"{check} && {check} && {check}"))
    assert message.endswith("resulted in error: operation cancelled: actual cost limit exceeded")


def test_a_policy_has_a_budget_for_all_it_asks() -> None:
    check = "authorizer.path('/x').check('get').allowed()"
    denied = judged(*[f"{check} && {check}"] * 15)
    assert messages(denied) == [
        (
            "validation failed due to running out of cost budget, no further validation rules will "
            "be run"
        )
    ]


def test_an_expression_that_takes_long_is_left_to_somebody_with_time() -> None:
    many = {"metadata": {"name": "vv"}, "data": {str(n): "x" for n in range(2000)}}
    costly = "object.data.all(k, object.data[k] == 'x')"
    with pytest.raises(LongWork):
        limited(1000, lambda: judged(costly, obj=many))
    assert judged(costly, obj=many) == Outcome()


def test_audit_annotations_are_named_after_the_policy_and_left_out_when_empty() -> None:
    annotations = [
        {"key": "who", "valueExpression": "object.metadata.name + '!'"},
        {"key": "none", "valueExpression": "null"},
        {"key": "empty", "valueExpression": "''"},
    ]
    outcome = judged(auditAnnotations=annotations)
    assert outcome.annotations == [("p/who", "vv!")]


def test_a_stored_policy_that_does_not_compile_fails_as_its_policy_says() -> None:
    (message,) = messages(judged("nope == 1"))
    assert message.startswith("compilation error: compilation failed: ERROR: <input>:1:1:")
    assert judged("nope == 1", failurePolicy="Ignore") == Outcome()


@given(
    st.lists(
        st.sampled_from(
            [
                "object.metadata.name == 'vv'",
                "object.nope == 1",
                "params == null",
                "authorizer.path('/a').check('get').allowed()",
                "authorizer.group('').resource(object.metadata.name).check('x').reason() == 'r'",
                "variables.v",
            ]
        ),
        min_size=1,
        max_size=4,
    ),
    st.booleans(),
    st.sampled_from(["Fail", "Ignore"]),
)
def test_a_worker_says_what_would_have_been_said_here(
    expressions: list[str], allowed: bool, failure_policy: str
) -> None:
    obj = policy(
        "p",
        *expressions,
        failurePolicy=failure_policy,
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
        variables=variables(v="authorizer.path('/v').check('get').allowed()"),
    )
    inputs = Inputs(OBJECT, None, REQUEST, None)

    def decide(check: Check) -> Verdict:
        return Verdict(allowed, "r" if check.group == "" and check.resource else "")

    here = judge(policy_of(obj), inputs, None, decide)
    verdicts: remote.Verdicts = []
    while True:
        documents = remote.encoded(obj, inputs, None, verdicts)
        answer = remote.decoded(remote.judged(*map(orjson.loads, documents)).encode())
        if isinstance(answer, Outcome):
            break
        verdicts.append((answer, decide(answer)))
    assert answer == here


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"failurePolicy": "Ignore"},
        {"matchConditions": [{"name": "c", "expression": "false"}]},
        {"variables": [{"name": "v", "expression": "1"}]},
        {"auditAnnotations": [{"key": "k", "valueExpression": "'v'"}]},
    ],
)
@pytest.mark.parametrize(
    "expression",
    [
        "true",
        "false",
        "object.metadata.name.size() < 100",
        "object.nope == 1",
        "object.data.all(key, object.data[key] == 'x')",
        "1",
        "authorizer.path('/x').check('get').allowed()",
        "oops(",
    ],
)
def test_the_shortcut_is_taken_only_where_there_is_nothing_to_say(
    expression: str, spec: dict[str, Any]
) -> None:
    asked: list[Check] = []

    def decide(check: Check) -> Verdict:
        asked.append(check)
        return Verdict(allowed=True)

    made = policy_of(policy("p", "true", expression, **spec))
    inputs = Inputs(OBJECT, None, REQUEST, None)
    shortcut = made.shortcut
    satisfied = shortcut is not None and is_satisfied(shortcut, inputs.scope(decide), 2000)
    assert asked == [], "whoever is judged in full is asked about then"
    if satisfied:
        assert judge(made, inputs, None, decide) == Outcome()
    unmeant = "matchConditions" in spec and expression in _COMPILED
    bare = not spec or "failurePolicy" in spec
    assert satisfied == (unmeant or (bare and expression in _PLAINLY_TRUE))


_PLAINLY_TRUE = (
    "true",
    "object.metadata.name.size() < 100",
    "object.data.all(key, object.data[key] == 'x')",
)
# With all of these, a condition that is false says that nobody is meant.
_COMPILED = (*_PLAINLY_TRUE, "false", "object.nope == 1")


def test_a_condition_that_has_no_result_is_no_shortcut() -> None:
    condition = {"name": "c", "expression": "object.nope == 1"}
    made = policy_of(policy("p", "true", matchConditions=[condition]))
    assert made.shortcut is not None
    scope = Inputs(OBJECT, None, REQUEST, None).scope(allow)
    assert not is_satisfied(made.shortcut, scope, 2000)


@pytest.mark.parametrize(
    ("expression", "alone"),
    [
        ("object.metadata.name == oldObject.metadata.name", True),
        ("object.metadata.name == request.name", False),
        ("has(namespaceObject.metadata)", False),
    ],
)
def test_a_shortcut_knows_whether_it_looks_at_the_object_alone(
    expression: str, alone: bool
) -> None:
    made = policy_of(policy("p", "true", expression)).shortcut
    assert made is not None
    assert made.objects_only is alone


def test_the_shortcut_spends_no_more_than_it_may() -> None:
    made = policy_of(policy("p", "object.list.all(a, object.list.all(b, a + b >= 0))"))
    scope = Inputs({"list": list(range(200))}, None, REQUEST, None).scope(allow)
    assert made.shortcut is not None
    assert is_satisfied(made.shortcut, dict(scope), CALL_LIMIT)
    assert not is_satisfied(made.shortcut, dict(scope), 2000)
