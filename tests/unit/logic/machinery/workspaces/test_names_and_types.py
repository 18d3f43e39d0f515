"""Names as kcp forms them, and what types of workspaces imply."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.machinery.workspaces.names import (
    base36,
    base62,
    cluster_name,
    home_cluster_name,
    home_path,
    initializer_label,
    is_path,
    joined,
    label_hash,
    parent_path,
    shard_name_hash,
)
from skerry.logic.machinery.workspaces.types import (
    Found,
    TypeName,
    WorkspaceTypeError,
    check_nesting,
    resolve,
)


def test_homes_have_the_names_kcp_gives_them() -> None:
    assert home_cluster_name("kcp-admin") == "kvdk2spgmbix"
    assert home_cluster_name("user") == "b7mkgpsbnrbl"


@pytest.mark.parametrize("user", ["alice:prod", "oidc:alice", "Alice", "a b", "", "a" * 64, "a\n"])
def test_a_home_is_never_taken_for_a_workspace_below_another(user: str) -> None:
    assert home_path("alice") == "user:alice"
    assert home_path(user) == home_cluster_name(user)


def test_the_only_shard_has_the_hash_clients_know() -> None:
    assert shard_name_hash("root") == "1pfxsevk"


def test_labels_refer_to_exports_by_a_hash_short_enough_for_a_label() -> None:
    assert len(label_hash("root:workload.kcp.io")) <= 63
    assert label_hash("a:b") != label_hash("b:a")


@given(st.binary(min_size=32, max_size=32))
def test_cluster_names_are_sixteen_characters_of_a_path(entropy: bytes) -> None:
    name = cluster_name(entropy)
    assert len(name) == 16
    assert is_path(name)


@given(st.integers(min_value=0, max_value=2**224 - 1))
def test_bases_are_readable_back(number: int) -> None:
    raw = number.to_bytes(28, "big")
    assert int(base36(raw), 36) == number
    digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    value = 0
    for digit in base62(raw):
        value = value * 62 + digits.index(digit)
    assert value == number


@pytest.mark.parametrize("text", ["root", "root:a", "a1", "1a:b-c", "x" * 63])
def test_paths_are_segments_with_colons_between(text: str) -> None:
    assert is_path(text)


@pytest.mark.parametrize("text", ["", "Root", "a:", ":a", "a::b", "-a", "a-", "a.b", "x" * 64, "*"])
def test_everything_else_is_no_path(text: str) -> None:
    assert not is_path(text)


def test_going_down_and_up_again_leads_back() -> None:
    assert parent_path(joined("root:a", "b")) == "root:a"
    assert parent_path("root") == ""


def test_initializers_have_a_label_of_legal_length() -> None:
    key, value = initializer_label("root:universal")
    assert len(key.partition("/")[2]) <= 63
    assert len(value) <= 63


# -- types -----------------------------------------------------------------------------------


class Types:
    def __init__(self, **specs: dict[str, Any]) -> None:
        self._specs = specs

    def __call__(self, name: TypeName) -> Found | None:
        spec = self._specs.get(name.name)
        return None if spec is None else Found(name, "root", {"spec": spec})


def extending(*names: str, **more: Any) -> dict[str, Any]:
    return {"extend": {"with": [{"name": name} for name in names]}, **more}


def named(name: str) -> TypeName:
    return TypeName("root", name)


def test_a_type_has_everything_of_those_it_extends_each_once() -> None:
    types = Types(
        base={"defaultAPIBindings": [{"export": "x", "path": "root"}], "initializer": True,
              "additionalWorkspaceLabels": {"a": "base", "b": "base"}},
        left=extending("base", defaultAPIBindings=[{"export": "y"}]),
        right=extending("base", initializer=True),
        top=extending("left", "right", additionalWorkspaceLabels={"a": "top"}),
    )  # fmt: skip
    top = resolve(named("top"), types)
    assert top.implements == ("root:top", "root:left", "root:right", "root:base")
    assert top.default_bindings() == [("root", "x"), ("root", "y")]
    assert list(top.initializers()) == ["root:base", "root:right"]
    assert top.labels() == {"a": "top", "b": "base"}


def test_a_circle_of_types_is_walked_once() -> None:
    types = Types(one=extending("two"), two=extending("one"))
    assert resolve(named("one"), types).implements == ("root:one", "root:two")


def test_a_missing_type_is_named() -> None:
    with pytest.raises(WorkspaceTypeError, match='workspace type "gone" cannot be resolved'):
        resolve(named("top"), Types(top=extending("gone")))


def limited(**limits: Any) -> dict[str, Any]:
    return {
        limit: {"none": True} if types is None else {"types": [{"name": t} for t in types]}
        for limit, types in limits.items()
    }


def test_limits_hold_for_the_type_and_for_all_it_extends() -> None:
    types = Types(
        free={},
        picky=limited(limitAllowedParents=["org"]),
        org=limited(limitAllowedChildren=["picky"]),
        childless=limited(limitAllowedChildren=None),
        heir=extending("picky"),
        suborg=extending("org"),
    )

    def allowed(child: str, parent: str) -> bool:
        try:
            check_nesting(resolve(named(child), types), resolve(named(parent), types))
        except WorkspaceTypeError:
            return False
        return True

    assert allowed("picky", "org")
    assert allowed("heir", "suborg")
    assert allowed("free", "free")
    assert not allowed("picky", "free")
    assert not allowed("heir", "free")
    assert not allowed("free", "org")
    assert not allowed("free", "childless")


def test_the_nearest_default_child_counts() -> None:
    types = Types(
        base={"defaultChildWorkspaceType": {"name": "far"}},
        mine=extending("base", defaultChildWorkspaceType={"name": "near"}),
        heir=extending("base"),
        none={},
    )
    assert resolve(named("mine"), types).default_child() == named("near")
    assert resolve(named("heir"), types).default_child() == named("far")
    assert resolve(named("none"), types).default_child() is None
