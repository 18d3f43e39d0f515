"""The rules of schemas take work in proportion to the object, whatever is wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from skerry.api.schema import Schema
from skerry.logic.machinery.schema import apply_defaults, prune, validate, validate_update
from skerry.logic.machinery.schema.ratcheting import Correlation
from tests.kit.counting import growth

ITEM = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "size": {"type": "integer", "maximum": 5}},
}
SCHEMA = Schema(
    {
        "type": "object",
        "properties": {
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
            "open": {"type": "object", "properties": {"a": {"type": "string"}}},
            "unique": {"type": "array", "uniqueItems": True, "items": {"type": "integer"}},
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "list": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": ITEM,
            },
            "plain": {"type": "array", "items": ITEM},
        },
    }
)


def named(count: int, size: int) -> list[dict[str, Any]]:
    return [{"name": f"n{i}", "size": size} for i in range(count)]


OBJECTS: dict[str, Callable[[int], dict[str, Any]]] = {
    "unknown fields": lambda n: {f"k{i}": 1 for i in range(n)},
    "unknown fields below": lambda n: {"open": {f"k{i}": {} for i in range(n)}},
    "nulls in a map": lambda n: {"map": {f"k{i}": None for i in range(n)}},
    "nulls among fields": lambda n: {f"k{i}": None for i in range(n)},
    "wrong types in a map": lambda n: {"map": {f"k{i}": i for i in range(n)}},
    "different items": lambda n: {"unique": list(range(n))},
    "equal items": lambda n: {"set": ["same"] * n},
    "equal keys": lambda n: {"list": [{"name": "same"}] * n},
    "items without keys": lambda n: {"list": [{}] * n},
    "items that break a rule": lambda n: {"plain": named(n, 9)},
}


@pytest.mark.parametrize("name", OBJECTS)
def test_checking_an_object_takes_work_in_proportion_to_it(name: str) -> None:
    def check(size: int) -> Callable[[], object]:
        obj, again = OBJECTS[name](size), OBJECTS[name](size)

        def all_of_it() -> None:
            validate(SCHEMA, obj)
            apply_defaults(SCHEMA, obj)
            prune(SCHEMA, again)

        return all_of_it

    assert growth(check, 300) < 2.3


@pytest.mark.parametrize("kind", ["list", "plain", "map"])
def test_forgiving_an_update_takes_work_in_proportion_to_the_object(kind: str) -> None:
    """Every item is wrong, and one before them all has changed."""

    def update(size: int) -> Callable[[], object]:
        members: Any = {f"k{i}": i for i in range(size)} if kind == "map" else named(size, 9)
        old = {"open": {"a": "before"}, kind: members}
        new = {"open": {"a": "after"}, kind: members}
        return lambda: validate_update(SCHEMA, new, old)

    assert growth(update, 200) < 2.3


def test_a_correlation_compares_a_node_once() -> None:
    new = {"list": named(50, 9), "open": {"a": "x"}}
    old = {"list": [*reversed(named(50, 9))], "open": {"a": "y"}}
    correlation = Correlation(SCHEMA, new, old)
    for index in range(50):
        assert correlation.unchanged((((None, "list"), index), "size"))
    assert not correlation.unchanged((((None, "open")), "a"))
