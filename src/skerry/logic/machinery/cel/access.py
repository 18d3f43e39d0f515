"""Reading fields: whole paths at once, since most of what expressions do is that.

``object.metadata.name`` is one closure, not three that call each other. What is missing on the way
is looked for only when something is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from skerry.logic.machinery.cel.typed import Scope, Typed
from skerry.logic.machinery.cel.values import EvaluationError

Run = Callable[[Scope], Any]


def variable(name: str) -> Run:
    """Return what reads a variable."""
    return lambda scope: scope[name]


def get(operand: Typed, key: str, shown: str) -> Run:
    """Return what reads the field *key*, which the expression calls *shown*."""
    if operand.path:
        return _path((*operand.path, key, shown))
    source = operand.run

    def run(scope: Scope) -> Any:
        value = source(scope)
        try:
            return value[key]
        except (KeyError, TypeError) as error:
            raise EvaluationError(f"no such key: {shown}") from error

    return run


def has(operand: Typed, key: str) -> Run:
    """Return what tells whether there is a field *key*."""
    source = operand.run

    def run(scope: Scope) -> bool:
        value = source(scope)
        return isinstance(value, dict) and key in value

    return run


def _path(path: tuple[str, ...]) -> Run:
    name, keys, shown = path[0], path[1::2], path[2::2]

    def missing(value: Any) -> EvaluationError:
        for key, each in zip(keys, shown, strict=True):
            try:
                value = value[key]
            except (KeyError, TypeError):
                break
        return EvaluationError(f"no such key: {each}")

    if len(keys) == 1:
        (only,) = keys

        def run_one(scope: Scope) -> Any:
            value = scope[name]
            try:
                return value[only]
            except (KeyError, TypeError) as error:
                raise missing(value) from error

        return run_one
    first, second = keys[:2]
    if len(keys) == 2:

        def run_two(scope: Scope) -> Any:
            value = scope[name]
            try:
                return value[first][second]
            except (KeyError, TypeError) as error:
                raise missing(value) from error

        return run_two
    rest = keys[2:]

    def run(scope: Scope) -> Any:
        value = scope[name]
        try:
            found = value[first][second]
            for key in rest:
                found = found[key]
        except (KeyError, TypeError) as error:
            raise missing(value) from error
        return found

    return run
