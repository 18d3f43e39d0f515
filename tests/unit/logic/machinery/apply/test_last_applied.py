"""Fields that client-side apply left are kubectl's own, while they are as it left them."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from skerry.logic.machinery.apply.fieldset import has
from skerry.logic.machinery.apply.last_applied import (
    ANNOTATION,
    remaining,
    uncontested_fields,
    updated,
)

APPLIED = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1", "b": "2"}}
A, B = ("f:data", "f:a"), ("f:data", "f:b")


def live(last: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "metadata": {"annotations": {ANNOTATION: last}}, "data": data}


def test_a_field_that_somebody_changed_since_is_contested() -> None:
    fields = uncontested_fields(live(orjson.dumps(APPLIED).decode(), a="1", b="9"), "v1", None)
    assert has(fields, A)
    assert not has(fields, B)
    assert remaining([("me", A), ("other", B)], fields) == [("other", B)]


@pytest.mark.parametrize("last", ["", "no json", "[]", '{"apiVersion":"v2"}'])
def test_a_memory_that_says_nothing_allows_nothing(last: str) -> None:
    assert uncontested_fields(live(last, a="1"), "v1", None) == {}
    assert uncontested_fields({"metadata": None}, "v1", None) == {}


def test_the_memory_is_kept_true_where_there_is_one() -> None:
    obj = live("old", a="1")
    kept = updated(obj, APPLIED)["metadata"]["annotations"][ANNOTATION]
    assert orjson.loads(kept) == APPLIED
    assert kept.endswith("\n")
    assert obj["metadata"]["annotations"][ANNOTATION] == "old", "not in place"
    again = live(kept, a="1")
    assert updated(again, APPLIED) is again
    without: dict[str, Any] = {"metadata": {}}
    assert updated(without, APPLIED) is without


def test_the_memory_does_not_hold_itself() -> None:
    noted = {**APPLIED, "metadata": {"annotations": {ANNOTATION: "x", "a": "b"}}}
    kept = updated(live("old"), noted)["metadata"]["annotations"][ANNOTATION]
    assert orjson.loads(kept)["metadata"]["annotations"] == {"a": "b"}
