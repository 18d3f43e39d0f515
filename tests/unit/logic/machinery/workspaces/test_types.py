"""What types of workspaces imply."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.logic.machinery.workspaces.types import (
    Found,
    TypeName,
    WorkspaceTypeError,
    check_nesting,
    resolve,
)


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
    # But for labels, which kcp takes from the type alone.
    assert top.labels() == {"a": "top"}


def test_a_circle_of_types_is_walked_once() -> None:
    types = Types(one=extending("two"), two=extending("one"))
    assert resolve(named("one"), types).implements == ("root:one", "root:two")


def test_a_missing_type_is_named() -> None:
    with pytest.raises(WorkspaceTypeError, match='workspace type "gone" cannot be resolved'):
        resolve(named("gone"), Types())
    with pytest.raises(
        WorkspaceTypeError, match="unable to find inherited workspace type root:gone"
    ):
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
