"""Calls of declared functions: which overload is meant, now or when the values are known.

With known types one overload is chosen here and the closure calls it straight. Where ``dyn``
(int-or-string, or a mixed list) leaves several, the values decide at run time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from skerry.logic.machinery.cel import ast
from skerry.logic.machinery.cel.functions import OVERLOADS, Overload, Price, reading
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
from skerry.logic.machinery.cel.values import EvaluationError, equal, kind_of

_MIXING = frozenset(("format",))
_UNMEASURED = frozenset(("bool", "int", "uint", "double"))
_EQUALITIES = frozenset(("_==_", "_!=_"))
Run = Callable[[Scope], Any]


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
    run = _run(name, [one for one, _ in fitting], arguments)
    return Typed(_sized(name, result, kinds), run, cost, worst)


def _run(name: str, fitting: list[Overload], arguments: list[Typed]) -> Run:
    kinds, runs = [one.type for one in arguments], [one.run for one in arguments]
    special = special_list_run(name, kinds)
    if special is not None:
        return _scoped(special, runs)
    if name in _EQUALITIES:
        return _equality(arguments, negated=name == "_!=_")
    if len(fitting) > 1 or any(kind.name == "dyn" for kind in kinds):
        return _dispatched(name, fitting, runs)
    overload = fitting[0]
    if overload.metered:
        return _scoped(overload.run, runs)
    if overload.price is None or (overload.price is reading and not _is_read(overload)):
        return _direct(overload.run, arguments)
    return _priced(overload.price, overload.run, runs)


def _is_read(overload: Overload) -> bool:
    """Tell whether a call's arguments have a length that is paid for."""
    return any(kind.name not in _UNMEASURED for kind in overload.parameters)


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


def _equality(arguments: list[Typed], *, negated: bool) -> Run:
    """Compare; with a literal text or truth, as most rules do, without further questions."""
    first, second = (one.run for one in arguments)
    literal = arguments[1].literal
    kind = type(literal[0]) if literal else None
    if kind not in (str, bool):
        if negated:
            return lambda scope: not equal(scope, first(scope), second(scope))
        return lambda scope: equal(scope, first(scope), second(scope))
    wanted = literal[0]

    def run(scope: Scope) -> bool:
        value = first(scope)
        # Nothing of another type equals it.
        return (value.__class__ is kind and value == wanted) is not negated

    return run


def _direct(function: Callable[..., Any], arguments: list[Typed]) -> Run:
    runs = [one.run for one in arguments]
    if len(runs) == 1:
        (only,) = runs
        return lambda scope: function(only(scope))
    if len(runs) == 2:
        first, second = runs
        if arguments[1].literal:
            (value,) = arguments[1].literal
            return lambda scope: function(first(scope), value)
        return lambda scope: function(first(scope), second(scope))
    return lambda scope: function(*(run(scope) for run in runs))


def _scoped(function: Callable[..., Any], runs: list[Run]) -> Run:
    if len(runs) == 1:
        (only,) = runs
        return lambda scope: function(scope, only(scope))
    if len(runs) == 2:
        first, second = runs
        return lambda scope: function(scope, first(scope), second(scope))
    return lambda scope: function(scope, *(run(scope) for run in runs))


def _priced(price: Price, function: Callable[..., Any], runs: list[Run]) -> Run:
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


def _dispatched(name: str, overloads: list[Overload], runs: list[Run]) -> Run:
    """Have the values decide. What their types alone decide is decided once."""
    choice = _Choice(name, overloads)
    call = choice.call
    if len(runs) == 1:
        (only,), alone = runs, choice.alone

        def run_one(scope: Scope) -> Any:
            value = only(scope)
            found = alone.get(value.__class__)
            return call(scope, value) if found is None else found(value)

        return run_one
    if len(runs) == 2:
        (first, second), pairs = runs, choice.pairs

        def run_two(scope: Scope) -> Any:
            left, right = first(scope), second(scope)
            found = pairs.get((left.__class__, right.__class__))
            return call(scope, left, right) if found is None else found(left, right)

        return run_two
    return _scoped(call, runs)


class _Choice:
    """Which of several overloads is meant by values, as known so far.

    There are at most some dozen types, so that what is remembered stays small. ``alone`` and
    ``pairs`` hold what costs nothing beyond the call itself.
    """

    def __init__(self, name: str, overloads: list[Overload]) -> None:
        self._name = name
        self._overloads = overloads
        self._known: dict[tuple[type, ...], Callable[..., Any]] = {}
        self.alone: dict[type, Callable[..., Any]] = {}
        self.pairs: dict[tuple[type, ...], Callable[..., Any]] = {}

    def call(self, scope: Scope, *values: Any) -> Any:
        given = tuple(map(type, values))
        found = self._known.get(given)
        if found is not None:
            return found(scope, *values)
        kinds = tuple(map(kind_of, values))
        for overload in self._overloads:
            if all(map(_takes, overload.parameters, kinds, values)):
                if self._settled(kinds):
                    self._remember(overload, given)
                return overload.call(scope, *values)
        raise EvaluationError(f"no such overload: {self._name}({', '.join(kinds)})")

    def _remember(self, overload: Overload, given: tuple[type, ...]) -> None:
        self._known[given] = overload.call
        if overload.price is None and not overload.metered:
            if len(given) == 1:
                self.alone[given[0]] = overload.run
            self.pairs[given] = overload.run

    def _settled(self, kinds: tuple[str, ...]) -> bool:
        """Tell whether types alone decide: of what has no name here there may be any number, and
        of a list the members count where an overload asks for them."""
        return not any(
            kind == "dyn"
            or (kind == "list" and any(_asks(one.parameters[at]) for one in self._overloads))
            for at, kind in enumerate(kinds)
        )


def _asks(parameter: CelType) -> bool:
    """Tell whether a parameter is a list of something in particular."""
    return parameter.name == "list" and any(
        inner.name != "dyn" and not inner.name.startswith("~") for inner in parameter.parameters
    )


def _takes(parameter: CelType, kind: str, value: Any) -> bool:
    """Tell whether a value may be passed; of a list's elements the first speaks for all."""
    if parameter.name == "dyn" or parameter.name.startswith("~"):
        return True
    if parameter.name != kind:
        return False
    if kind == "list" and value and parameter.parameters:
        return _takes(parameter.parameters[0], kind_of(value[0]), value[0])
    return True
