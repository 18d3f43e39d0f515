"""What a logical cluster may hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.machinery.workspaces.limits import (
    Limits,
    Usage,
    parse_limit,
    refusal,
    tree_of,
    with_annotations,
)


@pytest.mark.parametrize(
    ("usage", "creates", "refused"),
    [
        (Usage(9, 99), True, ""),
        (Usage(10, 99), True, "objects=10, limited: objects=10"),
        (Usage(10, 99), False, ""),
        (Usage(9, 100), True, "used: bytes=100, limited: bytes=100"),
        (Usage(9, 100), False, "used: bytes=100, limited: bytes=100"),
    ],
)
def test_a_full_cluster_refuses_what_makes_it_larger(
    usage: Usage, creates: bool, refused: str
) -> None:
    why = refusal("workspace", Limits(10, 100), usage, creates=creates)
    assert (refused in why) == bool(refused or not why)
    assert bool(why) == bool(refused)


def test_zero_is_no_limit() -> None:
    assert refusal("workspace", Limits(), Usage(10**9, 10**15), creates=True) == ""


@given(st.integers(min_value=0, max_value=10**18 - 1))
def test_whole_numbers_are_limits(number: int) -> None:
    assert parse_limit(str(number)) == number


@pytest.mark.parametrize("text", ["", "-1", "1.5", "1e9", "٣", "9" * 19, " 1", "0x1", "many"])
def test_anything_else_is_none(text: str) -> None:
    assert parse_limit(text) is None


def test_annotations_replace_the_default_one_by_one() -> None:
    default = Limits(10, 100)
    assert with_annotations(default, "5", "") == Limits(5, 100)
    assert with_annotations(default, "", "0") == Limits(10, 0)
    assert with_annotations(default, "x", "y") == default


@pytest.mark.parametrize(
    ("path", "tree"),
    [
        ("root", ""),
        ("root:espw", ""),
        ("root:espw:x-mb-y", ""),
        ("root:org", "root:org"),
        ("root:org:team:project", "root:org"),
        ("user:alice", "user:alice"),
        ("user:alice:below", "user:alice"),
        ("", ""),
    ],
)
def test_a_tree_is_what_stands_directly_below_root_or_a_home(path: str, tree: str) -> None:
    assert tree_of(path) == tree


@pytest.mark.parametrize(
    ("usage", "creates", "workspace", "expected"),
    [
        (Usage(9, 99, 3), True, True, "workspaces=3, limited: workspaces=3"),
        (Usage(9, 99, 3), True, False, ""),
        (Usage(10, 99, 2), True, True, "objects=10, limited: objects=10"),
        (Usage(10, 99, 2), False, False, ""),
        (Usage(9, 100, 2), False, False, "used: bytes=100, limited: bytes=100"),
    ],
)
def test_a_full_tree_refuses_what_makes_it_larger(
    usage: Usage, creates: bool, workspace: bool, expected: str
) -> None:
    limits = Limits(10, 100, 3)
    why = refusal("root:a", limits, usage, creates=creates, workspace=workspace)
    assert expected in why
    assert bool(why) == bool(expected)
    assert not refusal("root:a", Limits(), usage, creates=creates, workspace=workspace)


def test_annotations_of_a_tree_replace_its_limits_one_by_one() -> None:
    assert with_annotations(Limits(1, 2, 3), "", "0", "9") == Limits(1, 0, 9)
    assert with_annotations(Limits(1, 2, 3), "x", "", "-1") == Limits(1, 2, 3)
