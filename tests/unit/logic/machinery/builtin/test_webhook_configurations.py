"""Webhook configurations: defaults and refusals, each compared with kube-apiserver 1.32."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.errors import FieldError
from skerry.api.kinds import GroupResource
from skerry.logic.machinery.admission.webhooks import MUTATING, VALIDATING
from skerry.logic.machinery.builtin.webhook_configurations import RULES

MUTATE, VALIDATE = RULES[GroupResource(*MUTATING)], RULES[GroupResource(*VALIDATING)]
RULE = {
    "operations": ["CREATE"],
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "resources": ["configmaps"],
}
GOOD: dict[str, Any] = {
    "name": "w.example.com",
    "clientConfig": {"url": "https://h.example.com/p"},
    "rules": [RULE],
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
}


def configuration(*webhooks: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {"metadata": {"name": "c"}, "webhooks": [dict(w) for w in webhooks]}
    MUTATE.default(made)
    return made


def test_what_is_left_unsaid_is_filled_in() -> None:
    [found] = configuration(GOOD)["webhooks"]
    expected = {
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
        "timeoutSeconds": 10,
        "reinvocationPolicy": "Never",
    }
    assert {name: found[name] for name in expected} == expected
    assert found["rules"][0]["scope"] == "*"
    assert MUTATE.validate_create(configuration(GOOD)) == []


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (
            {"name": "a.b"},
            FieldError.invalid(
                "webhooks[0].name",
                "a.b",
                "should be a domain with at least three segments separated by dots",
            ),
        ),
        ({"name": ""}, FieldError.required("webhooks[0].name")),
        (
            {"sideEffects": None},
            FieldError.required(
                "webhooks[0].sideEffects", "must specify one of None, NoneOnDryRun"
            ),
        ),
        (
            {"sideEffects": "Some"},
            FieldError.not_supported("webhooks[0].sideEffects", "Some", ["None", "NoneOnDryRun"]),
        ),
        (
            {"timeoutSeconds": 31},
            FieldError.invalid(
                "webhooks[0].timeoutSeconds",
                31,
                "the timeout value must be between 1 and 30 seconds",
            ),
        ),
        (
            {"admissionReviewVersions": []},
            FieldError.required(
                "webhooks[0].admissionReviewVersions", "must specify one of v1, v1beta1"
            ),
        ),
        (
            {"admissionReviewVersions": ["v2"]},
            FieldError(
                "FieldValueInvalid",
                "webhooks[0].admissionReviewVersions",
                'Invalid value: []string{"v2"}: must include at least one of v1, v1beta1',
            ),
        ),
        (
            {"rules": [{**RULE, "resources": ["a/*", "a/b"]}]},
            FieldError.invalid(
                "webhooks[0].rules[0].resources[1]",
                "a/b",
                "if 'a/*' is present, must not specify a/b",
            ),
        ),
        (
            {"matchConditions": [{"name": "a", "expression": "1"}]},
            FieldError.invalid(
                "webhooks[0].matchConditions[0].expression",
                "1",
                "must evaluate to bool but got int",
            ),
        ),
    ],
)
def test_what_cannot_work_is_refused(more: dict[str, Any], expected: FieldError) -> None:
    found = MUTATE.validate_create(configuration({**GOOD, **more}))
    assert expected in found


def test_names_are_given_once() -> None:
    found = VALIDATE.validate_create(configuration(GOOD, GOOD))
    assert found == [FieldError.duplicate("webhooks[1].name", "w.example.com")]


def test_what_was_accepted_once_stays_accepted() -> None:
    old = configuration({**GOOD, "sideEffects": "Some", "admissionReviewVersions": ["v2"]})
    assert len(VALIDATE.validate_create(old)) == 2
    assert VALIDATE.validate_update(configuration(*old["webhooks"]), old) == []
    good = configuration(GOOD)
    assert len(VALIDATE.validate_update(old, good)) == 2
