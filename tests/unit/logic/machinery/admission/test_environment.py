"""What expressions of admission see: the namespace, the authorizer, variables."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from skerry.logic.machinery.admission.environment import (
    CHECKS,
    NAMESPACE,
    WITH_AUTHORIZER,
    AuthorizerValue,
    Check,
    ResourceCheck,
    Variables,
    Verdict,
    namespace_value,
)
from skerry.logic.machinery.cel.compiler import CompileError, compile_expression
from skerry.logic.machinery.cel.typed import COST, CostExceeded, Scope
from skerry.logic.machinery.cel.values import EvaluationError


class Authorizer:
    """Allows reading, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Check] = []

    def decide(self, check: Check) -> Verdict:
        self.asked.append(check)
        return Verdict(check.verb == "get", f"asked to {check.verb}")


def scope_of(authorizer: Authorizer, checks: int = 5) -> Scope:
    return {
        "authorizer": AuthorizerValue(authorizer.decide, Check()),
        "authorizer.requestResource": ResourceCheck(authorizer.decide, Check(resource="pods")),
        COST: 1_000_000.0,
        CHECKS: checks,
    }


def run(text: str, authorizer: Authorizer, checks: int = 5) -> Any:
    program = compile_expression(text, dict(WITH_AUTHORIZER))
    return program.run(scope_of(authorizer, checks))


@pytest.mark.parametrize(
    ("text", "check"),
    [
        (
            ("authorizer.group('apps').resource('deployments').subresource('scale')"
            ".namespace('n').name('x').check('get')"),
            Check(
                group="apps", resource="deployments", subresource="scale", namespace="n", name="x",
                verb="get",
            ),
        ),
        ("authorizer.path('/healthz').check('get')", Check(path="/healthz", verb="get")),
        (
            "authorizer.serviceAccount('n', 'a').group('').resource('pods').check('get')",
            Check(account=("n", "a"), resource="pods", verb="get"),
        ),
        ("authorizer.requestResource.check('get')", Check(resource="pods", verb="get")),
        (
            "authorizer.requestResource.labelSelector('a=b').fieldSelector('c=d').check('get')",
            Check(resource="pods", verb="get"),
        ),
    ],
)  # fmt: skip
def test_a_question_grows_word_by_word(text: str, check: Check) -> None:
    authorizer = Authorizer()
    assert run(f"{text}.allowed()", authorizer) is True
    assert authorizer.asked == [check]


def test_an_answer_has_a_reason_and_never_an_error() -> None:
    decision = "authorizer.requestResource.check('delete')"
    assert run(f"{decision}.allowed()", Authorizer()) is False
    assert run(f"{decision}.reason()", Authorizer()) == "asked to delete"
    assert run(f"{decision}.errored()", Authorizer()) is False
    assert run(f"{decision}.error()", Authorizer()) == ""


def test_an_empty_path_is_no_question() -> None:
    with pytest.raises(EvaluationError, match="path must not be empty"):
        run("authorizer.path('').check('get').allowed()", Authorizer())


def test_an_expression_asks_only_so_often() -> None:
    twice = "[1, 2].all(x, authorizer.requestResource.check('get').allowed())"
    assert run(twice, Authorizer(), 2) is True
    with pytest.raises(CostExceeded):
        run(twice, Authorizer(), 1)


def test_a_misspelt_field_of_the_request_is_found_at_once() -> None:
    compile_expression("request.operation == 'CREATE'", dict(WITH_AUTHORIZER))
    with pytest.raises(CompileError, match="undefined field 'operaton'"):
        compile_expression("request.operaton == 'CREATE'", dict(WITH_AUTHORIZER))


def test_of_a_namespace_only_declared_fields_are_seen_and_times_are_times() -> None:
    namespace = {
        "metadata": {"name": "n", "creationTimestamp": "2024-01-01T00:00:00Z", "managedFields": []},
        "spec": {"finalizers": ["kubernetes"], "odd": 1},
        "other": {},
    }
    assert namespace_value(namespace) == {
        "metadata": {"name": "n", "creationTimestamp": datetime(2024, 1, 1, tzinfo=UTC)},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {},
    }
    assert namespace_value(None) is None
    assert set(NAMESPACE.fields) == {"metadata", "spec", "status"}


def variables(scope: Scope, **texts: str) -> Variables:
    programs = {
        name: compile_expression(text, dict(WITH_AUTHORIZER)) for name, text in texts.items()
    }
    return Variables(programs, {"broken": "does not compile"}, scope)


def test_a_variable_is_computed_when_first_read_and_once() -> None:
    authorizer = Authorizer()
    found = variables(scope_of(authorizer), may="authorizer.requestResource.check('get').allowed()")
    assert authorizer.asked == []
    assert (found["may"], found["may"]) == (True, True)
    assert len(authorizer.asked) == 1
    assert "may" in found
    assert "other" not in found


def test_whoever_reads_it_first_pays_for_it() -> None:
    scope = scope_of(Authorizer())
    before = scope[COST], scope[CHECKS]
    found = variables(scope, may="authorizer.requestResource.check('get').allowed()")
    assert found["may"]
    assert scope[COST] < before[0]
    assert scope[CHECKS] == before[1] - 1


def test_a_variable_that_fails_fails_as_often_as_it_is_read() -> None:
    found = variables(scope_of(Authorizer()), bad="1 / 0")
    for _ in range(2):
        with pytest.raises(EvaluationError) as failed:
            found["bad"]
        assert str(failed.value) == (
            'composited variable "bad" fails to evaluate: division by zero'
        )
    with pytest.raises(EvaluationError, match='"broken" fails to evaluate: does not compile'):
        found["broken"]
    assert "broken" in found
