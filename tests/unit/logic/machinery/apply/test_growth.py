"""Ownership of very many fields by very many managers takes work in proportion to both together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from skerry.api.errors import Conflict
from skerry.api.schema import Schema
from skerry.logic.machinery.apply import WriteTerms, apply, track_update
from skerry.logic.machinery.apply.fieldset import FieldSet, difference, union_all
from skerry.logic.machinery.apply.managed import MAX_ENTRIES, decoded
from tests.kit.counting import growth

SCHEMA = Schema(
    {
        "type": "object",
        "properties": {
            "data": {"type": "object", "additionalProperties": {"type": "string"}},
            "metadata": {"type": "object"},
        },
    }
)
TERMS = WriteTerms(
    manager="me", api_version="v1", now="2026-01-01T00:00:00Z", schema=SCHEMA, resource="things"
)


def entry(manager: int, fields: range, operation: str = "Apply") -> dict[str, Any]:
    return {
        "manager": f"m{manager}",
        "operation": operation,
        "apiVersion": "v1",
        "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {f"f:k{i}": {} for i in fields}},
    }


def owned(managers: int, each: int, operation: str = "Apply") -> dict[str, Any]:
    """An object whose data is divided between *managers*."""
    entries = [entry(m, range(m * each, (m + 1) * each), operation) for m in range(managers)]
    data = {f"k{i}": "v" for i in range(managers * each)}
    return {
        "apiVersion": "v1",
        "kind": "Thing",
        "metadata": {"name": "a", "managedFields": entries},
        "data": data,
    }


def changed(obj: dict[str, Any]) -> dict[str, Any]:
    return {**obj, "data": dict.fromkeys(obj["data"], "w")}


@pytest.mark.parametrize("operation", ["Apply", "Update"])
@pytest.mark.parametrize("many", ["managers", "fields"])
def test_an_update_of_everything_takes_work_in_proportion(operation: str, many: str) -> None:
    def update(size: int) -> Callable[[], object]:
        live = owned(size, 4, operation) if many == "managers" else owned(4, size, operation)
        return lambda: track_update(live, changed(live), **TERMS)

    assert growth(update, 100) < 2.4


@pytest.mark.parametrize("many", ["managers", "fields"])
@pytest.mark.parametrize("force", [True, False])
def test_an_apply_over_everybody_takes_work_in_proportion(many: str, force: bool) -> None:
    def attempt(size: int) -> Callable[[], object]:
        live = owned(size, 4) if many == "managers" else owned(4, size)
        wanted = {**changed(live), "metadata": {"name": "a"}}

        def run() -> object:
            try:
                return apply(live, wanted, force=force, **TERMS)
            except Conflict as conflict:
                return conflict

        return run

    assert growth(attempt, 100) < 2.4


def test_sets_are_united_in_pairs() -> None:
    sets: list[FieldSet] = [{f"f:k{i}": {}} for i in range(7)]
    assert union_all(sets) == {f"f:k{i}": {} for i in range(7)}
    assert union_all([]) == {}
    assert growth(lambda n: lambda: union_all({f"f:k{i}": {}} for i in range(n)), 200) < 2.5


def test_a_small_set_less_a_large_one_is_a_small_task() -> None:
    large: FieldSet = {f"f:k{i}": {} for i in range(10_000)}
    assert growth(lambda n: lambda: difference({"f:k1": {}, "f:x": {}}, large), 1) < 1.1


def test_more_entries_than_the_limit_are_not_taken_over() -> None:
    with pytest.raises(ValueError, match="want at most 500"):
        decoded([entry(i, range(1)) for i in range(MAX_ENTRIES + 1)], trusted=False)
