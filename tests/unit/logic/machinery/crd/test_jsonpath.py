"""Paths of columns look at a bounded number of values, however they are written."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.logic.machinery.crd.jsonpath import MAX_VISITED, compiled
from skerry.logic.machinery.jsonpath import JSONPathError
from tests.kit.counting import steps


@pytest.mark.parametrize(
    "path",
    [
        "..*" * 20,
        "..*..*..*..x",
        ".l" + "[0:,0:,0:,0:,0:,0:,0:,0:]" * 8,
        ".l[*]..*..*",
        ".l" + "[?(@..*)]" * 3,
        "..l[0,0,0,0,0,0,0,0,0,0]..*..*",
    ],
)
def test_a_path_that_multiplies_what_it_finds_stops(path: str) -> None:
    nested: Any = {"x": 1}
    for _ in range(30):
        nested = {"a": nested, "b": [nested, 1]} if _ < 4 else {"a": nested}
    value = {"l": [nested] * 20, "m": nested}
    assert steps(lambda: compiled(path)(value)) < 60 * MAX_VISITED


def test_a_path_that_finds_many_values_finds_them_all() -> None:
    value = {"l": [{"n": i} for i in range(1000)]}
    assert compiled(".l[*].n")(value) == list(range(1000))


@pytest.mark.parametrize("path", ["." + "a" * 1024, "[?(@" * 11, ".a" * 600])
def test_a_path_that_is_too_long_is_refused(path: str) -> None:
    with pytest.raises(JSONPathError, match="want 1024 at most"):
        compiled(path)
