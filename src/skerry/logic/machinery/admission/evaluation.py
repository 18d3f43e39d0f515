"""One policy, one binding, one set of parameters: what they say of a request.

Expressions run on a budget. One expression may cost ``CALL_LIMIT``, all of a policy ``BUDGET``,
its match conditions a quarter of that. Beyond what may be spent on the event loop the evaluation
stops with ``LongWork`` and is begun again in a worker (``machinery.work``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from skerry.api.objects import Object
from skerry.logic.machinery.admission.environment import (
    CHECK_COST,
    CHECKS,
    AuthorizerValue,
    Check,
    Decide,
    ResourceCheck,
    Variables,
    namespace_value,
)
from skerry.logic.machinery.admission.policies import (
    RULE_UNITS,
    Expression,
    Policy,
    Shortcut,
    Validation,
)
from skerry.logic.machinery.cel.compiler import Program
from skerry.logic.machinery.cel.evaluation import OUT_OF_BUDGET, STUMBLES, presentable, run
from skerry.logic.machinery.cel.rules import CALL_LIMIT
from skerry.logic.machinery.cel.typed import COST, CostExceeded, Scope
from skerry.logic.machinery.cel.values import EvaluationError
from skerry.logic.machinery.work import left, spend

BUDGET: Final = 10_000_000
CONDITIONS_BUDGET: Final = BUDGET // 4
_VALUE_BYTES: Final = 10 * 1024
_CHECKS_PER_CALL: Final = CALL_LIMIT // CHECK_COST
# Why an expression may have no result.
_UNFINISHED: Final = (EvaluationError, CostExceeded, *STUMBLES)
_TOO_COSTLY: Final = "operation cancelled: actual cost limit exceeded"


@dataclass(slots=True)
class Inputs:
    """What expressions see of a request."""

    object: Object | None
    old_object: Object | None
    request: Mapping[str, Any]
    namespace: Object | None
    # The same for all policies of a request, and for all its questions to one authorizer.
    _scope: Scope | None = None

    def scope(self, decide: Decide) -> Scope:
        """Return the names that every expression may use, in a table of the caller's own."""
        if self._scope is None:
            self._scope = {
                "object": self.object,
                "oldObject": self.old_object,
                "request": self.request,
                "namespaceObject": namespace_value(self.namespace),
                "authorizer": AuthorizerValue(decide, Check()),
                "authorizer.requestResource": ResourceCheck(
                    decide, _request_resource(self.request)
                ),
            }
        return dict(self._scope)


@dataclass(frozen=True, slots=True)
class Denial:
    """Why a request is not as the policy wants it; ``index`` is that of the validation."""

    message: str
    reason: str = "Invalid"
    index: int = 0


@dataclass(slots=True)
class Outcome:
    """What a policy says of a request with one set of parameters."""

    denials: list[Denial] = field(default_factory=list)
    annotations: list[tuple[str, str]] = field(default_factory=list)


class _Failed(Exception):
    """An expression has no result; the text says why."""


class _Exhausted(Exception):
    """The budget is spent."""


def judge(policy: Policy, inputs: Inputs, params: Object | None, decide: Decide) -> Outcome:
    """Return what *policy* says; *decide* answers for the authorizer."""
    evaluation = _Evaluation(policy, inputs, params, decide)
    try:
        return evaluation.outcome()
    except _Exhausted:
        return Outcome([] if policy.fails_open else [Denial(OUT_OF_BUDGET)])


def is_satisfied(shortcut: Shortcut, scope: Scope, units: float) -> bool:
    """Tell whether a policy plainly has nothing to say, within *units* of work.

    That is so of nearly every request, and without a word on what does not hold it takes a third
    of the time. False says nothing yet: then ``judge`` evaluates everything, with all that belongs
    to it. Expressions have no effects, so that changes nothing. *scope* may be shared by all
    policies that look at the same inputs.
    """
    begun = scope[COST] = units - shortcut.cost
    if begun < 0:
        return False
    try:
        for run_condition in shortcut.conditions:
            holds = run_condition(scope)
            if holds is not True:
                return holds is False
        for run_validation in shortcut.validations:
            if run_validation(scope) is not True:
                return False
    except _UNFINISHED:
        return False
    return True


class _Evaluation:
    """One run of a policy's expressions."""

    def __init__(
        self, policy: Policy, inputs: Inputs, params: Object | None, decide: Decide
    ) -> None:
        self._policy = policy
        self._budget: float = CONDITIONS_BUDGET
        scope = inputs.scope(decide)
        scope[COST], scope[CHECKS], scope["params"] = 0.0, 0, params
        if policy.variables or policy.faulty_variables:
            scope["variables"] = Variables(policy.variables, policy.faulty_variables, scope)
        self._scope = scope

    def outcome(self) -> Outcome:
        outcome = Outcome()
        matched, errors = self._matches()
        if not matched:
            return outcome
        if errors:
            if not self._policy.fails_open:
                joined = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
                outcome.denials.append(Denial(joined))
            return outcome
        self._budget = BUDGET
        for index, validation in enumerate(self._policy.validations):
            denial = self._validate(validation, index)
            if denial is not None:
                outcome.denials.append(denial)
        for key, expression in self._policy.audit_annotations:
            self._annotate(outcome, key, expression)
        return outcome

    def _matches(self) -> tuple[bool, list[str]]:
        """Tell whether the match conditions hold; one that is false outweighs all errors."""
        errors: list[str] = []
        for _, expression in self._policy.conditions:
            try:
                if self._value(expression) is not True:
                    return False, []
            except _Failed as failed:
                errors.append(str(failed))
        return True, errors

    def _validate(self, validation: Validation, index: int) -> Denial | None:
        try:
            if self._value(validation.expression) is True:
                return None
        except _Failed as failed:
            return None if self._policy.fails_open else Denial(str(failed), index=index)
        return Denial(self._message(validation), validation.reason, index)

    def _message(self, validation: Validation) -> str:
        """Return what to say of a failed validation: its computed message if it has a good one."""
        if validation.message_expression is not None:
            try:
                computed = self._value(validation.message_expression)
            except _Failed:
                computed = None
            if text := presentable(computed):
                return text
        return validation.message or f"failed expression: {validation.expression.text.strip()}"

    def _annotate(self, outcome: Outcome, key: str, expression: Expression) -> None:
        try:
            value = self._value(expression)
        except _Failed as failed:
            if not self._policy.fails_open:
                outcome.denials.append(Denial(str(failed)))
            return
        if isinstance(value, str) and value.strip():
            text = value.encode()[:_VALUE_BYTES].decode(errors="ignore")
            outcome.annotations.append((f"{self._policy.name}/{key}", text))

    def _value(self, expression: Expression) -> Any:
        if expression.program is None:
            raise _Failed(f"compilation error: {expression.error}")
        try:
            return self._run(expression.program)
        except EvaluationError as error:
            why: str = str(error)
        except CostExceeded:
            why = _TOO_COSTLY
        raise _Failed(f"expression '{expression.text}' resulted in error: {why}")

    def _run(self, program: Program) -> Any:
        """Run a program on the policy's budget, and on what may be done here and now."""
        scope, limit = self._scope, left(CALL_LIMIT)
        scope[COST] = limit - program.cost
        scope[CHECKS] = _CHECKS_PER_CALL
        try:
            return run(program, scope, limit)
        except STUMBLES as error:
            raise EvaluationError("no such overload") from error
        finally:
            used = limit - scope[COST]
            self._budget -= used + CHECK_COST * (_CHECKS_PER_CALL - scope[CHECKS])
            spend(min(used, CALL_LIMIT) + RULE_UNITS)
            if self._budget < 0:
                raise _Exhausted


def _request_resource(request: Mapping[str, Any]) -> Check:
    """Return the question about the very object that is requested, but for the verb."""
    resource = request.get("requestResource") or {}
    return Check(
        group=resource.get("group", ""),
        resource=resource.get("resource", ""),
        subresource=request.get("requestSubResource", ""),
        namespace=request.get("namespace", ""),
        name=request.get("name", ""),
    )
