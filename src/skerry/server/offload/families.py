"""Types built again from what defines them, in a process that has no store to read them from."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import orjson

from skerry.logic import crd
from skerry.logic.placement.warnings import warning
from skerry.logic.resource import Resource
from skerry.logic.workspaces import schemas
from skerry.server.catalogue import TypeSet, builtin_types
from skerry.server.offload.messages import TypeRef

# Definitions that large bodies are written for at one time; each takes a few times its size.
_MAX_FAMILIES = 32


def type_ref(resource: Resource) -> TypeRef | None:
    """Return how another process may know *resource*; None when it cannot."""
    family = resource.family
    if family is None:
        return None
    return TypeRef(family.builder, family.key, resource.info, resource.identity)


class Families:
    """The families a worker knows, the latest used of them."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Sequence[Resource]] = OrderedDict()

    def resolve(self, reference: TypeRef) -> tuple[Resource, TypeSet] | None:
        """Return a type and those it shares its family with; None until its content is sent."""
        known = self._known.get(reference.key)
        if known is None:
            content = reference.content
            if content is None:
                return None
            known = _BUILDERS[reference.builder](orjson.loads(content))
            self._known[reference.key] = known
            if len(self._known) > _MAX_FAMILIES:
                self._known.popitem(last=False)
        self._known.move_to_end(reference.key)
        identity = reference.identity
        # Where it is served, a type may have another identity, and fewer verbs or subresources.
        types = TypeSet(replace(resource, identity=identity) for resource in known)
        info = reference.info
        found = types.find(info.group, info.version, info.resource)
        return None if found is None else (replace(found, info=info), types)


Builder = Callable[[Any], Sequence[Resource]]


def _builtin(_: object) -> Sequence[Resource]:
    return builtin_types()


def _native(content: Mapping[str, str]) -> Sequence[Resource]:
    return schemas.native_resources(content["group"], content["plural"])


def _schema(content: Mapping[str, Any]) -> Sequence[Resource]:
    return schemas.resources_of({"spec": content["schema"]}, "", content["conversion"])


def _warned(content: Mapping[str, Any]) -> Sequence[Resource]:
    return [warning(resource) for resource in crd.resources_of(content)]


_BUILDERS: Final[Mapping[str, Builder]] = {
    "builtin": _builtin,
    "definition": crd.resources_of,
    "native": _native,
    "schema": _schema,
    "warned": _warned,
}
