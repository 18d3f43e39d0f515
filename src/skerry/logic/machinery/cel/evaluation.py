"""Running the rules of a schema over an object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from skerry.api.errors import FieldError
from skerry.api.schema import Schema
from skerry.logic.machinery.cel.compiler import Program
from skerry.logic.machinery.cel.rules import (
    CALL_LIMIT,
    OBJECT_BUDGET,
    Rule,
    RuleFailure,
    RuleNode,
    judges_changes_only,
    rules_of,
)
from skerry.logic.machinery.cel.typed import COST, CostExceeded, Scope
from skerry.logic.machinery.cel.values import NONE, EvaluationError, Optional_
from skerry.logic.machinery.schema.lists import by_key, identity, key_of
from skerry.logic.machinery.schema.paths import MapKey, Path, bracketed
from skerry.logic.machinery.schema.ratcheting import Correlation
from skerry.logic.machinery.work import LongWork, left, spend

# What goes with each rule that is run, and with each value that is visited.
_RULE_UNITS = 20
_VISIT_UNITS = 4
# A failure is described, and perhaps compared with what was there before: so many of them are
# found in one object and no more.
_FAILURE_COST = 1000
# A message longer than this is not shown; the rule's own message is.
_MAX_MESSAGE_LENGTH = 5 * 1024
OUT_OF_BUDGET = (
    "validation failed due to running out of cost budget, no further validation rules will be run"
)
# What a rule can stumble over in an object that is not what its schema says (ratcheting lets
# such objects live on).
STUMBLES = (TypeError, ValueError, KeyError, AttributeError, IndexError, RecursionError)


def check_rules(schema: Schema, obj: Any, old: Any = None, path: str = "") -> list[FieldError]:
    """Return what the rules of *schema* say against *obj*; *old* is what it replaces, if any."""
    if old is None and judges_changes_only(schema):
        return []
    node = rules_of(schema)
    if node is None:
        return []
    run = _Run()
    root: Path = (None, path) if path else None
    run.visit(node, obj, old, root)
    if old is None or not run.failures:
        return [failure.error for failure in run.failures]
    correlation = Correlation(schema, obj, old, root)
    return [
        failure.error
        for failure in run.failures
        if not (failure.forgivable and correlation.unchanged(failure.node))
    ]


def presentable(computed: Any) -> str:
    """Return a message that an expression made, if it can be shown as one; else nothing."""
    text = computed.strip() if isinstance(computed, str) else ""
    fits = "\n" not in text and len(text.encode()) <= _MAX_MESSAGE_LENGTH
    return text if fits else ""


def run(program: Program, scope: Scope, limit: float) -> Any:
    """Run a program that may spend *limit*; one that was given less than a call may cost, and
    needs more, must be run again where there is time for it."""
    try:
        if scope[COST] < 0:
            raise CostExceeded
        return program.run(scope)
    except CostExceeded:
        if limit < CALL_LIMIT:
            raise LongWork from None
        raise


class _Exhausted(Exception):
    """The budget of the object is spent; what is left of its rules is not run."""


class _Run:
    """One object's rules, with the budget they share."""

    def __init__(self) -> None:
        self.failures: list[RuleFailure] = []
        self._budget: float = OBJECT_BUDGET

    def visit(self, node: RuleNode, value: Any, old: Any, path: Path) -> None:
        try:
            self._visit(node, value, old, path)
        except _Exhausted:
            return

    def _visit(self, node: RuleNode, value: Any, old: Any, path: Path) -> None:
        if value is None:
            return
        spend(_VISIT_UNITS)
        for rule in node.rules:
            self._judge(node, rule, value, old, path)
        if type(value) is dict:
            self._visit_members(node, value, old, path)
        elif type(value) is list and node.items is not None:
            former = _former_items(node.schema, old)
            keys = node.schema.list_keys
            for index, item in enumerate(value):
                counterpart = former.get(identity(key_of(item, keys))) if former else None
                self._visit(node.items, item, counterpart, (path, index))

    def _visit_members(self, node: RuleNode, value: Any, old: Any, path: Path) -> None:
        former = old if type(old) is dict and node.schema.map_type != "atomic" else {}
        for name, below in node.fields.items():
            if name in value:
                self._visit(below, value[name], former.get(name), (path, name))
        if node.additional is not None:
            for key, member in value.items():
                if key not in node.schema.property_names:
                    self._visit(node.additional, member, former.get(key), (path, MapKey(key)))

    def _judge(self, node: RuleNode, rule: Rule, value: Any, old: Any, path: Path) -> None:
        if rule.program is None:
            if rule.error:
                self._fail(path, node, f"rule compile error: {rule.error}")
            return
        if rule.uses_old_self and old is None and not rule.old_self_optional:
            return
        scope = _scope(rule, value, old)
        try:
            if self._spend(rule.program, scope) is True:
                return
        except EvaluationError as error:
            self._fail(path, node, _stumbled(str(error), rule))
            return
        except CostExceeded as error:
            cancelled = "operation cancelled: actual cost limit exceeded"
            text = f"'{cancelled}': no further validation rules will be run due to call cost "
            self._fail(path, node, f"{text}exceeds limit for rule: {rule.description}")
            raise _Exhausted from error
        except _Exhausted:
            self._fail(path, node, OUT_OF_BUDGET)
            raise
        self._report(node, rule, path, self._detail(rule, scope))

    def _spend(self, program: Program, scope: Scope) -> Any:
        """Run a program on the object's budget, and on what may be done here and now."""
        limit = left(CALL_LIMIT)
        scope[COST] = limit - program.cost
        try:
            return run(program, scope, limit)
        except STUMBLES as error:
            raise EvaluationError(f"no such overload: {error}") from error
        finally:
            used = limit - scope[COST]
            self._budget -= used
            spend(used + _RULE_UNITS)
            if self._budget < 0:
                raise _Exhausted

    def _detail(self, rule: Rule, scope: Scope) -> str:
        """Return what to say of a failed rule: its computed message if it has a good one."""
        if rule.message is not None:
            try:
                computed = self._spend(rule.message, scope)
            except (EvaluationError, CostExceeded):
                computed = None
            if text := presentable(computed):
                return text
        if rule.raw.get("message"):
            return rule.description
        return f"failed rule: {rule.description}"

    def _report(self, node: RuleNode, rule: Rule, path: Path, detail: str) -> None:
        where = bracketed(path)
        if rule.field_path:
            where = f"{where}.{rule.field_path}" if where else rule.field_path
        self._budget -= _FAILURE_COST
        make = _REASONS.get(str(rule.raw.get("reason") or ""), FieldError.invalid)
        error = make(where or "<nil>", node.schema.type, detail)
        self.failures.append(RuleFailure(path, error, forgivable=not rule.uses_old_self))

    def _fail(self, path: Path, node: RuleNode, detail: str) -> None:
        self._budget -= _FAILURE_COST
        error = FieldError.invalid(bracketed(path) or "<nil>", node.schema.type, detail)
        self.failures.append(RuleFailure(path, error, forgivable=False))


_REASONS: dict[str, Callable[[str, Any, str], FieldError]] = {
    "FieldValueForbidden": lambda where, _, detail: FieldError.forbidden(where, detail),
    "FieldValueRequired": lambda where, _, detail: FieldError.required(where, detail),
    "FieldValueDuplicate": lambda where, value, _: FieldError.duplicate(where, value),
}


def _stumbled(error: str, rule: Rule) -> str:
    if error.startswith("no such overload"):
        text = f"'{error}': call arguments did not match a supported operator, function or macro"
        return f"{text} signature for rule: {rule.description}"
    return f"{error} evaluating rule: {rule.description}"


def _scope(rule: Rule, value: Any, old: Any) -> Scope:
    convert = rule.convert
    scope: Scope = {"self": convert(value) if convert is not None else value}
    if not rule.uses_old_self:
        return scope
    former = convert(old) if convert is not None and old is not None else old
    if rule.old_self_optional:
        scope["oldSelf"] = NONE if old is None else Optional_(former)
    else:
        scope["oldSelf"] = former
    return scope


def _former_items(schema: Schema, old: Any) -> dict[Any, Any]:
    """Return the former items by their keys; only lists that are maps have counterparts."""
    return by_key(old, schema.list_keys) if schema.list_type == "map" else {}
