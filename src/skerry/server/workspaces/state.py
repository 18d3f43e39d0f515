"""What the server knows of its clusters, kept up by the dispatcher.

Ten thousand workspaces are kept as small records that share whatever is equal: a workspace costs
some hundred bytes here, its objects are in the store.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from skerry.api.keys import ObjectKey, type_prefix
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.logic.machinery.resource import Extend, Resource, as_is
from skerry.logic.machinery.workspaces import schemas
from skerry.logic.machinery.workspaces.bindings import Export, Taken
from skerry.logic.machinery.workspaces.names import ROOT, joined
from skerry.logic.machinery.workspaces.types import Found, TypeName
from skerry.server.change import Change
from skerry.server.codec import decode
from skerry.server.watch.dispatcher import Dispatcher
from skerry.server.workspaces.records import (
    Binding,
    BindingReader,
    BoundType,
    Cluster,
    child_of,
    cluster_of,
)
from skerry.store.base import Entry, Store

APIS = "apis.kcp.io"
CORE = "core.kcp.io"
TENANCY = "tenancy.kcp.io"
# Where schemas are kept that were deleted while bound: no type of the API, the server's own.
KEPT_SCHEMAS = ("kept", "schemas")
# The member under which a kept schema keeps its conversion.
KEPT_CONVERSION = "conversion"


# Read at the start: never all bindings of all workspaces at once.
_PAGE = 2000

_Observe = Callable[[ObjectKey, bytes | None], None]


@dataclass(slots=True)
class HubState:
    """Everything about clusters that requests depend on."""

    # What is added to types that are bound or defined here: rules that no schema can say.
    extend: Extend = as_is
    clusters: dict[str, Cluster] = field(default_factory=dict)
    # Children by parent cluster: workspace name to cluster name.
    children: dict[str, dict[str, str]] = field(default_factory=dict)
    bindings: dict[str, dict[str, Binding]] = field(default_factory=dict)
    exports: dict[tuple[str, str], Object] = field(default_factory=dict)
    schemas: dict[tuple[str, str], Object] = field(default_factory=dict)
    types: dict[tuple[str, str], Object] = field(default_factory=dict)
    # How versions of a schema are converted; each has the name of its schema.
    conversions: dict[tuple[str, str], Object] = field(default_factory=dict)
    # Slices that say where an export's views are.
    slices: dict[tuple[str, str], Object] = field(default_factory=dict)
    # Schemas that were deleted while bound, by UID: their types are in use until unbound.
    kept: dict[str, Object] = field(default_factory=dict)
    # The identity of root's export of workspaces and their types.
    tenancy_identity: str = ""
    # Called with a cluster's name when the types it serves may have changed.
    types_changed: Callable[[str], None] = lambda _: None
    # Called with types that no binding brings any more, or none as they were.
    types_unused: Callable[[frozenset[BoundType]], None] = lambda _: None
    # Called with the name of a cluster that is no more.
    cluster_gone: Callable[[str], None] = lambda _: None
    # Called when what exports offer may have changed.
    offers_changed: Callable[[], None] = lambda: None
    # How often that happened, and how often a type of workspaces changed.
    offers: int = 0
    type_changes: int = 0
    # How often anything changed that the types of views are made of, but for which of them a
    # cluster binds.
    view_changes: int = 0
    # Called with an export's cluster and name when what its users let it see has changed.
    claims_changed: Callable[[str, str], None] = lambda _, __: None
    # Bindings that do not have all they ask for, by cluster and name.
    waiting: set[tuple[str, str]] = field(default_factory=set)
    # Exports that have no identity, since the Secret they name is not there.
    unidentified: set[tuple[str, str]] = field(default_factory=set)
    # Exports by identity; the dictionaries are ordered sets.
    _by_export_identity: dict[str, dict[tuple[str, str], None]] = field(default_factory=dict)
    # Every type anybody binds, by group, resource and identity.
    by_identity: dict[tuple[str, str, str], BoundType] = field(default_factory=dict)
    # What bindings come to, one of all that are equal, and how many there are.
    _alike: dict[Binding, tuple[Binding, int]] = field(default_factory=dict)
    _reader: BindingReader = field(default_factory=BindingReader)
    _resources: dict[BoundType, Sequence[Resource]] = field(default_factory=dict)

    # -- following the store -----------------------------------------------------------------

    async def follow(self, store: Store, dispatcher: Dispatcher, tenancy_identity: str) -> None:
        """Read everything and keep it up; call before the dispatcher runs."""
        self.tenancy_identity = tenancy_identity
        workspaces = f"workspaces:{tenancy_identity}"
        workspace_types = f"workspacetypes:{tenancy_identity}"
        for group, resource, observe in (
            (CORE, "logicalclusters", self._cluster_changed),
            (TENANCY, workspaces, self._workspace_changed),
            (TENANCY, workspace_types, _whole(self._type_changed)),
            (APIS, "apiresourceschemas", _whole(self._schema_changed)),
            (APIS, "apiconversions", _whole(self._conversion_changed)),
            (APIS, "apiexportendpointslices", _whole(self._slice_changed)),
            (*KEPT_SCHEMAS, _whole(self._kept_changed)),
            (APIS, "apiexports", _whole(self._export_changed)),
            (APIS, "apibindings", self._binding_changed),
        ):
            prefix = type_prefix(group, resource)
            async for entry in entries_of(store, prefix):
                observe(ObjectKey.parse(entry.key), entry.value)
            reset = self.reset if resource == "logicalclusters" else None
            dispatcher.observe(prefix, follower(observe), reset)

    def reset(self) -> None:
        """Forget everything; it is about to be shown anew."""
        self.offers += 1
        self.type_changes += 1
        self.view_changes += 1
        for cluster in [*self.clusters, *self.bindings]:
            self.types_changed(cluster)
        for table in (
            self.clusters,
            self.children,
            self.bindings,
            self.exports,
            self._by_export_identity,
            self.schemas,
            self.types,
            self.conversions,
            self.slices,
            self._resources,
            self.by_identity,
            self._alike,
            self.kept,
            self.waiting,
            self.unidentified,
        ):
            table.clear()

    def _cluster_changed(self, key: ObjectKey, value: bytes | None) -> None:
        if key.name != "cluster":
            # Masters may write others; each cluster is described by the one of this name.
            return
        if value is not None:
            self.clusters[key.cluster] = cluster_of(key.cluster, value)
            return
        self.clusters.pop(key.cluster, None)
        self.children.pop(key.cluster, None)
        for binding in self.bindings.pop(key.cluster, {}).values():
            self._let_go(binding)
        self.types_changed(key.cluster)
        self.cluster_gone(key.cluster)

    def _workspace_changed(self, key: ObjectKey, value: bytes | None) -> None:
        family = self.children.setdefault(key.cluster, {})
        cluster = "" if value is None else child_of(value)
        if cluster:
            family[key.name] = cluster
        else:
            family.pop(key.name, None)
        if not family:
            del self.children[key.cluster]

    def _type_changed(self, key: ObjectKey, obj: Object | None) -> None:
        _put(self.types, (key.cluster, key.name), obj)
        self.type_changes += 1

    def _schema_changed(self, key: ObjectKey, obj: Object | None) -> None:
        _put(self.schemas, (key.cluster, key.name), obj)
        self._offers_changed()

    def _conversion_changed(self, key: ObjectKey, obj: Object | None) -> None:
        _put(self.conversions, (key.cluster, key.name), obj)
        stale = {
            bound
            for bound in (*self._resources, *self.by_identity.values())
            if (bound.schema_cluster, bound.schema_name) == (key.cluster, key.name)
        }
        for bound in stale:
            self._resources.pop(bound, None)
        self.types_unused(frozenset(stale))
        for cluster, family in self.bindings.items():
            if any(stale.intersection(binding.bound) for binding in family.values()):
                self.types_changed(cluster)
        self._offers_changed()

    def _slice_changed(self, key: ObjectKey, obj: Object | None) -> None:
        _put(self.slices, (key.cluster, key.name), obj)

    def _kept_changed(self, key: ObjectKey, obj: Object | None) -> None:
        if obj is None:
            self.kept.pop(key.name, None)
        else:
            self.kept[key.name] = obj
        self.view_changes += 1

    def _export_changed(self, key: ObjectKey, obj: Object | None) -> None:
        name = (key.cluster, key.name)
        before, after = _identity_of(self.exports.get(name)), _identity_of(obj)
        _put(self.exports, name, obj)
        if before != after:
            self._by_export_identity.get(before, {}).pop(name, None)
            if not self._by_export_identity.get(before, True):
                del self._by_export_identity[before]
        if after:
            self._by_export_identity.setdefault(after, {})[name] = None
        if obj is not None and not after:
            self.unidentified.add(name)
        else:
            self.unidentified.discard(name)
        self._offers_changed()

    def _offers_changed(self) -> None:
        self.offers += 1
        self.view_changes += 1
        self.offers_changed()

    def _binding_changed(self, key: ObjectKey, value: bytes | None) -> None:
        family = self.bindings.setdefault(key.cluster, {})
        binding = None if value is None else self._take(self._reader.read(value))
        old = family.pop(key.name, None)
        if old is not None:
            self._let_go(old)
        self.waiting.discard((key.cluster, key.name))
        if binding is not None:
            family[key.name] = binding
            if not binding.ready:
                self.waiting.add((key.cluster, key.name))
        if not family:
            del self.bindings[key.cluster]
        self.types_changed(key.cluster)
        if (old.claims if old else ()) != (binding.claims if binding else ()):
            known = binding or old
            if known is not None:
                self.claims_changed(known.export_cluster, known.export_name)

    def _take(self, binding: Binding) -> Binding:
        """Count one more that comes to *binding*; return the one that stands for all of them."""
        known, count = self._alike.get(binding, (binding, 0))
        self._alike[known] = (known, count + 1)
        if not count:
            self.view_changes += 1
            for each in binding.bound:
                self.by_identity[(each.group, each.resource, each.identity)] = each
        return known

    def _let_go(self, binding: Binding) -> None:
        """Count one less; types that nobody binds any more are forgotten."""
        known, count = self._alike[binding]
        if count > 1:
            self._alike[known] = (known, count - 1)
            return
        del self._alike[binding]
        self.view_changes += 1
        used = {each for other in self._alike for each in other.bound}
        unused = [each for each in binding.bound if each not in used]
        for each in unused:
            self._resources.pop(each, None)
            name = (each.group, each.resource, each.identity)
            if self.by_identity.get(name) == each:
                del self.by_identity[name]
        if unused:
            self.types_unused(frozenset(unused))

    # -- finding -----------------------------------------------------------------------------

    def resolve(self, path: str) -> str | None:
        """Return the name of the cluster *path* leads to; None when it leads nowhere."""
        head, *names = path.split(":")
        cluster = head
        if head == "system":
            return path
        if head not in self.clusters:
            return None
        for name in names:
            child = self.children.get(cluster, {}).get(name)
            if child is None:
                return None
            cluster = child
        return cluster

    def path_of(self, cluster: str) -> str:
        """Return the canonical path of *cluster*; its name when no path leads there."""
        known = self.clusters.get(cluster)
        return (known.path if known is not None else "") or cluster

    def export(self, path: str, name: str, own_cluster: str) -> Export | None:
        """Return the export *name* at *path* (empty: in the own cluster)."""
        cluster = self.resolve(path) if path else own_cluster
        obj = self.exports.get((cluster or "", name))
        if obj is None or cluster is None:
            return None
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        wanted = spec.get("latestResourceSchemas") or []
        found = [self.schemas.get((cluster, each)) for each in wanted]
        missing = [n for n, s in zip(wanted, found, strict=True) if s is None]
        return Export(
            cluster,
            self.path_of(cluster),
            name,
            status.get("identityHash", ""),
            tuple(s for s in found if s is not None),
            tuple(missing),
            tuple(spec.get("permissionClaims") or ()),
            obj["metadata"].get("annotations") or {},
        )

    def workspace_type(self, name: TypeName) -> Found | None:
        """Return a WorkspaceType by the path of its workspace and its name."""
        cluster = self.resolve(name.path)
        obj = self.types.get((cluster or "", name.name))
        return None if obj is None or cluster is None else Found(name, cluster, obj)

    def nearest_type(self, name: str, path: str) -> TypeName | None:
        """Return the type *name* in the workspace at *path*, or in one above it, or in root."""
        while path:
            if self.workspace_type(TypeName(path, name)) is not None:
                return TypeName(path, name)
            path = path.rpartition(":")[0]
        return TypeName(ROOT, name) if self.workspace_type(TypeName(ROOT, name)) else None

    # -- types -------------------------------------------------------------------------------

    def bound_types(self, cluster: str) -> tuple[tuple[BoundType, ...], ...]:
        """Return what each binding of *cluster* brings; equal for clusters that bind alike."""
        family = self.bindings.get(cluster)
        if not family:
            return ()
        return tuple(sorted((b.bound for b in family.values() if b.bound), key=_first_name))

    def terminating_types(self, cluster: str) -> frozenset[BoundType]:
        """Return the types whose bindings in *cluster* are being deleted."""
        family = (self.bindings.get(cluster) or {}).values()
        return frozenset(each for binding in family if binding.deleting for each in binding.bound)

    def resources(self, bound: BoundType) -> Sequence[Resource]:
        """Return the types a bound schema serves."""
        known = self._resources.get(bound)
        if known is None:
            schema = self.schemas.get((bound.schema_cluster, bound.schema_name))
            if schema is None or schema["metadata"]["uid"] != bound.schema_uid:
                schema = self.kept.get(bound.schema_uid)
            if schema is None:
                return ()
            written = self.conversions.get((bound.schema_cluster, bound.schema_name))
            conversion = written or schema.get(KEPT_CONVERSION)
            served = schemas.resources_of(schema, bound.identity, conversion)
            known = self._resources[bound] = tuple(map(self.extend, served))
        return known

    def offered(self, export: Export, schema: Object) -> BoundType:
        """Return what binding *schema* of *export* brings."""
        spec = schema["spec"]
        return BoundType(
            export.cluster,
            schema["metadata"]["name"],
            schema["metadata"]["uid"],
            export.identity,
            spec["group"],
            spec["names"]["plural"],
        )

    def offered_types(self) -> Iterator[BoundType]:
        """Yield every type any export offers."""
        for cluster, name in list(self.exports):
            export = self.export("", name, cluster)
            if export is not None:
                yield from (self.offered(export, schema) for schema in export.schemas)

    def binding_to(
        self, cluster: str, export_cluster: str, export_name: str
    ) -> tuple[str, Binding] | None:
        """Return the binding by which *cluster* uses an export, and its name."""
        for name, binding in (self.bindings.get(cluster) or {}).items():
            if binding.is_to(export_cluster, export_name):
                return name, binding
        return None

    def binds(self, cluster: str, group: str, resource: str, identity: str) -> bool:
        """Tell whether *cluster* has the type of that identity bound."""
        return any(
            (each.group, each.resource, each.identity) == (group, resource, identity)
            for binding in (self.bindings.get(cluster) or {}).values()
            for each in binding.bound
        )

    def identified(self, identity: str) -> list[tuple[str, Object]]:
        """Return every export of that identity, and its cluster: a key may be shared."""
        return [(key[0], self.exports[key]) for key in self._by_export_identity.get(identity, ())]

    def uses(self, schema_uid: str) -> bool:
        """Tell whether anybody binds the schema with that UID."""
        return any(each.schema_uid == schema_uid for b in self._alike for each in b.bound)

    def taken_names(
        self, cluster: str, without: str, definitions: Sequence[Mapping[str, Any]]
    ) -> list[Taken]:
        """Return the names in use in *cluster*, not counting those of the binding *without*."""
        taken = []
        for binding_name, binding in (self.bindings.get(cluster) or {}).items():
            if binding_name == without:
                continue
            where = f"{self.path_of(binding.export_cluster)}:{binding.export_name}"
            by = f'naming conflict with APIBinding "{binding_name}" bound to APIExport {where}'
            for each in binding.bound:
                kinds = [r.info.kind for r in self.resources(each)]
                name = GroupResource(each.group, each.resource)
                taken.append(Taken(name, kinds[0] if kinds else "", by))
        for definition in definitions:
            spec = definition["spec"]
            name = GroupResource(spec["group"], spec["names"]["plural"])
            by = f'cannot create CustomResourceDefinition with "{name.group}" group and '
            by += f'"{name.resource}" resource because it overlaps with '
            by += f'"{definition["metadata"]["name"]}" CustomResourceDefinition in '
            by += f'"{cluster}" logical cluster'
            taken.append(Taken(name, spec["names"]["kind"], by, whole=True))
        return taken

    def bound_clusters(self, export_cluster: str, export_name: str) -> Iterator[str]:
        """Yield the clusters that bind an export."""
        for cluster, family in self.bindings.items():
            if any(binding.is_to(export_cluster, export_name) for binding in family.values()):
                yield cluster

    def child_path(self, parent: str, name: str) -> str:
        """Return the path of the workspace *name* in the cluster *parent*."""
        return joined(self.path_of(parent), name)


def _first_name(bound: tuple[BoundType, ...]) -> tuple[str, str, str]:
    return bound[0].group, bound[0].resource, bound[0].identity


def _identity_of(export: Object | None) -> str:
    return str(((export or {}).get("status") or {}).get("identityHash") or "")


def _put(table: dict[tuple[str, str], Object], key: tuple[str, str], obj: Object | None) -> None:
    if obj is None:
        table.pop(key, None)
    else:
        table[key] = obj


def _whole(observe: Callable[[ObjectKey, Object | None], None]) -> _Observe:
    """Return what shows *observe* whole objects."""

    def look(key: ObjectKey, value: bytes | None) -> None:
        # What is kept here is never written, so its revision does not matter.
        observe(key, None if value is None else decode(value, 0))

    return look


def follower(observe: _Observe) -> Callable[[Change], None]:
    """Return what a dispatcher calls, to show *observe* the key and the value of each change."""

    def follow(change: Change) -> None:
        observe(ObjectKey.parse(change.event.key), change.event.value)

    return follow


async def entries_of(store: Store, prefix: str) -> AsyncIterator[Entry]:
    """Yield everything below *prefix*, a page at a time."""
    after = ""
    while True:
        page = await store.range(prefix, after=after, limit=_PAGE)
        for entry in page.entries:
            yield entry
        if not page.more:
            return
        after = page.entries[-1].key
