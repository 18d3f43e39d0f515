"""Judging in another process says the same as judging here, questions included."""

from __future__ import annotations

from typing import Any

import orjson

from skerry.logic.machinery.admission.environment import Check, Verdict
from skerry.logic.machinery.admission.evaluation import Inputs, Outcome, judge
from skerry.logic.machinery.admission.policies import policy_of
from skerry.logic.machinery.admission.remote import Verdicts, decoded, encoded, judged
from tests.kit.machinery.policies import policy

INPUTS = Inputs(object={"a": 1}, old_object=None, request={"operation": "CREATE"}, namespace=None)


def there_and_back(
    raw: dict[str, Any], verdicts: Verdicts, params: dict[str, Any] | None = None
) -> Outcome | Check:
    documents = [orjson.loads(text) for text in encoded(raw, INPUTS, params, verdicts)]
    return decoded(judged(*documents).encode())


def test_the_outcome_is_the_same_as_here() -> None:
    raw = policy(
        "p",
        "object.a == 2",
        "object.a == 1",
        auditAnnotations=[{"key": "k", "valueExpression": "string(object.a)"}],
    )
    here = judge(policy_of(raw), INPUTS, None, lambda _: Verdict(True))
    assert there_and_back(raw, []) == here
    assert len(here.denials) == 1
    assert here.annotations


def test_parameters_travel_too() -> None:
    raw = policy("p", "object.a == params.n", paramKind={"apiVersion": "v1", "kind": "X"})
    found = there_and_back(raw, [], {"n": 1})
    assert isinstance(found, Outcome)
    assert found.denials == []


def test_a_question_comes_back_and_is_answered_in_the_next_round() -> None:
    raw = policy(
        "p",
        "authorizer.serviceAccount('n', 'a').group('').resource('pods').check('get').allowed()",
        "authorizer.path('/x').check('get').allowed()",
    )
    first = there_and_back(raw, [])
    assert first == Check(account=("n", "a"), resource="pods", verb="get")
    assert isinstance(first, Check)
    verdicts: Verdicts = [(first, Verdict(True))]
    second = there_and_back(raw, verdicts)
    assert second == Check(path="/x", verb="get")
    assert isinstance(second, Check)
    last = there_and_back(raw, [*verdicts, (second, Verdict(False, "no"))])
    assert isinstance(last, Outcome)
    assert len(last.denials) == 1
