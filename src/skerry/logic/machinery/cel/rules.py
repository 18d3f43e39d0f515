"""``x-kubernetes-validations``: rules at the nodes of a schema, compiled and evaluated.

A rule sees its node as ``self`` and, if it asks, the node's former value as ``oldSelf``; such a
transition rule is skipped where there is no former value, unless ``optionalOldSelf`` says that it
can do without. Former values are found as Kubernetes finds them: fields and map keys by name,
items only in lists that are maps. Null is never judged by its own rules.

Budgets are Kubernetes' own: a million units for one call, ten million for one object. What a
unit is, ``compiler`` says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from skerry.api.errors import FieldError
from skerry.api.schema import Schema
from skerry.logic.machinery.cel import field_paths
from skerry.logic.machinery.cel.compiler import CompileError, Program, compile_expression
from skerry.logic.machinery.cel.conversion import Convert, conversion
from skerry.logic.machinery.cel.types import CelType, declared, optional_of
from skerry.logic.machinery.schema.compilation import Roots
from skerry.logic.machinery.work import spend

# What begins a string, a name in quotes or a comment.
_QUOTES: Final = ("'", '"', "`", "//")
# Looking at one part of a raw schema.
_LOOK_UNITS: Final = 3
CALL_LIMIT: Final = 1_000_000
OBJECT_BUDGET: Final = 10_000_000


@dataclass(frozen=True, slots=True)
class Rule:
    """One compiled rule; ``error`` says why it could not be compiled."""

    raw: Mapping[str, Any]
    program: Program | None = None
    error: str = ""
    message: Program | None = None
    message_error: str = ""
    field_path: str = ""
    convert: Convert | None = None

    @property
    def uses_old_self(self) -> bool:
        return self.program is not None and "oldSelf" in self.program.names

    @property
    def old_self_optional(self) -> bool:
        return bool(self.raw.get("optionalOldSelf"))

    @property
    def description(self) -> str:
        """The rule's message, or the rule itself."""
        return str(self.raw.get("message") or self.raw.get("rule", "")).strip()


@dataclass(slots=True)
class RuleNode:
    """The rules of one node of a schema, and the nodes below that have some."""

    schema: Schema
    rules: tuple[Rule, ...] = ()
    fields: dict[str, RuleNode] = field(default_factory=dict)
    items: RuleNode | None = None
    additional: RuleNode | None = None

    @property
    def empty(self) -> bool:
        return not (self.rules or self.fields or self.items or self.additional)


class RuleFailure(NamedTuple):
    """What a rule had to say; a transition rule is never forgiven by ratcheting."""

    node: Any
    error: FieldError
    forgivable: bool


def rules_of(schema: Schema) -> RuleNode | None:
    """Return the compiled rules of a resource's schema; None when it has none."""
    return _ROOTS.of(schema)


def judges_changes_only(schema: Schema) -> bool:
    """Tell whether every rule of a resource's schema is skipped where there is no former value.

    By their texts alone: most such rules say that something never changes, on kinds that are
    mostly created, and compiling them can take longer than a loop has for one request. Where a
    text leaves a doubt, the answer is no.
    """
    return _CHANGES_ONLY.of(schema)


def compiled_rules(schema: Schema, kind: CelType | None) -> tuple[Rule, ...]:
    """Return the rules of one node, whose type rules see as *kind*."""
    return tuple(_compiled(schema, kind, raw) for raw in raw_rules(schema))


def raw_rules(schema: Schema) -> list[Mapping[str, Any]]:
    """Return the rules of one node as they are written."""
    found = schema.raw.get("x-kubernetes-validations")
    return [raw for raw in found if isinstance(raw, dict)] if isinstance(found, list) else []


def _compiled(schema: Schema, kind: CelType | None, raw: Mapping[str, Any]) -> Rule:
    text = str(raw.get("rule", ""))
    if not text.strip():
        return Rule(raw)
    if kind is None:
        return Rule(raw, error="failed to convert to declType for CEL validation rules")
    old = optional_of(kind) if raw.get("optionalOldSelf") else kind
    variables = {"self": kind, "oldSelf": old}
    try:
        program = compile_expression(text, variables)
    except CompileError as error:
        return Rule(raw, error=f"compilation failed: {error}")
    if program.type.name != "bool":
        return Rule(raw, error="cel expression must evaluate to a bool")
    message, complaint = _message(raw, variables)
    return Rule(
        raw,
        program,
        message=message,
        message_error=complaint,
        field_path=_field_path(schema, raw),
        convert=conversion(schema, _all_reads(program, message)),
    )


def _message(raw: Mapping[str, Any], variables: dict[str, CelType]) -> tuple[Program | None, str]:
    text = str(raw.get("messageExpression") or "")
    if not text.strip():
        return None, ""
    try:
        program = compile_expression(text, variables)
    except CompileError as error:
        return None, f"messageExpression compilation failed: {error}"
    if program.type.name != "string":
        return None, "messageExpression must evaluate to a string"
    return program, ""


def _all_reads(*programs: Program | None) -> frozenset[str] | None:
    read: set[str] = set()
    for program in programs:
        if program is not None:
            if program.reads is None:
                return None
            read |= program.reads
    return frozenset(read)


def _field_path(schema: Schema, raw: Mapping[str, Any]) -> str:
    if not raw.get("fieldPath"):
        return ""
    try:
        steps, _ = field_paths.resolved_path(str(raw["fieldPath"]).strip(), schema)
    except field_paths.FieldPathError:
        return ""
    return field_paths.rendered(steps)


def _build(schema: Schema, *, root: bool) -> RuleNode:
    """Return the rules at *schema* and below."""
    rules: tuple[Rule, ...] = ()
    if raw_rules(schema):
        rules = compiled_rules(schema, declared(schema, root=root))
    node = RuleNode(schema, rules)
    for name, child in schema.properties():
        below = _build_lazily(child)
        if below is not None:
            node.fields[name] = below
    if schema.items is not None:
        node.items = _build_lazily(schema.items)
    if schema.additional is not None:
        node.additional = _build_lazily(schema.additional)
    return node


def _build_lazily(schema: Schema) -> RuleNode | None:
    # Most schemas have no rules anywhere below; asking the raw form first spares their types.
    if not has_rules(schema.raw):
        return None
    node = _build(schema, root=schema.embedded)
    return None if node.empty else node


def has_rules(raw: Any) -> bool:
    """Tell whether a raw schema has rules anywhere."""
    spend(_LOOK_UNITS)
    if isinstance(raw, dict):
        return bool(raw.get("x-kubernetes-validations")) or any(map(has_rules, raw.values()))
    return isinstance(raw, list) and any(map(has_rules, raw))


def _build_root(schema: Schema) -> RuleNode | None:
    if not has_rules(schema.raw):
        return None
    node = _build(schema, root=True)
    return None if node.empty else node


def _all_judge_changes(raw: Any) -> bool:
    spend(_LOOK_UNITS)
    if isinstance(raw, list):
        return all(map(_all_judge_changes, raw))
    if not isinstance(raw, dict):
        return True
    rules = raw.get("x-kubernetes-validations") or ()
    return all(map(_judges_changes, rules)) and all(map(_all_judge_changes, raw.values()))


def _judges_changes(rule: Any) -> bool:
    """Tell whether a rule surely uses ``oldSelf``: no string, comment or field is called so."""
    if not isinstance(rule, dict) or rule.get("optionalOldSelf"):
        return False
    text = str(rule.get("rule", ""))
    before, *after = text.split("oldSelf")
    if not after or any(mark in text for mark in _QUOTES):
        return False
    around = zip([before, *after[:-1]], after, strict=True)
    return not any(
        left.rstrip().endswith(".") or _is_of_name(left[-1:]) or _is_of_name(right[:1])
        for left, right in around
    )


def _is_of_name(character: str) -> bool:
    return character.isalnum() or character == "_"


_ROOTS: Final[Roots[RuleNode | None]] = Roots(_build_root)
_CHANGES_ONLY: Final[Roots[bool]] = Roots(lambda schema: _all_judge_changes(schema.raw))
