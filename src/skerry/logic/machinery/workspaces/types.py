"""Types of workspaces: what they extend, what they begin with, where they may be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skerry.api.objects import Object


@dataclass(frozen=True, slots=True)
class TypeName:
    """A workspace type by the path of its workspace and its name."""

    path: str
    name: str

    def __str__(self) -> str:
        return f"{self.path}:{self.name}"

    @classmethod
    def of(cls, reference: Mapping[str, Any]) -> TypeName:
        return cls(reference.get("path", ""), reference.get("name", ""))


@dataclass(frozen=True, slots=True)
class Found:
    """A WorkspaceType and the logical cluster it is in."""

    type_name: TypeName
    cluster: str
    obj: Object

    @property
    def spec(self) -> Mapping[str, Any]:
        return self.obj.get("spec") or {}


Lookup = Callable[[TypeName], Found | None]


class WorkspaceTypeError(Exception):
    """Why a type cannot be used, in kcp's words."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """A type with everything it extends, nearest first."""

    chain: tuple[Found, ...]

    @property
    def found(self) -> Found:
        return self.chain[0]

    @property
    def implements(self) -> tuple[str, ...]:
        return tuple(str(found.type_name) for found in self.chain)

    def initializers(self) -> Iterator[str]:
        """Yield the initializers a new workspace waits for."""
        for found in reversed(self.chain):
            if found.spec.get("initializer"):
                yield f"{found.cluster}:{found.type_name.name}"

    def default_bindings(self) -> list[tuple[str, str]]:
        """Return the exports bound in a new workspace, as (path, name), each once."""
        return list(self.binding_sources())

    def binding_sources(self) -> dict[tuple[str, str], list[str]]:
        """Return the same exports, each with the clusters of the types that ask for it."""
        bound: dict[tuple[str, str], list[str]] = {}
        for found in reversed(self.chain):
            for binding in found.spec.get("defaultAPIBindings") or []:
                path = binding.get("path") or found.type_name.path
                bound.setdefault((path, binding["export"]), []).append(found.cluster)
        return bound

    def labels(self) -> dict[str, str]:
        """Return the labels a new workspace gets unless it has its own; none that are inherited."""
        return dict(self.found.spec.get("additionalWorkspaceLabels") or {})

    def default_child(self) -> TypeName | None:
        for found in self.chain:
            reference = found.spec.get("defaultChildWorkspaceType")
            if reference:
                return TypeName.of({"path": found.type_name.path, **reference})
        return None


def resolve(name: TypeName, lookup: Lookup) -> Resolved:
    """Return the type called *name* with what it extends; a cycle is walked once."""
    chain: list[Found] = []
    waiting = [name]
    seen: set[TypeName] = set()
    while waiting:
        current = waiting.pop(0)
        if current in seen:
            continue
        seen.add(current)
        found = lookup(current)
        if found is None and chain:
            raise WorkspaceTypeError(f"unable to find inherited workspace type {current}")
        if found is None:
            raise WorkspaceTypeError(f'workspace type "{current.name}" cannot be resolved')
        chain.append(found)
        waiting += [
            TypeName.of({"path": found.type_name.path, **reference})
            for reference in (found.spec.get("extend") or {}).get("with") or []
        ]
    return Resolved(tuple(chain))


def check_nesting(child: Resolved, parent: Resolved) -> None:
    """Raise unless a workspace of type *child* may be in one of type *parent*."""
    for found in child.chain:
        _check_limit(found, "limitAllowedParents", parent.implements, "parent", parent)
    for found in parent.chain:
        _check_limit(found, "limitAllowedChildren", child.implements, "child", child)


def _check_limit(
    limiting: Found, limit: str, implemented: Sequence[str], what: str, other: Resolved
) -> None:
    allowed = limiting.spec.get(limit)
    if not allowed:
        return
    if allowed.get("none"):
        raise WorkspaceTypeError(f"workspace type {limiting.type_name} cannot have any {what}")
    types = [
        str(TypeName.of({"path": limiting.type_name.path, **reference}))
        for reference in allowed.get("types") or []
    ]
    if types and not set(types) & set(implemented):
        plural = f"{what} workspaces"
        raise WorkspaceTypeError(
            f"workspace type {limiting.type_name} only allows [{' '.join(types)}] {plural}, but "
            f"{what} type {other.found.type_name} only implements [{' '.join(implemented)}]"
        )
