"""From a tree to closures: types are checked and the program is built in the same walk.

Every expression becomes a ``Typed``: its type, a closure ``run(scope)`` that computes it, what
one evaluation of it costs apart from loops, and the most it can cost for values as large as
their declarations allow. Values are read where they lie; only declared types, known here, decide
what an access means, so nothing is converted for the engine's sake.

Costs follow cel-go's model (a variable or field 1, a call 1, a new list 10, a new map 30, a tenth
per element or byte read, a loop its body times its range). At run time the constant part is
charged once, loops and long reads as they happen. Short-circuits are not refunded, so the figure
is an upper bound of what Kubernetes would count.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from skerry.logic.machinery.cel import access, ast, extensions, kubernetes, standard, types
from skerry.logic.machinery.cel.ast import Expression, Node
from skerry.logic.machinery.cel.calls import Calls
from skerry.logic.machinery.cel.operators import OPERATORS, truth
from skerry.logic.machinery.cel.typed import COST, UNKNOWN_SIZE, CostExceeded, Scope, Typed
from skerry.logic.machinery.cel.types import CelType
from skerry.logic.machinery.cel.values import NONE, EvaluationError, Optional_, UInt
from skerry.logic.machinery.work import spend

# Imported for what they declare.
_LIBRARIES = (standard, extensions, kubernetes)

_TYPE_NAMES = {
    name: CelType(name)
    for name in (
        "bool", "int", "uint", "double", "string", "bytes", "list", "map", "type", "null_type",
        "optional_type", "google.protobuf.Timestamp", "google.protobuf.Duration", "net.IP",
        "net.CIDR", "kubernetes.Quantity", "kubernetes.URL",
    )
}  # fmt: skip
_LIST_COST, _MAP_COST = 10, 30
# Compiling one node of a tree takes some ten microseconds.
_NODE_UNITS = 100


class CompileError(ValueError):
    """The expression means nothing: an unknown name, or types that do not fit."""


@dataclass(frozen=True, slots=True)
class Program:
    """A checked expression, ready to run."""

    type: CelType
    run: Callable[[Scope], Any]
    # What a run costs apart from loops, and the most it may cost.
    cost: float
    worst: float
    names: frozenset[str]
    # Fields of ``self`` and ``oldSelf`` the expression reads; None: all of them.
    reads: frozenset[str] | None


def compile_expression(text: str, variables: dict[str, CelType]) -> Program:
    """Return the program of *text*; raise ``CompileError`` with the first complaint."""
    try:
        return compile_tree(ast.parsed(text), variables)
    except ast.ParseError as error:
        raise CompileError(str(error)) from error


def compile_tree(expression: Expression, variables: dict[str, CelType]) -> Program:
    """Return the program of a tree, which somebody may have rewritten since it was parsed."""
    try:
        compiler = _Compiler(expression, variables)
        typed = compiler.compile(expression.root)
    except RecursionError as error:
        raise CompileError("ERROR: <input>:1:1: expression recursion limit exceeded") from error
    reads = None if compiler.whole else frozenset(compiler.reads)
    return Program(typed.type, typed.run, typed.cost, typed.worst, frozenset(compiler.names), reads)


class _Compiler:
    """The walk over one expression."""

    def __init__(self, expression: Expression, variables: dict[str, CelType]) -> None:
        self._expression = expression
        self.variables = dict(variables)
        self.names: set[str] = set()
        self.reads: set[str] = set()
        self.whole = False
        # Literals inside the arguments of format() may mix types.
        self.mixed = False
        self._calls = Calls(self)

    def fail(self, node: Node, message: str) -> CompileError:
        return CompileError(self._expression.complaint(node.id, message))

    def compile(self, node: Node) -> Typed:
        spend(_NODE_UNITS)
        made: Typed = _BY_NODE[type(node)](self, node)
        return made

    # --- leaves

    def constant(self, node: ast.Constant) -> Typed:
        value = UInt(node.value) if node.unsigned else node.value
        kind = types.UINT if node.unsigned else _CONSTANTS[type(node.value)]
        size = len(value) if isinstance(value, str | bytes) else None
        return Typed(replace(kind, size=size), lambda _: value, 0, 0, literal=(value,))

    def identifier(self, node: ast.Identifier) -> Typed:
        name = node.name
        if name in self.variables:
            self._note_read(name)
            return Typed(self.variables[name], access.variable(name), 1, 1, (name,))
        if name in _TYPE_NAMES:
            kind = _TYPE_NAMES[name]
            return Typed(types.TYPE, lambda _: kind, 1, 1)
        raise self.fail(node, f"undeclared reference to '{name}' (in container '')")

    def _note_read(self, name: str, field: str | None = None) -> None:
        """Take that an expression reads a variable, all of it or one field."""
        self.names.add(name)
        if name in ("self", "oldSelf"):
            if field is None:
                self.whole = True
            else:
                self.reads.add(field)

    # --- fields

    def select(self, node: ast.Select) -> Typed:
        dotted = _dotted(node)
        if dotted in _TYPE_NAMES:
            kind = _TYPE_NAMES[dotted]
            return Typed(types.TYPE, lambda _: kind, 1, 1)
        if dotted in self.variables and not node.test:
            # A variable whose name has a dot, such as authorizer.requestResource.
            self.names.add(dotted)
            return Typed(self.variables[dotted], access.variable(dotted), 1, 1, (dotted,))
        operand = self.operand(node.operand, node.field)
        if operand.type.name == "optional":
            return self._select_from_optional(node, operand)
        key, result = self.field(node, operand.type, node.field)
        cost, worst = operand.cost + 1, operand.worst + 1
        if node.test:
            return Typed(types.BOOL, access.has(operand, key), cost, worst)
        path = (*operand.path, key, node.field) if operand.path else ()
        return Typed(result, access.get(operand, key, node.field), cost, worst, path)

    def operand(self, inner: Node, field: str) -> Typed:
        """Compile what a field is read from; of a variable only that field counts as read."""
        if isinstance(inner, ast.Identifier) and inner.name in self.variables:
            name, kind = inner.name, self.variables[inner.name]
            if kind.name == "object" and field in kind.fields:
                self._note_read(name, kind.fields[field][0])
                return Typed(kind, access.variable(name), 1, 1, (name,))
        return self.compile(inner)

    def field(self, node: Node, owner: CelType, name: str) -> tuple[str, CelType]:
        """Return the JSON key and the type of a field as the rule writes it."""
        if owner.name == "dyn":
            return name, types.DYN
        if owner.name == "map" and owner.parameters:
            return name, owner.parameters[1]
        if owner.name == "object":
            found = owner.fields.get(name)
            if found is not None:
                return found
            raise self.fail(node, f"undefined field '{name}'")
        raise self.fail(node, f"type '{owner}' does not support field selection")

    def _select_from_optional(self, node: ast.Select, operand: Typed) -> Typed:
        key, result = self.field(node, operand.type.parameters[0], node.field)

        def run(scope: Scope) -> Any:
            value = operand.run(scope)
            inner: Any = value.value if value.present else None
            if not isinstance(inner, dict) or key not in inner:
                return False if node.test else NONE
            return True if node.test else Optional_(inner[key])

        made = types.BOOL if node.test else types.optional_of(result)
        return Typed(made, run, operand.cost + 1, operand.worst + 1)

    # --- literals

    def list_literal(self, node: ast.ListOf) -> Typed:
        elements = [self.compile(element) for element in node.elements]
        kinds = [
            _unwrapped(one.type) if at in node.optional else one.type
            for at, one in enumerate(elements)
        ]
        element = self._common(node, kinds)
        runs = [(one.run, at in node.optional) for at, one in enumerate(elements)]
        cost = _LIST_COST + sum(one.cost for one in elements)
        worst = _LIST_COST + sum(one.worst for one in elements)
        return Typed(types.list_of(element, len(elements)), _list_run(runs), cost, worst)

    def map_literal(self, node: ast.MapOf) -> Typed:
        if node.message:
            raise self.fail(node, f"undeclared reference to '{node.message}' (in container '')")
        keys = [self.compile(key) for key, _, _ in node.entries]
        values = [self.compile(value) for _, value, _ in node.entries]
        kinds = [
            _unwrapped(value.type) if entry[2] else value.type
            for value, entry in zip(values, node.entries, strict=True)
        ]
        runs = [
            (key.run, value.run, entry[2])
            for key, value, entry in zip(keys, values, node.entries, strict=True)
        ]
        key = self._common(node, [key.type for key in keys])
        cost = _MAP_COST + sum(one.cost for one in (*keys, *values))
        worst = _MAP_COST + sum(one.worst for one in (*keys, *values))
        made = types.map_of(key, self._common(node, kinds), len(values))
        return Typed(made, _map_run(runs), cost, worst)

    def _common(self, node: Node, kinds: list[CelType]) -> CelType:
        """Return the one type of a literal's elements."""
        if not kinds:
            return types.DYN
        first = next((kind for kind in kinds if kind.name != "null"), kinds[0])
        for kind in kinds:
            if not types.assignable(first, kind, {}):
                if self.mixed:
                    return types.DYN
                raise self.fail(node, f"expected type '{first}' but found '{kind}'")
        return types.DYN if any(kind.name == "dyn" for kind in kinds) else first

    # --- calls and loops

    def call(self, node: ast.Call) -> Typed:
        special = OPERATORS.get(node.function)
        if special is not None:
            return special(self, node)
        return self._calls.compile(node)

    def comprehension(self, node: ast.Comprehension) -> Typed:
        source = self.compile(node.range)
        element = self._element(node, source.type)
        gathered = _gathered(node)
        if gathered is not None:
            return self._gather(node, source, element, *gathered)
        start = self.compile(node.start)
        outer = dict(self.variables)
        self.variables[node.variable] = element
        step, condition = self._body(node, start.type)
        self.variables = {**outer, node.result_variable: start.type}
        result = self.compile(node.result)
        self.variables = outer
        body = condition.cost + step.cost
        run = _fold(node, source, start, condition, step, result, body)
        times = source.type.size if source.type.size is not None else UNKNOWN_SIZE
        cost = source.cost + start.cost + result.cost
        worst = source.worst + start.worst + result.worst + times * (condition.worst + step.worst)
        made = result.type
        if made.name == "list" and made.size is None:
            made = replace(made, size=source.type.size)
        return Typed(made, run, cost, worst)

    def _gather(
        self,
        node: ast.Comprehension,
        source: Typed,
        element: CelType,
        made: Node,
        condition: Node | None,
    ) -> Typed:
        """Compile ``map`` and ``filter``: a list is gathered, not added to again and again.

        It costs what the fold it stands for costs.
        """
        outer = dict(self.variables)
        self.variables[node.variable] = element
        member = self.compile(made)
        test = None if condition is None else self._test(node, self.compile(condition))
        self.variables = outer
        # Variable, sum and the new list of one; of a choice also the condition.
        body = 2 + _LIST_COST + member.cost + (0 if test is None else test.cost)
        each = 2 + _LIST_COST + member.worst + (0 if test is None else test.worst)
        times = source.type.size if source.type.size is not None else UNKNOWN_SIZE
        result = types.list_of(self._common(node, [member.type]), source.type.size)
        run = _gathering(node.variable, source, member, test, body)
        # An empty list to begin with, and the result read once.
        cost, worst = source.cost + _LIST_COST + 1, source.worst + _LIST_COST + 1
        return Typed(result, run, cost, worst + times * each)

    def _test(self, node: ast.Comprehension, condition: Typed) -> Typed:
        if condition.type.name not in ("bool", "dyn"):
            shown = f"({condition.type}, list, list)"
            message = f"found no matching overload for '_?_:_' applied to '{shown}'"
            raise self.fail(node.step, message)
        return condition

    def _element(self, node: ast.Comprehension, source: CelType) -> CelType:
        if source.name in ("list", "map") and source.parameters:
            return source.parameters[0]
        if source.name in ("dyn", "list", "map"):
            return types.DYN
        message = f"expression of type '{source}' cannot be range of a comprehension"
        raise self.fail(node.range, f"{message} (must be list, map, or dynamic)")

    def _body(self, node: ast.Comprehension, start: CelType) -> tuple[Typed, Typed]:
        self.variables[node.result_variable] = start
        return self.compile(node.step), self.compile(node.condition)


_CONSTANTS: dict[type, CelType] = {
    bool: types.BOOL,
    int: types.INT,
    float: types.DOUBLE,
    str: types.STRING,
    bytes: types.BYTES,
    type(None): types.NULL,
}
_BY_NODE: dict[type, Any] = {
    ast.Constant: _Compiler.constant,
    ast.Identifier: _Compiler.identifier,
    ast.Select: _Compiler.select,
    ast.Call: _Compiler.call,
    ast.ListOf: _Compiler.list_literal,
    ast.MapOf: _Compiler.map_literal,
    ast.Comprehension: _Compiler.comprehension,
}


def _dotted(node: Node) -> str:
    """Return the dotted name a chain of selections spells, or nothing."""
    if isinstance(node, ast.Identifier):
        return node.name
    if isinstance(node, ast.Select) and not node.test:
        inner = _dotted(node.operand)
        return f"{inner}.{node.field}" if inner else ""
    return ""


def _gathered(node: ast.Comprehension) -> tuple[Node, Node | None] | None:
    """Return what ``map`` and ``filter`` put into their list, and on which condition; None for
    any other fold."""
    step, condition = node.step, None
    if isinstance(step, ast.Call) and step.function == "_?_:_":
        condition, step, otherwise = step.arguments
        if not _is_variable(otherwise, node.result_variable):
            return None
    if not isinstance(step, ast.Call) or step.function != "_+_" or len(step.arguments) != 2:
        return None
    former, added = step.arguments
    if not _is_variable(former, node.result_variable) or not isinstance(added, ast.ListOf):
        return None
    return (added.elements[0], condition) if len(added.elements) == 1 else None


def _is_variable(node: Node, name: str) -> bool:
    return isinstance(node, ast.Identifier) and node.name == name


def _unwrapped(kind: CelType) -> CelType:
    return kind.parameters[0] if kind.name == "optional" else types.DYN


# --- closures


def _list_run(runs: list[tuple[Callable[[Scope], Any], bool]]) -> Callable[[Scope], Any]:
    def run(scope: Scope) -> list[Any]:
        made = []
        for element, optional in runs:
            value = element(scope)
            if not optional:
                made.append(value)
            elif value.present:
                made.append(value.value)
        return made

    return run


def _map_run(
    runs: list[tuple[Callable[[Scope], Any], Callable[[Scope], Any], bool]],
) -> Callable[[Scope], Any]:
    def run(scope: Scope) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        for key, member, optional in runs:
            value = member(scope)
            if optional:
                if not value.present:
                    continue
                value = value.value
            name = key(scope)
            if name in made:
                raise EvaluationError(f"Failed with repeated key: {name}")
            made[name] = value
        return made

    return run


def _gathering(
    variable: str, source: Typed, member: Typed, test: Typed | None, body: float
) -> Callable[[Scope], Any]:
    make, wanted = member.run, None if test is None else test.run

    def run(scope: Scope) -> list[Any]:
        items = source.run(scope)
        saved = scope.get(variable)
        made: list[Any] = []
        try:
            for item in items:
                scope[COST] -= body
                if scope[COST] < 0:
                    raise CostExceeded
                scope[variable] = item
                if wanted is None or truth(wanted(scope)):
                    made.append(make(scope))
            return made
        finally:
            scope[variable] = saved

    return run


def _fold(
    node: ast.Comprehension,
    source: Typed,
    start: Typed,
    condition: Typed,
    step: Typed,
    result: Typed,
    body: float,
) -> Callable[[Scope], Any]:
    """Return what goes through a list or map, one step for each member.

    A step that fails does not end it: ``exists`` is true where any member is, whatever the others
    do. The first failure counts when the condition has not ended the loop, that is, when nothing
    has settled the result.
    """
    variable, accumulator = node.variable, node.result_variable

    def run(scope: Scope) -> Any:
        items = source.run(scope)
        failed: EvaluationError | None = None
        saved = scope.get(variable), scope.get(accumulator)
        try:
            scope[accumulator] = start.run(scope)
            for item in items:
                scope[COST] -= body
                if scope[COST] < 0:
                    raise CostExceeded
                scope[variable] = item
                if not condition.run(scope):
                    return result.run(scope)
                try:
                    scope[accumulator] = step.run(scope)
                except EvaluationError as error:
                    failed = failed or error
            if failed is not None and condition.run(scope):
                raise failed
            return result.run(scope)
        finally:
            scope[variable], scope[accumulator] = saved

    return run
