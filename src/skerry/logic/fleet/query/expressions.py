"""Expressions in two halves: what needs the whole object, and what can wait.

An object's content is in hand only while its event is handled; afterwards it is gone. What else a
row knows (its report, the Location, the SyncTarget, the placement) is kept anyway, and changes
without any event of the object. So an expression is taken apart: every largest part that reads
nothing but ``obj`` and ``status`` becomes a *part*, computed when the object is seen, and its value
is kept. What is left reads those values and the rest of the row, and can be computed at any time.

    location.labels.region == "north" && status.readyReplicas < 3
    location.labels.region == "north" && part0

Equal parts of all queries about a kind are computed and kept once. An error in a part is a value
too: it is raised where the part is read, so ``true || part0`` stays true.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import orjson

from skerry.logic.machinery.cel import ast, types
from skerry.logic.machinery.cel.ast import Expression, Node
from skerry.logic.machinery.cel.compiler import CompileError, Program, compile_tree
from skerry.logic.machinery.cel.evaluation import STUMBLES
from skerry.logic.machinery.cel.typed import COST, CostExceeded, Scope
from skerry.logic.machinery.cel.types import CelType
from skerry.logic.machinery.cel.values import EvaluationError, Optional_, Url

# Units that one expression may cost for one row. A look at every condition of a status is some
# two hundred; at a microsecond each, a thousand is as long as one row may keep all others waiting.
MAX_COST: Final = 1000
# What may be kept of one object for one part: enough for any number, name or short list.
MAX_KEPT_BYTES: Final = 4096
MAX_MESSAGE: Final = 256

_TEXT = types.STRING
_LABELS = types.map_of(_TEXT, _TEXT, 100)


def _object(**fields: CelType) -> CelType:
    return CelType("object", fields={name: (name, kind) for name, kind in fields.items()})


OF_OBJECT: Final[Mapping[str, CelType]] = {"obj": types.DYN, "status": types.DYN}
OF_ROW: Final[Mapping[str, CelType]] = {
    "report": _object(
        delivered=types.BOOL, healthy=_TEXT, reason=_TEXT, revision=types.INT, time=_TEXT
    ),
    "location": _object(name=_TEXT, cluster=_TEXT, labels=_LABELS),
    "syncTarget": _object(name=_TEXT, ready=types.BOOL, labels=_LABELS),
    "placement": _TEXT,
}


class ExpressionError(ValueError):
    """The text means nothing, is of the wrong type or costs too much; the message says which."""


@dataclass(frozen=True, slots=True)
class Failure:
    """What is kept of a part that failed; reading the part fails with the same message."""

    message: str


@dataclass(frozen=True, slots=True)
class Part:
    """What is computed while the whole object is in hand.

    Equal trees are one part. The tree is also the name by which the rest of the expression reads
    the part's value: no identifier of CEL looks like it.
    """

    tree: str
    program: Program = field(compare=False)


@dataclass(frozen=True, slots=True)
class Compiled:
    """An expression: its parts, and the rest, which reads them by name.

    ``only`` is the tree of the part that is the whole expression, if one is.
    """

    text: str
    type: CelType
    parts: tuple[Part, ...]
    rest: Program
    only: str = ""

    def reads(self, variable: str) -> bool:
        """Tell whether the rest reads a variable of the row."""
        return variable in self.rest.names


def compiled(text: str, *, with_object: bool = True) -> Compiled:
    """Return an expression over a row; raise ``ExpressionError``."""
    variables = {**(OF_OBJECT if with_object else {}), **OF_ROW}
    expression = _parsed(text)
    whole = _checked(expression, variables)
    hoist = _Hoist(expression)
    root = hoist.node(expression.root, frozenset())
    named = {part.tree: part.program.type for part in hoist.parts}
    rest = compile_tree(replace(expression, root=root), {**OF_ROW, **named})
    only = root.name if isinstance(root, ast.Identifier) and root.name in named else ""
    return Compiled(text, whole.type, tuple(hoist.parts), rest, only)


def compiled_over(text: str, variables: Mapping[str, CelType]) -> Program:
    """Return an expression over other variables; raise ``ExpressionError``."""
    return _checked(_parsed(text), dict(variables))


def _parsed(text: str) -> Expression:
    try:
        return ast.parsed(text)
    except ast.ParseError as error:
        raise ExpressionError(str(error)) from error


def _checked(expression: Expression, variables: dict[str, CelType]) -> Program:
    try:
        program = compile_tree(expression, variables)
    except CompileError as error:
        raise ExpressionError(str(error)) from error
    if program.cost > MAX_COST:
        raise ExpressionError(f"costs {program.cost:.0f} units for one row: want {MAX_COST}")
    return program


def run(program: Program, scope: Scope) -> Any:
    """Return what a program comes to; whatever goes wrong is an ``EvaluationError``.

    *scope* is changed: the budget of this run is put into it. The estimate of the program is taken
    off before it begins, and what its loops really cost comes on top.
    """
    scope[COST] = MAX_COST - program.cost
    try:
        return program.run(scope)
    except CostExceeded:
        raise EvaluationError(f"costs more than {MAX_COST} units for this row") from None
    except STUMBLES as error:
        raise EvaluationError(f"no such overload: {error}") from error


def kept(program: Program, scope: Scope) -> Any:
    """Return what is kept of a part: its value, or its failure."""
    try:
        value = run(program, scope)
    except EvaluationError as error:
        return Failure(str(error)[:MAX_MESSAGE])
    if value is None or isinstance(value, bool | int | float):
        return value
    size = _size(value)
    if size > MAX_KEPT_BYTES:
        return Failure(f"a value of {size} bytes: want {MAX_KEPT_BYTES} at most")
    return value


def _size(value: Any) -> int:
    """Return about how many bytes a value takes."""
    if isinstance(value, str):
        return len(value)
    try:
        return len(orjson.dumps(value, default=_content))
    except TypeError:
        return len(repr(value))  # an integer longer than JSON's, for one


def _content(value: Any) -> Any:
    """Return what is in a value that CEL knows and JSON does not.

    ``status.?text`` is such a value, and there may be any text in it.
    """
    if isinstance(value, Optional_):
        return value.value
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return value.text if isinstance(value, Url) else str(value)


class _Hoist:
    """The walk that takes an expression apart.

    From the top down, so that the largest parts are found and nothing inside of them is looked at.
    What reads a variable of a loop around it is no part: it has as many values as the loop turns.
    """

    def __init__(self, expression: Expression) -> None:
        self._expression = expression
        self.parts: list[Part] = []

    def node(self, node: Node, bound: frozenset[str]) -> Node:
        """Return *node* with its largest parts replaced by names; *bound* are loop variables."""
        free = _free(node)
        if free and not free & bound and free <= OF_OBJECT.keys():
            part = self._part(node)
            if part is not None:
                if part not in self.parts:
                    self.parts.append(part)
                return ast.Identifier(node.id, part.tree)
        return _WALKS[type(node)](self, node, bound)

    def _part(self, node: Node) -> Part | None:
        try:
            program = compile_tree(replace(self._expression, root=node), dict(OF_OBJECT))
        except CompileError:
            # Literals that mix types mean something only inside format().
            return None
        return Part(_shape(node), program)

    def leaf(self, node: Node, _: frozenset[str]) -> Node:
        return node

    def select(self, node: ast.Select, bound: frozenset[str]) -> Node:
        return replace(node, operand=self.node(node.operand, bound))

    def call(self, node: ast.Call, bound: frozenset[str]) -> Node:
        target = None if node.target is None else self.node(node.target, bound)
        arguments = tuple(self.node(each, bound) for each in node.arguments)
        return replace(node, target=target, arguments=arguments)

    def list(self, node: ast.ListOf, bound: frozenset[str]) -> Node:
        return replace(node, elements=tuple(self.node(each, bound) for each in node.elements))

    def map(self, node: ast.MapOf, bound: frozenset[str]) -> Node:
        entries = tuple(
            (self.node(key, bound), self.node(value, bound), optional)
            for key, value, optional in node.entries
        )
        return replace(node, entries=entries)

    def comprehension(self, node: ast.Comprehension, bound: frozenset[str]) -> Node:
        inner = bound | {node.variable, node.result_variable}
        return replace(
            node,
            range=self.node(node.range, bound),
            start=self.node(node.start, bound),
            condition=self.node(node.condition, inner),
            step=self.node(node.step, inner),
            result=self.node(node.result, inner),
        )


_WALKS: dict[type, Callable[[_Hoist, Any, frozenset[str]], Node]] = {
    ast.Constant: _Hoist.leaf,
    ast.Identifier: _Hoist.leaf,
    ast.Select: _Hoist.select,
    ast.Call: _Hoist.call,
    ast.ListOf: _Hoist.list,
    ast.MapOf: _Hoist.map,
    ast.Comprehension: _Hoist.comprehension,
}


def _free(node: Node) -> frozenset[str]:
    """Return the variables an expression reads, those of its own loops left out."""
    match node:
        case ast.Identifier():
            return frozenset((node.name,))
        case ast.Comprehension():
            own = {node.variable, node.result_variable}
            inner = _free(node.condition) | _free(node.step) | _free(node.result)
            return _free(node.range) | _free(node.start) | (inner - own)
        case _:
            return frozenset[str]().union(*map(_free, _children(node)))


def _children(node: Node) -> list[Node]:
    match node:
        case ast.Select():
            return [node.operand]
        case ast.Call():
            return [*(() if node.target is None else (node.target,)), *node.arguments]
        case ast.ListOf():
            return list(node.elements)
        case ast.MapOf():
            return [each for key, value, _ in node.entries for each in (key, value)]
        case _:
            return []


def _shape(node: Any) -> str:
    """Return what equal trees have in common: everything but the numbers of their nodes."""
    if isinstance(node, tuple):
        return f"({','.join(map(_shape, node))})"
    if not hasattr(node, "id"):
        return repr(sorted(node) if isinstance(node, frozenset) else node)
    fields = [getattr(node, name) for name in type(node).__slots__ if name != "id"]
    return f"{type(node).__name__}({','.join(map(_shape, fields))})"
