"""The register of functions: one declaration serves checking, evaluation and cost.

A function is declared with CEL's view of it (``string.(int) bool`` is a method of strings) and
what computes it. ``linear`` functions read their whole first argument, which costs a tenth of a
unit per element or byte, as in Kubernetes; ``product`` is for regular expressions, where the
pattern's length counts too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from skerry.logic.cel.types import CelType, signature

Implementation = TypeVar("Implementation", bound=Callable[..., Any])


class Overload(NamedTuple):
    """One way to call a function; of a method the first parameter is the receiver."""

    parameters: tuple[CelType, ...]
    result: CelType
    run: Callable[..., Any]
    member: bool
    weight: str


OVERLOADS: dict[str, list[Overload]] = {}


def declare(
    name: str, *signatures: str, weight: str = ""
) -> Callable[[Implementation], Implementation]:
    """Register what follows under *name*, once for each signature."""

    def register(run: Implementation) -> Implementation:
        for text in signatures:
            parameters, result, member = signature(text)
            OVERLOADS.setdefault(name, []).append(Overload(parameters, result, run, member, weight))
        return run

    return register
