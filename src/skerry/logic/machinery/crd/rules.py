"""Validation rules at the time a CustomResourceDefinition is written: types and costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skerry.api.errors import FieldError
from skerry.api.schema import Schema
from skerry.logic.machinery.cel.compiler import Program
from skerry.logic.machinery.cel.cost import (
    EXPRESSION_LIMIT,
    SCHEMA_LIMIT,
    exceeded,
    expression_cost,
)
from skerry.logic.machinery.cel.field_paths import FieldPathError, resolved_path
from skerry.logic.machinery.cel.rules import Rule, compiled_rules, raw_rules
from skerry.logic.machinery.cel.types import CelType, declared

# A few hundred rules of the usual length. Each character costs some microseconds to parse.
TEXT_LIMIT = 128 * 1024
# How many of the dearest rules are named when all together cost too much.
_NAMED = 4


class RuleChecks:
    """Compiles the rules of one schema and sums up what they may cost."""

    def __init__(self, *, limit_expressions: bool = True) -> None:
        self.errors: list[FieldError] = []
        self._limit = limit_expressions
        self._total = 0
        self._length = 0
        self._too_long = False
        self._costs: list[tuple[int, str]] = []

    def check(
        self, schema: Schema, path: str, root: bool, cardinality: int | None, uncorrelated: str
    ) -> None:
        """Note what is wrong with the rules of one node."""
        kind = declared(schema, root=root or schema.embedded)
        if not self._short_enough(schema, path):
            return
        for index, rule in enumerate(compiled_rules(schema, kind)):
            where = f"{path}.x-kubernetes-validations[{index}]"
            if rule.error:
                self._invalid(f"{where}.rule", rule.raw, rule.error)
            if rule.message_error:
                self._invalid(f"{where}.messageExpression", rule.raw, rule.message_error)
            if kind is not None:
                self._cost(rule.program, "rule", f"{where}.rule", cardinality, kind)
                message_at = f"{where}.messageExpression"
                self._cost(rule.message, "messageExpression", message_at, 1, kind)
            self._transition(rule, where, uncorrelated)

    def _short_enough(self, schema: Schema, path: str) -> bool:
        """Count the text of a node's rules; beyond the limit they are refused, not compiled."""
        for raw in raw_rules(schema):
            self._length += len(str(raw.get("rule") or ""))
            self._length += len(str(raw.get("messageExpression") or ""))
        if self._length <= TEXT_LIMIT:
            return True
        if not self._too_long:
            self._too_long = True
            detail = f"the expressions of a schema have at most {TEXT_LIMIT} characters together"
            self.errors.append(FieldError.forbidden(f"{path}.x-kubernetes-validations", detail))
        return False

    def _invalid(self, where: str, raw: Mapping[str, Any], detail: str) -> None:
        text = f"Invalid value: {_as_go(raw)}: {detail}"
        self.errors.append(FieldError("FieldValueInvalid", where, text))

    def _cost(
        self,
        program: Program | None,
        what: str,
        where: str,
        cardinality: int | None,
        kind: CelType,
    ) -> None:
        if program is None:
            return
        cost = expression_cost(program.worst, cardinality, kind)
        if self._limit and cost > EXPRESSION_LIMIT:
            detail = exceeded(f"estimated {what} cost", cost, EXPRESSION_LIMIT)
            self.errors.append(FieldError.forbidden(where, detail))
        self._total += cost
        self._costs.append((cost, where))

    def _transition(self, rule: Rule, where: str, uncorrelated: str) -> None:
        if rule.program is None:
            return
        if rule.uses_old_self and uncorrelated:
            detail = (
                "oldSelf cannot be used on the uncorrelatable portion of the schema within "
                f"{uncorrelated}"
            )
            self.errors.append(FieldError.invalid(f"{where}.rule", rule.raw.get("rule"), detail))
        elif not rule.uses_old_self and rule.raw.get("optionalOldSelf") is not None:
            detail = "may not be set if oldSelf is not used in rule"
            given = rule.raw["optionalOldSelf"]
            self.errors.append(FieldError.invalid(f"{where}.optionalOldSelf", given, detail))

    def total_errors(self, path: str) -> list[FieldError]:
        """Return the complaint about all rules together, the dearest named."""
        if self._total <= SCHEMA_LIMIT:
            return []
        dearest = sorted(self._costs, reverse=True)[:_NAMED]
        shared = (
            "contributed to estimated rule cost total exceeding cost limit for entire "
            "OpenAPIv3 schema"
        )
        what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        return [
            *(FieldError.forbidden(where, shared) for _, where in dearest),
            FieldError.forbidden(path, exceeded(what, self._total, SCHEMA_LIMIT)),
        ]


def _as_go(raw: Mapping[str, Any]) -> str:
    """Return a rule as Go prints the struct, which is what users see."""
    parts = [
        f'{name}:"{str(raw.get(key) or "").translate(_ESCAPED)}"'
        for name, key in (
            ("Rule", "rule"),
            ("Message", "message"),
            ("MessageExpression", "messageExpression"),
        )
    ]
    parts += [
        "Reason:(*apiextensions.FieldValueErrorReason)(nil)",
        f'FieldPath:"{raw.get("fieldPath") or ""}"',
        "OptionalOldSelf:(*bool)(nil)",
    ]
    return f"apiextensions.ValidationRule{{{', '.join(parts)}}}"


_ESCAPED = str.maketrans({'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"})


def field_path_valid(path: str, schema: Schema) -> bool:
    """Tell whether *path* leads somewhere in *schema*."""
    try:
        resolved_path(path.strip(), schema)
    except FieldPathError:
        return False
    return True
