"""How rules write the names of fields that are no identifiers of CEL."""

from __future__ import annotations

import pytest

from skerry.logic.machinery.cel.escaping import escaped


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("replicas", "replicas"),
        ("a_b", "a_b"),
        ("a__b", "a__underscores__b"),
        ("a-b", "a__dash__b"),
        ("a.b", "a__dot__b"),
        ("a/b", "a__slash__b"),
        ("x-kubernetes.io/y", "x__dash__kubernetes__dot__io__slash__y"),
        ("namespace", "__namespace__"),
        ("in", "__in__"),
    ],
)
def test_a_name_is_written_as_kubernetes_escapes_it(name: str, written: str) -> None:
    assert escaped(name) == written


@pytest.mark.parametrize("name", ["", "1a", "a b", "ä", "a$"])
def test_a_name_that_cannot_be_written_is_not_in_reach(name: str) -> None:
    assert escaped(name) is None
