"""Patches take work in proportion to themselves and to the object, and have limits where not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from skerry.api.errors import BadRequest, Invalid, RequestEntityTooLarge
from skerry.api.schema import Schema
from skerry.logic.machinery.patch import apply_json_patch, apply_merge_patch, apply_strategic_patch
from tests.kit.counting import growth

SCHEMA = Schema(
    {
        "type": "object",
        "properties": {
            "list": {
                "type": "array",
                "items": {"type": "object", "properties": {"name": {"type": "string"}}},
                "x-kubernetes-patch-merge-key": "name",
                "x-kubernetes-patch-strategy": "merge",
            },
            "set": {
                "type": "array",
                "items": {"type": "string"},
                "x-kubernetes-patch-strategy": "merge",
            },
        },
    }
)


def named(count: int, start: int = 0) -> list[dict[str, Any]]:
    return [{"name": f"n{i}"} for i in range(start, start + count)]


STRATEGIC: dict[str, Callable[[int], tuple[dict[str, Any], dict[str, Any]]]] = {
    "deletions": lambda n: (
        {"list": named(n)},
        {"list": [{"$patch": "delete", "name": f"n{i}"} for i in range(n)]},
    ),
    "additions": lambda n: ({"list": named(n)}, {"list": named(n, n)}),
    "merges": lambda n: ({"list": named(n)}, {"list": [{**e, "v": 1} for e in named(n)]}),
    "order": lambda n: (
        {"list": named(n)},
        {"list": named(n)[::-1], "$setElementOrder/list": named(n)[::-1]},
    ),
    "scalars": lambda n: (
        {"set": [f"s{i}" for i in range(n)]},
        {"set": [f"t{i}" for i in range(n)]},
    ),
    "scalars deleted": lambda n: (
        {"set": [f"s{i}" for i in range(n)]},
        {"$deleteFromPrimitiveList/set": [f"s{i}" for i in range(n)]},
    ),
    "retained keys": lambda n: (
        {f"k{i}": 1 for i in range(n)},
        {"$retainKeys": [f"k{i}" for i in range(n)]},
    ),
}


@pytest.mark.parametrize("name", STRATEGIC)
def test_a_strategic_patch_takes_work_in_proportion(name: str) -> None:
    def patch(size: int) -> Callable[[], object]:
        obj, change = STRATEGIC[name](size)
        return lambda: apply_strategic_patch(obj, change, SCHEMA)

    assert growth(patch, 200) < 2.4


def test_elements_of_one_key_are_limited() -> None:
    patch = {"list": [{"name": "a", f"k{i}": i} for i in range(11)]}
    with pytest.raises(BadRequest, match="more than 10 elements"):
        apply_strategic_patch({"list": [{"name": "a"}]}, patch, SCHEMA)
    few = apply_strategic_patch({"list": []}, {"list": patch["list"][:10]}, SCHEMA)
    assert len(few["list"]) == 1


def test_elements_that_json_patches_move_are_limited() -> None:
    obj = {"list": [0] * 100_000}
    operations = [{"op": "add", "path": "/list/0", "value": 1}] * 200
    with pytest.raises(RequestEntityTooLarge, match="moves within lists"):
        apply_json_patch(obj, operations)
    with pytest.raises(RequestEntityTooLarge):
        apply_json_patch(obj, [{"op": "remove", "path": "/list/0"}] * 200)
    assert len(apply_json_patch(obj, operations[:50])["list"]) == 100_050


def test_json_patches_that_nest_without_end_are_refused() -> None:
    """Few operations, each of which nests a deep value in the one before."""
    deep: Any = {}
    for _ in range(180):
        deep = {"a": deep}
    operations = [{"op": "add", "path": "/a" * (180 * i + 1), "value": deep} for i in range(10)]
    with pytest.raises(Invalid):
        apply_json_patch({}, operations)


@pytest.mark.parametrize("op", ["add", "replace", "test", "remove", "copy", "move"])
def test_a_json_patch_takes_work_in_proportion(op: str) -> None:
    def patch(size: int) -> Callable[[], object]:
        obj = {f"k{i}": {"v": i} for i in range(size)}
        operations = [
            {"op": op, "path": f"/k{i}", "from": f"/k{i}", "value": {"v": i}} for i in range(size)
        ]
        return lambda: apply_json_patch(obj, operations)

    assert growth(patch, 200) < 2.4


def test_a_merge_patch_takes_work_in_proportion() -> None:
    def patch(size: int) -> Callable[[], object]:
        obj = {f"k{i}": {"v": i} for i in range(size)}
        return lambda: apply_merge_patch(obj, {f"k{i}": {"v": None} for i in range(size)})

    assert growth(patch, 200) < 2.4
