"""What compiling an expression yields, and the scope it runs in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeAlias

from skerry.logic.machinery.cel.ast import Node
from skerry.logic.machinery.cel.types import MAX_REQUEST_BYTES, CelType

# Variables by name; ``COST`` holds what the run may still spend. No CEL name looks like it.
Scope: TypeAlias = dict[str, Any]
COST = "\0cost"


class CostExceeded(Exception):
    """An expression did more work than one call may."""


class Typed(NamedTuple):
    """A compiled expression."""

    type: CelType
    run: Callable[[Scope], Any]
    # What one run costs apart from loops and long reads; the most it can cost.
    cost: float
    worst: float
    # Of fields of a variable: its name, then each field's key and how the rule writes it.
    path: tuple[str, ...] = ()
    # The value of a literal, alone in its tuple.
    literal: tuple[Any, ...] = ()


class Compiling(Protocol):
    """The compiler, as those who compile one sort of call see it."""

    # What is declared where the call stands.
    variables: dict[str, CelType]
    # Whether lists and maps may mix types here, as the arguments of ``format`` do.
    mixed: bool

    def compile(self, node: Node) -> Typed:
        """Return *node* compiled."""

    def operand(self, inner: Node, field: str) -> Typed:
        """Return what *field* is selected of, compiled."""

    def field(self, node: Node, owner: CelType, name: str) -> tuple[str, CelType]:
        """Return the key and the type of a field of *owner*."""

    def fail(self, node: Node, message: str) -> ValueError:
        """Return the error that says where *node* stands."""


# One element or byte read.
READ_COST = 0.1
# One character of a regular expression, per string byte read.
PATTERN_COST = 0.25
# A list whose length nobody declared can be as long as a request allows.
UNKNOWN_SIZE = MAX_REQUEST_BYTES // 2


def size_of(kind: CelType) -> int:
    """Return how large a value of *kind* can be."""
    if kind.size is not None:
        return kind.size
    return UNKNOWN_SIZE if kind.name in ("string", "bytes", "list", "map") else 1


def charge(scope: Scope, cost: float) -> None:
    """Take *cost* from what the run may still spend."""
    scope[COST] -= cost
    if scope[COST] < 0:
        raise CostExceeded
