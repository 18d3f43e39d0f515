"""Operators that decide which operand to compute: logic, the conditional, optional access.

``&&`` and ``||`` forgive an error on one side when the other side settles the result, in either
order. That is CEL's rule, not an optimisation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from skerry.logic.machinery.cel import ast, types
from skerry.logic.machinery.cel.standard import map_key
from skerry.logic.machinery.cel.typed import Compiling, Scope, Typed
from skerry.logic.machinery.cel.types import CelType, assignable
from skerry.logic.machinery.cel.values import NONE, EvaluationError, Optional_


def _logic(settles: bool) -> Callable[[Compiling, ast.Call], Typed]:
    """Return the compiler of ``||`` (settled by true) or ``&&`` (settled by false)."""

    def compile_(compiler: Compiling, node: ast.Call) -> Typed:
        left, right = (compiler.compile(part) for part in node.arguments)
        for part in (left, right):
            if part.type.name not in ("bool", "dyn"):
                shown = f"({left.type}, {right.type})"
                message = f"found no matching overload for '{node.function}' applied to '{shown}'"
                raise compiler.fail(node, message)
        run = _absorbing(left.run, right.run, settles)
        return Typed(types.BOOL, run, left.cost + right.cost, left.worst + right.worst)

    return compile_


def truth(value: Any) -> bool:
    """Return *value*, which must be a bool."""
    if value is True or value is False:
        return bool(value)
    raise EvaluationError("no such overload")


def _absorbing(
    left: Callable[[Scope], Any], right: Callable[[Scope], Any], settles: bool
) -> Callable[[Scope], Any]:
    goes_on = not settles

    def run(scope: Scope) -> bool:
        try:
            value = left(scope)
            if value is not goes_on and truth(value) is settles:
                return settles
        except EvaluationError as failed:
            if truth(right(scope)) is settles:
                return settles
            raise failed from None
        return truth(right(scope))

    return run


def _conditional(compiler: Compiling, node: ast.Call) -> Typed:
    condition, yes, no = (compiler.compile(part) for part in node.arguments)
    result = yes.type if yes.type.name not in ("dyn", "null") else no.type
    if condition.type.name not in ("bool", "dyn") or not assignable(yes.type, no.type, {}):
        shown = f"({condition.type}, {yes.type}, {no.type})"
        message = f"found no matching overload for '_?_:_' applied to '{shown}'"
        raise compiler.fail(node, message)
    if "dyn" in (yes.type.name, no.type.name):
        result = types.DYN
    choose, first, second = condition.run, yes.run, no.run
    cost = condition.cost + max(yes.cost, no.cost)
    worst = condition.worst + max(yes.worst, no.worst)

    def run(scope: Scope) -> Any:
        return first(scope) if truth(choose(scope)) else second(scope)

    return Typed(result, run, cost, worst)


def _not_strictly_false(compiler: Compiling, node: ast.Call) -> Typed:
    """The loop condition of macros: an error does not end the loop."""
    inner = compiler.compile(node.arguments[0])

    def run(scope: Scope) -> bool:
        try:
            return inner.run(scope) is not False
        except EvaluationError:
            return True

    return Typed(types.BOOL, run, inner.cost, inner.worst)


def _chained(kind: CelType) -> tuple[CelType, bool]:
    """Return what an access works on, and whether it comes out of an optional."""
    if kind.name == "optional":
        return kind.parameters[0], True
    return kind, False


def _optional_select(compiler: Compiling, node: ast.Call) -> Typed:
    field = node.arguments[1]
    name = str(field.value) if isinstance(field, ast.Constant) else ""
    operand = compiler.operand(node.arguments[0], name)
    owner, chained = _chained(operand.type)
    key, result = compiler.field(node, owner, name)
    run = _optional_access(operand.run, lambda _: key, chained)
    return Typed(types.optional_of(result), run, operand.cost + 1, operand.worst + 1)


def _optional_index(compiler: Compiling, node: ast.Call) -> Typed:
    operand, index = (compiler.compile(part) for part in node.arguments)
    owner, chained = _chained(operand.type)
    result = owner.parameters[-1] if owner.name in ("list", "map") else types.DYN
    run = _optional_access(operand.run, index.run, chained)
    cost, worst = operand.cost + index.cost + 1, operand.worst + index.worst + 1
    return Typed(types.optional_of(result), run, cost, worst)


def _optional_access(
    operand: Callable[[Scope], Any], index: Callable[[Scope], Any], chained: bool
) -> Callable[[Scope], Any]:
    def run(scope: Scope) -> Optional_:
        value = operand(scope)
        if chained:
            if not value.present:
                return NONE
            value = value.value
        return optional_member(value, index(scope))

    return run


def optional_member(value: Any, key: Any) -> Optional_:
    """Return what *value*, a map or a list, has at *key*, if anything."""
    if isinstance(value, dict):
        return Optional_(value[key]) if map_key(key) in value else NONE
    if not isinstance(value, list) or isinstance(key, bool) or not isinstance(key, int | float):
        raise EvaluationError("no such overload")
    if not 0 <= key < len(value):
        return NONE
    if key != int(key):
        raise EvaluationError("no such overload")
    return Optional_(value[int(key)])


def _or_value(compiler: Compiling, node: ast.Call) -> Typed:
    """``x.orValue(y)``: y is computed only when needed."""
    operand = compiler.compile(_target(compiler, node))
    other = compiler.compile(node.arguments[0])
    wanted = operand.type.parameters[0] if operand.type.name == "optional" else types.DYN
    if operand.type.name not in ("optional", "dyn") or not assignable(wanted, other.type, {}):
        raise _mismatch(compiler, node, operand, other)
    result = other.type if wanted.name == "dyn" else wanted

    def run(scope: Scope) -> Any:
        value = operand.run(scope)
        if not isinstance(value, Optional_):
            raise EvaluationError("no such overload")
        return value.value if value.present else other.run(scope)

    return Typed(result, run, operand.cost + other.cost + 1, operand.worst + other.worst + 1)


def _or(compiler: Compiling, node: ast.Call) -> Typed:
    operand = compiler.compile(_target(compiler, node))
    other = compiler.compile(node.arguments[0])
    if operand.type.name != "optional" or not assignable(operand.type, other.type, {}):
        raise _mismatch(compiler, node, operand, other)

    def run(scope: Scope) -> Any:
        value = operand.run(scope)
        return value if value.present else other.run(scope)

    cost, worst = operand.cost + other.cost + 1, operand.worst + other.worst + 1
    return Typed(operand.type, run, cost, worst)


def _target(compiler: Compiling, node: ast.Call) -> ast.Node:
    if node.target is None:
        raise compiler.fail(node, f"undeclared reference to '{node.function}' (in container '')")
    return node.target


def _mismatch(compiler: Compiling, node: ast.Call, operand: Typed, other: Typed) -> ValueError:
    shown = f"{operand.type}.({other.type})"
    message = f"found no matching overload for '{node.function}' applied to '{shown}'"
    return compiler.fail(node, message)


OPERATORS: dict[str, Callable[[Compiling, ast.Call], Typed]] = {
    "_||_": _logic(settles=True),
    "_&&_": _logic(settles=False),
    "_?_:_": _conditional,
    "@not_strictly_false": _not_strictly_false,
    "_?._": _optional_select,
    "_[?_]": _optional_index,
    "orValue": _or_value,
    "or": _or,
}
