"""Whose status goes back to whom."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.edge import OWNER_WORKSPACE
from skerry.logic.fleet.summary.returned import MAX_RETURNED_BYTES, returnable

STATUS = {"replicas": 1}


def copy(owner: str = "", **more: Any) -> dict[str, Any]:
    notes = {OWNER_WORKSPACE: owner} if owner else {}
    return {"metadata": {"name": "web", "annotations": notes}, "status": STATUS, **more}


def test_a_status_goes_back_to_the_workspace_whose_object_the_copy_is() -> None:
    assert returnable(copy("wmw"), "wmw") == STATUS
    assert returnable(copy("wmw"), "other") is None
    # Of a version that recorded no owners: whoever places it was asked before.
    assert returnable(copy(), "wmw") == STATUS


@pytest.mark.parametrize("status", [None, {}, "Running", ["a"], 7])
def test_what_is_no_status_does_not_go_back(status: Any) -> None:
    assert returnable(copy("wmw", status=status), "wmw") is None
    assert returnable(None, "wmw") is None


def test_a_status_larger_than_any_real_one_stays_where_it_is() -> None:
    empty = len('{"message":""}')
    whole = {"message": "x" * (MAX_RETURNED_BYTES - empty)}
    assert returnable(copy("wmw", status=whole), "wmw") == whole
    more = {"message": "x" * (MAX_RETURNED_BYTES - empty + 1)}
    assert returnable(copy("wmw", status=more), "wmw") is None
    # Characters count as the bytes that are stored.
    wide = {"message": "ü" * (MAX_RETURNED_BYTES // 2)}
    assert returnable(copy("wmw", status=wide), "wmw") is None
