"""ValidatingAdmissionPolicies compiled: their expressions as programs.

Expressions are compiled when a policy is written, where a fault is the writer's, and again by the
server that applies it; so a policy that is stored has none. One that a previous release let
through unchecked may: it then fails as its failure policy says, with the compiler's complaint.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from skerry.api.objects import Object
from skerry.logic.machinery.admission.environment import COMMON, WITH_AUTHORIZER
from skerry.logic.machinery.admission.matching import Match, match_of
from skerry.logic.machinery.cel import types
from skerry.logic.machinery.cel.compiler import CompileError, Program, compile_expression
from skerry.logic.machinery.cel.typed import Scope
from skerry.logic.machinery.cel.types import CelType

BOOL: Final = ("bool",)
STRING: Final = ("string",)
STRING_OR_NULL: Final = ("string", "null")
_SHOWN = {"null": "null_type"}


class ExpressionError(ValueError):
    """An expression that cannot be used; the text says why."""


@dataclass(frozen=True, slots=True)
class Expression:
    """One expression: its text, and its program or why there is none."""

    text: str
    program: Program | None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Validation:
    """One entry of ``validations``."""

    expression: Expression
    message: str
    message_expression: Expression | None
    reason: str


@dataclass(frozen=True, slots=True)
class Shortcut:
    """What tells whether a policy has anything to say at all.

    Policies with variables, parameters or audit annotations have none, nor those that ask the
    authorizer, which is not to be asked twice.
    """

    conditions: tuple[Callable[[Scope], Any], ...]
    validations: tuple[Callable[[Scope], Any], ...]
    # What all of them cost apart from loops.
    cost: float
    # Whether they look at the object alone, before and after.
    objects_only: bool


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy, ready to judge."""

    name: str
    match: Match
    conditions: tuple[tuple[str, Expression], ...]
    variables: Mapping[str, Program]
    # Variables that do not compile, with the complaint.
    faulty_variables: Mapping[str, str]
    validations: tuple[Validation, ...]
    audit_annotations: tuple[tuple[str, Expression], ...]
    fails_open: bool
    shortcut: Shortcut | None = None


class Scopes:
    """The declarations that a policy's expressions are compiled against.

    *object_type* is the type of ``object`` and ``oldObject``, *params_type* that of ``params``
    where the policy has parameters; both are ``dyn`` except when types are checked.
    """

    def __init__(
        self,
        spec: Mapping[str, Any],
        object_type: CelType = types.DYN,
        params_type: CelType = types.DYN,
    ) -> None:
        known = {"object": object_type, "oldObject": object_type}
        if spec.get("paramKind"):
            known["params"] = params_type
        # Match conditions see no variables, messages no authorizer.
        self.conditions: dict[str, CelType] = {**WITH_AUTHORIZER, **known}
        self._variables: dict[str, tuple[str, CelType]] = {}
        composed = {}
        if spec.get("variables"):
            composed = {"variables": CelType("object", fields=self._variables)}
        self.validations: dict[str, CelType] = {**self.conditions, **composed}
        self.messages: dict[str, CelType] = {**COMMON, **known, **composed}

    def declare(self, name: str, kind: CelType) -> None:
        """Let the expressions that follow read the variable *name*."""
        self._variables[name] = (name, kind)


def compiled(text: str, scope: dict[str, CelType], wanted: Sequence[str] = ()) -> Program:
    """Return the program of *text*; raises ``ExpressionError`` unless it is of a *wanted* type."""
    try:
        program = compile_expression(text, scope)
    except CompileError as error:
        raise ExpressionError(f"compilation failed: {error}") from error
    if wanted and program.type.name not in wanted:
        names = [_SHOWN.get(name, name) for name in wanted]
        shown = names[0] if len(names) == 1 else f"one of [{' '.join(names)}]"
        raise ExpressionError(f"must evaluate to {shown} but got {program.type}")
    return program


def _expression(text: str, scope: dict[str, CelType], wanted: Sequence[str]) -> Expression:
    try:
        return Expression(text, compiled(text, scope, wanted))
    except ExpressionError as error:
        return Expression(text, None, str(error))


def policy_of(obj: Object) -> Policy:
    """Compile a stored policy."""
    spec = obj.get("spec") or {}
    scopes = Scopes(spec)
    variables: dict[str, Program] = {}
    faulty: dict[str, str] = {}
    for raw in spec.get("variables") or ():
        found = _expression(raw.get("expression") or "", scopes.validations, ())
        if found.program is None:
            faulty[raw["name"]] = found.error
        else:
            variables[raw["name"]] = found.program
            scopes.declare(raw["name"], found.program.type)
    conditions = tuple(
        (raw["name"], _expression(raw["expression"], scopes.conditions, BOOL))
        for raw in spec.get("matchConditions") or ()
    )
    validations = tuple(_validation(raw, scopes) for raw in spec.get("validations") or ())
    return Policy(
        obj["metadata"]["name"],
        match_of(spec.get("matchConstraints")),
        conditions,
        variables,
        faulty,
        validations,
        tuple(
            (raw["key"], _expression(raw["valueExpression"], scopes.validations, STRING_OR_NULL))
            for raw in spec.get("auditAnnotations") or ()
        ),
        spec.get("failurePolicy") == "Ignore",
        _shortcut(
            spec, [each for _, each in conditions], [each.expression for each in validations]
        ),
    )


_AUTHORIZERS: Final = frozenset(WITH_AUTHORIZER.keys() - COMMON.keys())
_OBJECTS: Final = frozenset(("object", "oldObject"))
# What an expression takes beside its own steps.
RULE_UNITS: Final = 20


def _shortcut(
    spec: Mapping[str, Any], conditions: Sequence[Expression], validations: Sequence[Expression]
) -> Shortcut | None:
    if any(spec.get(part) for part in ("variables", "auditAnnotations", "paramKind")):
        return None
    programs = [each.program for each in (*conditions, *validations) if each.program is not None]
    names = frozenset[str]().union(*(each.names for each in programs))
    if len(programs) < len(conditions) + len(validations) or names & _AUTHORIZERS:
        return None
    runs = tuple(each.run for each in programs)
    return Shortcut(
        runs[: len(conditions)],
        runs[len(conditions) :],
        sum(each.cost + RULE_UNITS for each in programs),
        names <= _OBJECTS,
    )


def _validation(raw: Object, scopes: Scopes) -> Validation:
    text = raw.get("messageExpression") or ""
    return Validation(
        _expression(raw.get("expression") or "", scopes.validations, BOOL),
        (raw.get("message") or "").strip(),
        _expression(text, scopes.messages, STRING) if text else None,
        raw.get("reason") or "Invalid",
    )


@dataclass(frozen=True, slots=True)
class Binding:
    """A binding: where its policy applies, with which parameters, and what a failure does."""

    name: str
    policy: str
    match: Match
    actions: tuple[str, ...]
    params: Mapping[str, Any] | None


def binding_of(obj: Object) -> Binding:
    """Read a stored binding."""
    spec = obj.get("spec") or {}
    return Binding(
        obj["metadata"]["name"],
        spec.get("policyName") or "",
        match_of(spec.get("matchResources")),
        tuple(spec.get("validationActions") or ()),
        spec.get("paramRef"),
    )
