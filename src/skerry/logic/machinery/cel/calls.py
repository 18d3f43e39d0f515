"""Calls of declared functions: which overload is meant, now or when the values are known.

With known types one overload is chosen here and the closure calls it straight. Where ``dyn``
(int-or-string, or a mixed list) leaves several, the values decide at run time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from skerry.logic.machinery.cel import ast
from skerry.logic.machinery.cel.functions import OVERLOADS, Overload, Price
from skerry.logic.machinery.cel.lists import special_list_run
from skerry.logic.machinery.cel.typed import (
    PATTERN_COST,
    READ_COST,
    Compiling,
    Scope,
    Typed,
    charge,
    size_of,
)
from skerry.logic.machinery.cel.types import CelType, assignable, resolved
from skerry.logic.machinery.cel.values import EvaluationError, kind_of

_MIXING = frozenset(("format",))


class Calls:
    """Compiles the calls of one expression."""

    def __init__(self, compiler: Compiling) -> None:
        self._compiler = compiler

    def compile(self, node: ast.Call) -> Typed:
        name, parts, member = self._named(node)
        if name not in OVERLOADS:
            message = f"undeclared reference to '{name}' (in container '')"
            raise self._compiler.fail(node, message)
        arguments = self._arguments(name, parts)
        kinds = [argument.type for argument in arguments]
        fitting = _fitting(name, kinds, member=member)
        if not fitting:
            shown = _shown(kinds, member=member)
            message = f"found no matching overload for '{name}' applied to '{shown}'"
            raise self._compiler.fail(node, message)
        return _made(name, fitting, arguments)

    def _named(self, node: ast.Call) -> tuple[str, list[ast.Node], bool]:
        """Return the function's full name, its operands, and whether it is a method."""
        if node.target is None:
            return node.function, list(node.arguments), False
        prefix = _qualifier(node.target, self._compiler.variables)
        full = f"{prefix}.{node.function}" if prefix else ""
        if full in OVERLOADS:
            return full, list(node.arguments), False
        return node.function, [node.target, *node.arguments], True

    def _arguments(self, name: str, parts: list[ast.Node]) -> list[Typed]:
        before, self._compiler.mixed = self._compiler.mixed, name in _MIXING
        try:
            return [self._compiler.compile(part) for part in parts]
        finally:
            self._compiler.mixed = before


def _qualifier(node: ast.Node, variables: dict[str, CelType]) -> str:
    if isinstance(node, ast.Identifier) and node.name not in variables:
        return node.name
    return ""


def _shown(kinds: list[CelType], *, member: bool) -> str:
    listed = ", ".join(map(str, kinds[1:] if member else kinds))
    return f"{kinds[0]}.({listed})" if member else f"({listed})"


def _fitting(name: str, kinds: list[CelType], *, member: bool) -> list[tuple[Overload, CelType]]:
    """Return the overloads the types allow, each with the type it would yield."""
    found = []
    for overload in OVERLOADS[name]:
        bound: dict[str, CelType] = {}
        if overload.member != member or len(overload.parameters) != len(kinds):
            continue
        if all(
            assignable(wanted, given, bound)
            for wanted, given in zip(overload.parameters, kinds, strict=True)
        ):
            found.append((overload, resolved(overload.result, bound)))
    return found


def _made(name: str, fitting: list[tuple[Overload, CelType]], arguments: list[Typed]) -> Typed:
    overload, result = fitting[0]
    if len({kind.name for _, kind in fitting}) > 1:
        result = CelType("dyn")
    kinds = [argument.type for argument in arguments]
    cost = 1 + sum(argument.cost for argument in arguments)
    worst = 1 + sum(argument.worst for argument in arguments) + _reading(overload, kinds)
    runs = [argument.run for argument in arguments]
    return Typed(_sized(name, result, kinds), _run(name, fitting, kinds, runs), cost, worst)


def _run(
    name: str,
    fitting: list[tuple[Overload, CelType]],
    kinds: list[CelType],
    runs: list[Callable[[Scope], Any]],
) -> Callable[[Scope], Any]:
    special = special_list_run(name, kinds)
    if special is not None:
        return _scoped(special, runs)
    if len(fitting) > 1 or any(kind.name == "dyn" for kind in kinds):
        return _scoped(_dispatched(name, [one for one, _ in fitting]), runs)
    overload = fitting[0][0]
    if overload.metered:
        return _scoped(overload.run, runs)
    if overload.price is not None:
        return _priced(overload.price, overload.run, runs)
    return _direct(overload.run, runs)


def _sized(name: str, result: CelType, kinds: list[CelType]) -> CelType:
    """Carry the size of the operands over to results made of them."""
    if result.name not in ("string", "bytes", "list") or not kinds:
        return result
    if name == "_+_":
        return replace(result, size=sum(size_of(kind) for kind in kinds))
    return result if result.size is not None else replace(result, size=size_of(kinds[0]))


def _reading(overload: Overload, kinds: list[CelType]) -> float:
    """Return the most a call may cost for the size of what it reads."""
    if overload.weight == "linear":
        sizes = [size_of(kind) for kind in kinds[:2]]
        return READ_COST * (min(sizes) if len(overload.parameters) == 2 else max(sizes))
    if overload.weight == "linear2":
        return float(size_of(kinds[1]))
    if overload.weight == "product":
        pattern = size_of(kinds[1]) if kinds[1].size is not None else 1
        return (size_of(kinds[0]) * READ_COST + 1) * max(pattern * PATTERN_COST, 1)
    return 0


# --- closures


def _direct(
    function: Callable[..., Any], runs: list[Callable[[Scope], Any]]
) -> Callable[[Scope], Any]:
    if len(runs) == 1:
        (only,) = runs
        return lambda scope: function(only(scope))
    if len(runs) == 2:
        first, second = runs
        return lambda scope: function(first(scope), second(scope))
    return lambda scope: function(*(run(scope) for run in runs))


def _scoped(
    function: Callable[..., Any], runs: list[Callable[[Scope], Any]]
) -> Callable[[Scope], Any]:
    if len(runs) == 1:
        (only,) = runs
        return lambda scope: function(scope, only(scope))
    if len(runs) == 2:
        first, second = runs
        return lambda scope: function(scope, first(scope), second(scope))
    return lambda scope: function(scope, *(run(scope) for run in runs))


def _priced(
    price: Price, function: Callable[..., Any], runs: list[Callable[[Scope], Any]]
) -> Callable[[Scope], Any]:
    """Charge a call for what its arguments turn out to be."""

    if len(runs) == 1:
        (only,) = runs

        def run_one(scope: Scope) -> Any:
            value = only(scope)
            charge(scope, price(value))
            return function(value)

        return run_one

    def run(scope: Scope) -> Any:
        values = [one(scope) for one in runs]
        charge(scope, price(*values))
        return function(*values)

    return run


# Of a list the members count, too; of what has no name here there may be any number of types.
_UNDECIDED = frozenset(("list", "dyn"))


def _dispatched(name: str, overloads: list[Overload]) -> Callable[..., Any]:
    # What types alone decide is decided once; there are at most some dozen of them.
    known: dict[tuple[type, ...], Callable[..., Any]] = {}

    def call(scope: Scope, *values: Any) -> Any:
        found = known.get(tuple(map(type, values)))
        if found is not None:
            return found(scope, *values)
        kinds = tuple(map(kind_of, values))
        for overload in overloads:
            if all(map(_takes, overload.parameters, kinds, values)):
                if not _UNDECIDED.intersection(kinds):
                    known[tuple(map(type, values))] = overload.call
                return overload.call(scope, *values)
        raise EvaluationError(f"no such overload: {name}({', '.join(kinds)})")

    return call


def _takes(parameter: CelType, kind: str, value: Any) -> bool:
    """Tell whether a value may be passed; of a list's elements the first speaks for all."""
    if parameter.name == "dyn" or parameter.name.startswith("~"):
        return True
    if parameter.name != kind:
        return False
    if kind == "list" and value and parameter.parameters:
        return _takes(parameter.parameters[0], kind_of(value[0]), value[0])
    return True
