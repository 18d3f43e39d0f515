"""Checks by the name a worker knows them by: nothing where all is well, and else why not."""

from __future__ import annotations

import orjson

from skerry.server.offload.checks import CHECKS
from tests.kit.machinery.objects import resource
from tests.kit.machinery.policies import policy
from tests.kit.server.calls import call_of
from tests.kit.server.hub import schema

CALL = call_of(resource("configmaps"))


def test_the_checks_are_those_that_admission_asks_for() -> None:
    assert set(CHECKS) == {"schema", "conversion", "policy", "policy-types"}


def test_the_types_of_a_policy_are_checked_against_those_of_kubernetes_and_those_given() -> None:
    found = orjson.loads(CHECKS["policy-types"](CALL, policy("p", "object.replicas > 1"), {}))
    assert [each["fieldRef"] for each in found["expressionWarnings"]] == [
        "spec.validations[0].expression"
    ]
    assert orjson.loads(CHECKS["policy-types"](CALL, policy("p", "has(object.data)"), {})) == {}


def test_a_conversion_is_held_against_the_versions_of_its_schema() -> None:
    spec = schema()["spec"]
    rules = [{"field": ".spec.size", "destination": ".spec.length"}]
    wrong = {"spec": {"conversions": [{"from": "v1", "to": "v9", "rules": rules}]}}
    assert CHECKS["conversion"](CALL, {"spec": spec}, wrong)
    assert CHECKS["conversion"](CALL, {"spec": spec}, {"spec": {"conversions": []}}) == ""
