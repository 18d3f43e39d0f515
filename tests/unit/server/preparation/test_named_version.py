"""The version that a body names."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.server.preparation.named_version import named_version


@pytest.mark.parametrize(
    ("obj", "version"),
    [
        ({"metadata": {"resourceVersion": "10"}}, "10"),
        ({"metadata": {"resourceVersion": "x"}}, "x"),
        ({"metadata": {"resourceVersion": "0"}}, ""),
        ({"metadata": {"resourceVersion": "00"}}, ""),
        ({"metadata": {"resourceVersion": ""}}, ""),
        ({"metadata": {"resourceVersion": None}}, ""),
        ({"metadata": None}, ""),
        ({}, ""),
    ],
)
def test_zero_and_nothing_name_no_version(obj: dict[str, Any], version: str) -> None:
    assert named_version(obj) == version
