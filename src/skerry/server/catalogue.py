"""Which types are served where.

A ``TypeSet`` is what one cluster serves at one moment: an immutable table from group, version and
resource to the rules of the type. Clusters that define nothing of their own share one. The
catalogue is fed by the dispatcher, so a definition written through another server of the same
store is known here by the same path as one written here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from skerry.api.keys import ObjectKey, type_prefix
from skerry.api.kinds import GroupResource, GroupVersion, GroupVersionResource, ResourceInfo
from skerry.api.objects import Object
from skerry.logic.machinery import crd as custom
from skerry.logic.machinery.builtin import builtin_resources
from skerry.logic.machinery.builtin.nulls import without_nulls
from skerry.logic.machinery.resource import Family, Resource
from skerry.server.change import Change
from skerry.server.codec import decode
from skerry.store.base import Store

CRD_GROUP = "apiextensions.k8s.io"
CRD_RESOURCE = "customresourcedefinitions"
_BUILTIN = Family("builtin")
_IN_WORKSPACES = Family("builtin-in-workspaces")
CRD_PREFIX = type_prefix(CRD_GROUP, CRD_RESOURCE)


def builtin_types(*, in_workspaces: bool = False) -> list[Resource]:
    """Return Kubernetes' own types, with the rules of definitions on the type of definitions."""
    validate = custom.validate_crd_in_workspace if in_workspaces else custom.validate_crd
    family = _IN_WORKSPACES if in_workspaces else _BUILTIN
    return [
        replace(
            resource,
            default=without_nulls(custom.default_crd, resource.schema),
            validate_create=validate,
            validate_update=validate,
            compiles=True,
            family=family,
        )
        if resource.info.group_resource == (CRD_GROUP, CRD_RESOURCE)
        else replace(resource, family=family)
        for resource in builtin_resources()
    ]


class TypeSet:
    """The types one cluster serves."""

    def __init__(self, resources: Iterable[Resource]) -> None:
        self.resources: Sequence[Resource] = tuple(resources)
        self._by_name = {r.info.gvr: r for r in self.resources}

    def find(self, group: str, version: str, resource: str) -> Resource | None:
        return self._by_name.get((group, version, resource))  # type: ignore[call-overload,no-any-return]

    @cached_property
    def by_group_version(self) -> Mapping[GroupVersion, Sequence[Resource]]:
        found: dict[GroupVersion, list[Resource]] = {}
        for resource in self.resources:
            found.setdefault(GroupVersion(resource.info.group, resource.info.version), []).append(
                resource
            )
        return found

    @cached_property
    def _versions(self) -> Mapping[GroupResource, Sequence[GroupVersionResource]]:
        found: dict[GroupResource, list[GroupVersionResource]] = {}
        for resource in self.resources:
            found.setdefault(resource.info.group_resource, []).append(resource.info.gvr)
        return found

    def other_versions(self, info: ResourceInfo) -> Sequence[GroupVersionResource]:
        """Return what else a type is called where it is served at several versions."""
        served = self._versions.get(info.group_resource, ())
        return [each for each in served if each.version != info.version] if len(served) > 1 else ()

    @cached_property
    def stored(self) -> Sequence[Resource]:
        """One resource per stored type: the way to visit all content of a cluster once."""
        found: dict[tuple[str, str], Resource] = {}
        for resource in self.resources:
            if "list" in resource.info.verbs:
                key = (resource.stored_group, resource.storage_resource)
                if key not in found or resource.info.version == resource.storage_version:
                    found[key] = resource
        return tuple(found.values())

    @cached_property
    def by_kind(self) -> Mapping[tuple[str, str], Resource]:
        """Types by the apiVersion and kind of their objects."""
        return {(r.info.api_version, r.info.kind): r for r in reversed(self.resources)}


class Catalogue:
    """The types of every cluster: built in, and defined there by CustomResourceDefinitions."""

    def __init__(self, builtin: Sequence[Resource]) -> None:
        self._base = TypeSet(builtin)
        self._definitions: dict[str, dict[str, Object]] = {}
        self._sets: dict[str, TypeSet] = {}

    def types(self, cluster: str) -> TypeSet:
        """Return what *cluster* serves now."""
        known = self._sets.get(cluster)
        if known is None:
            known = self._sets[cluster] = self._derive(cluster)
        return known

    def known_types(self, cluster: str) -> TypeSet:
        """Return what *cluster* serves as far as that was worked out, else what all serve.

        Keeps nothing, so a name that a client invented costs nothing.
        """
        return self._sets.get(cluster, self._base)

    def definitions(self, cluster: str) -> Sequence[Object]:
        """Return the CustomResourceDefinitions of *cluster*; not to be changed."""
        return tuple(self._definitions.get(cluster, {}).values())

    def definition(self, cluster: str, name: str) -> Object | None:
        """Return one definition of *cluster*; not to be changed."""
        return self._definitions.get(cluster, {}).get(name)

    async def load(self, store: Store) -> None:
        """Read every definition; call before the dispatcher moves on."""
        page = await store.range(CRD_PREFIX)
        for entry in page.entries:
            self._put(ObjectKey.parse(entry.key), decode(entry.value, entry.revision))

    def reset(self) -> None:
        """Forget every definition; they are about to be shown anew."""
        self._definitions.clear()
        self._sets.clear()

    def observe(self, change: Change) -> None:
        """Follow a change of a CustomResourceDefinition."""
        key = ObjectKey.parse(change.event.key)
        if change.event.value is None:
            self._definitions.get(key.cluster, {}).pop(key.name, None)
            self._sets.pop(key.cluster, None)
        else:
            self._put(key, decode(change.event.value, change.event.revision))

    def _put(self, key: ObjectKey, definition: Object) -> None:
        self._definitions.setdefault(key.cluster, {})[key.name] = definition
        self._sets.pop(key.cluster, None)

    def _derive(self, cluster: str) -> TypeSet:
        served = self._served(cluster)
        return TypeSet([*self._base.resources, *served]) if served else self._base

    def _served(self, cluster: str) -> list[Resource]:
        """Return the types that definitions of *cluster* establish."""
        return [
            resource
            for definition in self._definitions.get(cluster, {}).values()
            if custom.established(definition)
            for resource in _served_by(definition)
        ]


def _served_by(definition: Object) -> Sequence[Resource]:
    revision = int(definition["metadata"]["resourceVersion"])
    resources = [
        resource if resource.since is None else replace(resource, since=revision)
        for resource in custom.resources_of(definition)
    ]
    if "deletionTimestamp" in definition["metadata"]:
        return [replace(resource, terminating=True) for resource in resources]
    return resources
