"""The register of functions: one declaration serves checking, evaluation and cost.

A function is declared with CEL's view of it (``string.(int) bool`` is a method of strings) and
what computes it. ``weight`` is how Kubernetes estimates a call before it knows the values:
``linear`` functions read their whole first argument, which costs a tenth of a unit per element or
byte; ``product`` is for regular expressions, where the pattern's length counts too.

What a call really costs is charged when the values are known, before it is made: by ``price``, or
by a ``metered`` function itself, which is given the scope first. Without either, a weighted
function costs a tenth of a unit for each element or byte of all its arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from skerry.logic.machinery.cel.typed import READ_COST, Scope, charge
from skerry.logic.machinery.cel.types import CelType, signature

Implementation = TypeVar("Implementation", bound=Callable[..., Any])
Price = Callable[..., float]
_MEASURED = frozenset((str, bytes, list, dict))
# Kubernetes joins lists without copying; we do not, and pay for it.
_COPY_COST = 0.2


def reading(*values: Any) -> float:
    """Return what it costs to read all of *values*, not counting what lies inside members."""
    return READ_COST * sum(len(value) for value in values if type(value) in _MEASURED)


def copying(left: list[Any], right: list[Any]) -> float:
    """Return what it costs to join two lists; each member is counted as used once more."""
    return (len(left) + len(right)) * _COPY_COST


# Reading an address, a time or a URL takes some microseconds beside what its length takes.
_PARSE_COST = 40


def parsing(*values: Any) -> float:
    """Return what it costs to make something else of short texts."""
    return _PARSE_COST + reading(*values)


class Overload(NamedTuple):
    """One way to call a function; of a method the first parameter is the receiver."""

    parameters: tuple[CelType, ...]
    result: CelType
    run: Callable[..., Any]
    member: bool
    weight: str
    price: Price | None
    metered: bool

    def call(self, scope: Scope, *values: Any) -> Any:
        """Charge for the call and make it."""
        if self.metered:
            return self.run(scope, *values)
        if self.price is not None:
            charge(scope, self.price(*values))
        return self.run(*values)


OVERLOADS: dict[str, list[Overload]] = {}


def declare(
    name: str,
    *signatures: str,
    weight: str = "",
    price: Price | None = None,
    metered: bool = False,
) -> Callable[[Implementation], Implementation]:
    """Register what follows under *name*, once for each signature."""
    if price is None and weight and not metered:
        price = reading

    def register(run: Implementation) -> Implementation:
        for text in signatures:
            parameters, result, member = signature(text)
            OVERLOADS.setdefault(name, []).append(
                Overload(parameters, result, run, member, weight, price, metered)
            )
        return run

    return register
