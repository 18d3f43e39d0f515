"""The mark of a logical cluster is put on, and taken off without a trace."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from skerry.logic.machinery.workspaces.stamp import ClusterStamp

STAMP = ClusterStamp()


@pytest.mark.parametrize(
    "obj", [{"metadata": {"name": "x"}}, {"metadata": {"annotations": {"a": "b"}}}]
)
def test_what_was_put_on_comes_off(obj: dict[str, Any]) -> None:
    before = copy.deepcopy(obj)
    STAMP.put(obj, "one")
    assert obj["metadata"]["annotations"]["kcp.io/cluster"] == "one"
    STAMP.strip(obj)
    assert obj == before


@pytest.mark.parametrize("obj", [{}, {"metadata": None}, {"metadata": {"annotations": None}}])
def test_what_has_no_mark_stays_as_it_is(obj: dict[str, Any]) -> None:
    before = copy.deepcopy(obj)
    STAMP.strip(obj)
    assert obj == before
