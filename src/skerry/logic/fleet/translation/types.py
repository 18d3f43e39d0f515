"""Which types a workspace serves, and which object brings each of them.

Derived from what is in the workspaces, not asked of discovery: the types that every workspace
has, those that its APIBindings bring (a schema says how they look), and its own
CustomResourceDefinitions, in this order of precedence. So a new binding or definition counts at
the very event that announces it, a hundred workspaces that bind alike cost no more than one, and
there is no moment at which the answer is about another state than the one at hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from skerry.api.edge_categories import category_of
from skerry.api.kinds import GroupResource, ResourceInfo
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.translation.categories import BINDINGS, DEFINITIONS
from skerry.logic.machinery.api_versions import ordered

_NEEDED_VERBS = frozenset(("list", "watch"))

SchemaName = tuple[str, str]


@dataclass(frozen=True, slots=True)
class ServedType:
    """A type as one workspace serves it; ``versions`` has the preferred one first.

    ``definition`` is the APIBinding or CustomResourceDefinition that brings the type; None for
    what every workspace has. ``identity`` is that of the export a bound type comes from.
    """

    group: str
    resource: str
    kind: str
    namespaced: bool
    versions: tuple[str, ...]
    identity: str = ""
    definition: ObjectRef | None = None

    @property
    def group_resource(self) -> GroupResource:
        return GroupResource(self.group, self.resource)

    @property
    def local(self) -> bool:
        """Whether the type exists in its own workspace only."""
        return self.definition is not None and self.definition.group_resource == DEFINITIONS

    @property
    def travels(self) -> bool:
        """Whether objects of the type are copied at all."""
        return category_of(self.group_resource).to_mailbox


@dataclass(frozen=True, slots=True)
class WorkspaceTypes:
    """What a workspace serves. ``unknown`` names bound types whose schema was not found.

    ``local``: some of the types exist in this workspace only.
    """

    served: Mapping[GroupResource, ServedType]
    unknown: frozenset[GroupResource] = frozenset()
    local: bool = False


def common_types(resources: Iterable[ResourceInfo]) -> tuple[ServedType, ...]:
    """Return the types every workspace has, as discovery tells them; those that can be watched."""
    versions: dict[GroupResource, list[ResourceInfo]] = {}
    for info in resources:
        if set(info.verbs) >= _NEEDED_VERBS:
            versions.setdefault(info.group_resource, []).append(info)
    return tuple(
        ServedType(
            found[0].group,
            found[0].resource,
            found[0].kind,
            found[0].namespaced,
            tuple(info.version for info in found),
        )
        for found in versions.values()
    )


def workspace_types(
    common: Iterable[ServedType],
    bindings: Iterable[Object],
    schemas: Mapping[SchemaName, Object],
    definitions: Iterable[Object],
) -> WorkspaceTypes:
    """Return what a workspace with these bindings and definitions serves."""
    served = {each.group_resource: each for each in common}
    unknown: set[GroupResource] = set()
    for binding in sorted(bindings, key=_name):
        for bound in (binding.get("status") or {}).get("boundResources") or ():
            resource = GroupResource(bound.get("group", ""), bound["resource"])
            found = _bound_type(binding, bound, schemas)
            if found is None:
                unknown.add(resource)
            else:
                served.setdefault(resource, found)
    for definition in sorted(definitions, key=_name):
        own = defined_type(definition)
        if own is not None:
            served.setdefault(own.group_resource, own)
    local = any(each.local for each in served.values())
    return WorkspaceTypes(served, frozenset(unknown), local)


def _bound_type(
    binding: Object, bound: Mapping[str, Any], schemas: Mapping[SchemaName, Object]
) -> ServedType | None:
    cluster = (binding.get("status") or {}).get("apiExportClusterName", "")
    schema = schemas.get((cluster, bound["schema"]["name"]))
    if schema is None:
        return None
    return _described(
        schema["spec"],
        bound["schema"].get("identityHash", ""),
        ObjectRef("", *BINDINGS, "", _name(binding)),
    )


def defined_type(definition: Object) -> ServedType | None:
    """Return the type a CustomResourceDefinition brings; None while it is not established."""
    conditions = (definition.get("status") or {}).get("conditions") or ()
    if not any(c["type"] == "Established" and c["status"] == "True" for c in conditions):
        return None
    return _described(definition["spec"], "", ObjectRef("", *DEFINITIONS, "", _name(definition)))


def _described(spec: Mapping[str, Any], identity: str, definition: ObjectRef) -> ServedType | None:
    versions = ordered(each["name"] for each in spec.get("versions") or () if each.get("served"))
    names = spec["names"]
    return ServedType(
        spec.get("group", ""),
        names["plural"],
        names["kind"],
        spec.get("scope") == "Namespaced",
        tuple(versions),
        identity,
        definition,
    )


def _name(obj: Object) -> str:
    return str(obj["metadata"]["name"])


# -- versions ------------------------------------------------------------------------------------


class Agreement(NamedTuple):
    """A version; ``shared`` tells whether every contributor serves it."""

    version: str
    shared: bool


def agreed_version(types: Iterable[ServedType]) -> Agreement:
    """Return the version at which a type is written where several workspaces contribute.

    Each of *types* describes it as one of them serves it. If all prefer the same version, that
    one; else the most stable and newest of those they share. Without any in common the newest of
    all is taken, so that the answer is the same every time, and the disagreement is reported.
    """
    found = list(types)
    preferred = {each.versions[0] for each in found}
    if len(preferred) == 1:
        return Agreement(preferred.pop(), shared=True)
    shared = set(found[0].versions).intersection(*(each.versions for each in found[1:]))
    if shared:
        return Agreement(ordered(shared)[0], shared=True)
    return Agreement(ordered({v for each in found for v in each.versions})[0], shared=False)
