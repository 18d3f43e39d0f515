"""Types built again from what defines them, in a process that has no store to read them from."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import orjson

from skerry.kit.invariant import present
from skerry.logic.machinery import crd
from skerry.logic.machinery.resource import Extend, Resource, as_is
from skerry.logic.machinery.workspaces import schemas
from skerry.server.catalogue import TypeSet, builtin_types
from skerry.server.offload.messages import TypeRef

# Content of definitions, which take about ten times as much when built.
_MAX_BYTES = 8 << 20
# One workspace's document may be of as many.
_MIN_FAMILIES = 1000
_MAX_SETS = 2000


def type_ref(resource: Resource) -> TypeRef | None:
    """Return how another process may know *resource*; None when it cannot."""
    family = resource.family
    if family is None:
        return None
    return TypeRef(family.builder, family.key, resource.info, resource.identity)


class Families:
    """The families a worker knows, the latest used of them."""

    def __init__(self, extend: Extend = as_is) -> None:
        self._extend = extend
        self._known: OrderedDict[str, Sequence[Resource]] = OrderedDict()
        self._size: dict[str, int] = {}
        self._sets: dict[tuple[str, str], TypeSet] = {}

    def missing(self, references: Iterable[TypeRef]) -> list[str]:
        """Take in the content that is sent; return the families of which none was."""
        for reference in references:
            if reference.key in self._known:
                self._known.move_to_end(reference.key)
            elif reference.content is not None:
                self._put(reference.key, reference.builder, reference.content)
        return list({r.key: None for r in references if r.key not in self._known})

    def _put(self, key: str, builder: str, content: bytes) -> None:
        built = _BUILDERS[builder](orjson.loads(content))
        self._known[key] = tuple(map(self._extend, built)) if builder in _EXTENDED else built
        self._size[key] = len(content)
        # Those that were just asked for stay, however large they are together.
        while sum(self._size.values()) > _MAX_BYTES and len(self._known) > _MIN_FAMILIES:
            gone, _ = self._known.popitem(last=False)
            del self._size[gone]
            self._sets.clear()

    def resolve(self, reference: TypeRef) -> Resource:
        """Return a type of a family that is known."""
        info = reference.info
        types = self.types(reference)
        found = present(
            types.find(info.group, info.version, info.resource), "a family has the types it makes"
        )
        # Where it is served, a type may have fewer verbs or subresources.
        return replace(found, info=info)

    def types(self, reference: TypeRef) -> TypeSet:
        """Return the types of a family, as they are where *reference* is from."""
        key, identity = reference.key, reference.identity
        found = self._sets.get((key, identity))
        if found is None:
            known = self._known[key]
            found = TypeSet(replace(resource, identity=identity) for resource in known)
            if len(self._sets) > _MAX_SETS:
                self._sets.clear()
            self._sets[key, identity] = found
        return found


Builder = Callable[[Any], Sequence[Resource]]


def _builtin(_: object) -> Sequence[Resource]:
    return builtin_types()


def _builtin_in_workspaces(_: object) -> Sequence[Resource]:
    return builtin_types(in_workspaces=True)


def _native(content: Mapping[str, str]) -> Sequence[Resource]:
    return schemas.native_resources(content["group"], content["plural"])


def _schema(content: Mapping[str, Any]) -> Sequence[Resource]:
    return schemas.resources_of({"spec": content["schema"]}, "", content["conversion"])


_BUILDERS: Final[Mapping[str, Builder]] = {
    "builtin": _builtin,
    "builtin-in-workspaces": _builtin_in_workspaces,
    "definition": crd.resources_of,
    "native": _native,
    "schema": _schema,
}
# What people define and bind; the rest is as this version has it.
_EXTENDED: Final = frozenset(("definition", "schema"))
