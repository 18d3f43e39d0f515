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
    keys = path[1::2]
    if len(keys) == 1:
        return _one(path)
    return _two(path) if len(keys) == 2 else _more(path)


def _missing(value: Any, path: tuple[str, ...]) -> EvaluationError:
    """Return the complaint about the first field of *path* that *value* does not have."""
    for key, shown in zip(path[1::2], path[2::2], strict=True):
        try:
            value = value[key]
        except (KeyError, TypeError):
            return EvaluationError(f"no such key: {shown}")
    return EvaluationError(f"no such key: {path[-1]}")


def _one(path: tuple[str, ...]) -> Run:
    name, key = path[:2]

    def run(scope: Scope) -> Any:
        value = scope[name]
        try:
            return value[key]
        except (KeyError, TypeError) as error:
            raise _missing(value, path) from error

    return run


def _two(path: tuple[str, ...]) -> Run:
    name, first, second = path[0], path[1], path[3]

    def run(scope: Scope) -> Any:
        value = scope[name]
        try:
            return value[first][second]
        except (KeyError, TypeError) as error:
            raise _missing(value, path) from error

    return run


def _more(path: tuple[str, ...]) -> Run:
    name, keys = path[0], path[1::2]

    def run(scope: Scope) -> Any:
        value = found = scope[name]
        try:
            for key in keys:
                found = found[key]
        except (KeyError, TypeError) as error:
            raise _missing(value, path) from error
        return found

    return run
