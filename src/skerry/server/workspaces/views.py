"""Views: many workspaces seen at once, by those whom their users let.

An exporter sees the objects of its own types in every workspace that binds them, the bindings
themselves, and what else the binding's owner agreed to show (permission claims): all bindings, if
those are claimed. Whoever
initializes workspaces of a type sees the logical clusters that wait for it, and may act in each
of them in the name of its owner for as long as it waits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from msgspec.structs import replace as replace_attributes

from skerry.api.errors import Forbidden
from skerry.api.keys import ObjectKey
from skerry.logic.machinery.discovery import storage_version_hash
from skerry.logic.machinery.resource import Resource
from skerry.logic.machinery.workspaces.bindings import EXPORT_LABEL
from skerry.logic.machinery.workspaces.names import (
    SYSTEM_ADMIN,
    WILDCARD,
    initializer_label,
    label_hash,
)
from skerry.logic.machinery.workspaces.principals import SCOPED_USERS
from skerry.server.access import Attributes
from skerry.server.catalogue import TypeSet
from skerry.server.engine import Route, attributes_of
from skerry.server.open_streams import Right
from skerry.server.request.info import RequestInfo
from skerry.server.security.client_certificates import AUTHENTICATED
from skerry.server.user import User
from skerry.server.workspaces.catalogue import HubCatalogue
from skerry.server.workspaces.state import APIS, CORE, TENANCY, HubState

# Views of workspaces that bind differently; more are forgotten and worked out again.
_MAX_CACHED = 256
_READ_VERBS = ("get", "list", "watch")
_NOTHING = TypeSet(())
_BINDINGS = (APIS, "apibindings")
_CLUSTERS = (CORE, "logicalclusters")
_BINDINGS_PATH = re.compile(rf"/apis/{re.escape(APIS)}/[^/]+/apibindings(/|$)").match
_CLAIMED_SUBRESOURCES = frozenset(("status", "scale"))


def view_name(export_cluster: str, export_name: str) -> str:
    """Return the name under which watches through an export's view are known."""
    return f"apiexport/{export_cluster}/{export_name}"


class _CachedView(NamedTuple):
    """The types of a view, and what they were made of, kept so that no other takes its identity."""

    types: TypeSet
    system: TypeSet
    bound: tuple[object, ...] | None


@dataclass(slots=True)
class ExportViews:
    """What exporters see; in workspaces that are ``closed``, no more than their own types."""

    state: HubState
    catalogue: HubCatalogue
    closed: Callable[[str], bool]
    _cache: dict[tuple[object, ...], _CachedView] = field(default_factory=dict)
    _cached_at: int = -1

    def route(self, cluster: str, export: str, target: str, path: str) -> Route:
        """Return the way to *path* in the view of an export; *target* is a cluster or all.

        A view that does not exist, or a workspace that does not bind the export, has no types:
        who may look learns that nothing is there, everybody else only that they may not.
        """

        known = target == WILDCARD or self.state.binding_to(target, cluster, export) is not None
        types = self._types(cluster, export, target) if known else _NOTHING

        def guard(user: User, info: RequestInfo) -> Iterator[Right]:
            content = Attributes(
                cluster=cluster,
                verb=info.verb if info.is_resource else "get",
                group=APIS,
                version="v1alpha1",
                resource="apiexports",
                subresource="content",
                name=export,
            )
            yield user, content
            plural = info.resource.partition(":")[0]
            claimed = self._claimed_identity(cluster, export, info.group, plural)
            if claimed and not self._offers(cluster, export, claimed):
                # Of another exporter's types nobody gets more than that exporter allows, whether
                # or not there is such a version, or anybody binds them.
                asked = replace_attributes(attributes_of(info), resource=plural, claimed=claimed)
                yield user, asked

        def visible(key: str) -> bool:
            return self._visible(cluster, export, ObjectKey.parse(key))

        labels = ""
        if _BINDINGS_PATH(path) and not self._claims_bindings(cluster, export):
            labels = f"{EXPORT_LABEL}={label_hash(f'{cluster}:{export}')}"
        return Route(
            target,
            path,
            types,
            labels,
            guard,
            visible=visible if self._claims(cluster, export) else None,
            named=visible,
            home=cluster,
            view=view_name(cluster, export),
        )

    def _types(self, cluster: str, name: str, target: str) -> TypeSet:
        """Return what the view has; of one workspace, what that really binds.

        Worked out once for all workspaces that bind alike, until anything changes: bindings that
        come to the same are one object, so their identity stands for what they bring.
        """
        if (cluster, name) not in self.state.exports:
            return _NOTHING  # and not remembered: anybody may ask for any name
        family = self.state.bindings.get(target) or {}
        bound = tuple(binding.bound for binding in family.values()) if target != WILDCARD else None
        system = self.catalogue.types(SYSTEM_ADMIN)
        if self._cached_at != self.state.view_changes or len(self._cache) >= _MAX_CACHED:
            self._cache.clear()
            self._cached_at = self.state.view_changes
        key: tuple[object, ...] = (cluster, name)
        if bound is not None:
            key = (*key, *map(id, bound))
        cached = self._cache.get(key)
        if cached is None or cached.system is not system:
            types = self._made_types(cluster, name, target, system.resources)
            cached = self._cache[key] = _CachedView(types, system, bound)
        return cached.types

    def _made_types(
        self, cluster: str, name: str, target: str, system: Sequence[Resource]
    ) -> TypeSet:
        export = self.state.export("", name, cluster)
        if export is None:
            return _NOTHING
        served = [
            resource
            for schema in export.schemas
            for resource in self.state.resources(self.state.offered(export, schema))
        ]
        taken: set[tuple[str, str]] = {r.info.group_resource for r in served}
        for claim in export.claims:
            wanted = (claim.get("group", ""), claim["resource"])
            if wanted not in taken:
                taken.add(wanted)
                served += self._claimed(wanted, claim.get("identityHash", ""), system)
        if _BINDINGS not in taken:
            served += [_read_only(r) for r in system if r.info.group_resource == _BINDINGS]
        if target != WILDCARD:
            served = [r for r in served if not r.identity or self._is_bound(target, r)]
        return TypeSet(served)

    def _is_bound(self, target: str, resource: Resource) -> bool:
        return self.state.binds(
            target, resource.info.group, resource.info.resource, resource.identity
        )

    def _claimed_identity(self, cluster: str, name: str, group: str, plural: str) -> str:
        """Return of which identity a type is claimed that the export does not itself offer."""
        obj = self.state.exports.get((cluster, name))
        claims = ((obj or {}).get("spec") or {}).get("permissionClaims") or ()
        identity = next(
            (
                str(claim.get("identityHash", ""))
                for claim in claims
                if (claim.get("group", ""), claim["resource"]) == (group, plural)
            ),
            "",
        )
        export = self.state.export("", name, cluster) if identity else None
        offered = () if export is None else (each["spec"] for each in export.schemas)
        own = any((each["group"], each["names"]["plural"]) == (group, plural) for each in offered)
        return "" if own else identity

    def _claimed(
        self, wanted: tuple[str, str], identity: str, system: Sequence[Resource]
    ) -> list[Resource]:
        if identity:
            bound = self.state.by_identity.get((*wanted, identity))
            return list(self.state.resources(bound)) if bound is not None else []
        plain = (r for r in system if not r.identity and r.info.group_resource == wanted)
        return [_claimable(r) for r in plain]

    def _claims(self, cluster: str, name: str) -> bool:
        obj = self.state.exports.get((cluster, name))
        return bool(obj and (obj.get("spec") or {}).get("permissionClaims"))

    def _claims_bindings(self, cluster: str, name: str) -> bool:
        obj = self.state.exports.get((cluster, name)) or {}
        claims = (obj.get("spec") or {}).get("permissionClaims") or ()
        return any((claim.get("group", ""), claim["resource"]) == _BINDINGS for claim in claims)

    def _visible(self, cluster: str, export: str, key: ObjectKey) -> bool:
        """Tell whether the object at *key* belongs to the view."""
        _, binding = self.state.binding_to(key.cluster, cluster, export) or ("", None)
        if (key.group, key.resource) == _BINDINGS:
            if not self._claims_bindings(cluster, export) and not key.name:
                return binding is not None
            named = (self.state.bindings.get(key.cluster) or {}).get(key.name)
            if named is not None and named.is_to(cluster, export):
                return True
        plural, _, identity = key.resource.partition(":")
        if identity:
            own = self.state.by_identity.get((key.group, plural, identity))
            if own is not None and self._offers(cluster, export, identity):
                # Objects of a type leave with its binding, so those that are there are bound.
                return True
            if not self.state.binds(key.cluster, key.group, plural, identity):
                # Who agrees to show objects of a type does not thereby have the type.
                return False
        if binding is None or self.closed(key.cluster):
            # Whoever agreed to show objects in a mailbox may have been the edge that is revoked.
            return False
        return any(claim.covers(key) for claim in binding.claims)

    def _offers(self, cluster: str, export: str, identity: str) -> bool:
        obj = self.state.exports.get((cluster, export)) or {}
        return bool((obj.get("status") or {}).get("identityHash") == identity)


@dataclass(slots=True)
class InitializerViews:
    """What those see who initialize workspaces of a type."""

    state: HubState
    catalogue: HubCatalogue

    def route(self, initializer: str, target: str, path: str) -> Route:
        """Return the way to *path* in the view of an initializer."""
        cluster, _, name = initializer.rpartition(":")
        initialize = Attributes(
            cluster=cluster,
            verb="initialize",
            group=TENANCY,
            version="v1alpha1",
            resource="workspacetypes",
            name=name,
        )

        def guard(user: User, _: RequestInfo) -> Iterator[Right]:
            yield user, initialize

        def waits(key: str) -> bool:
            return self._waits(ObjectKey.parse(key).cluster, initializer)

        label, value = initializer_label(initializer)
        if target == WILDCARD or path.startswith(f"/apis/{CORE}/"):
            return Route(
                target,
                path,
                self._types,
                f"{label}={value}",
                guard,
                named=waits,
                home=cluster,
            )
        if not self._waits(target, initializer):
            raise Forbidden("Path not resolved to a valid virtual workspace")
        owner = owner_in(target, self.state.clusters[target].owner)

        def acting(user: User) -> User:
            # Without an owner there are nobody's rights to borrow.
            return owner or user

        def guard_in(user: User, info: RequestInfo) -> Iterator[Right]:
            yield user, initialize
            yield acting(user), attributes_of(info)

        return Route(target, path, guard=guard_in, acting=acting, home=cluster)

    def _waits(self, cluster: str, initializer: str) -> bool:
        known = self.state.clusters.get(cluster)
        return (
            known is not None
            and known.phase == "Initializing"
            and initializer in known.initializers
        )

    @property
    def _types(self) -> TypeSet:
        """What there is to see, whether or not anybody waits, or the type exists."""
        return TypeSet(
            _initializable(r)
            for r in self.catalogue.types(SYSTEM_ADMIN).resources
            if (r.info.group, r.info.resource) == _CLUSTERS
        )


def owner_in(cluster: str, name: str) -> User | None:
    """Return the owner of a workspace as whom initializers act in it, and nowhere else."""
    if not name:
        return None
    foreign = name.startswith(SCOPED_USERS)
    return User(name, groups=() if foreign else (AUTHENTICATED,), home=cluster)


def _claimable(resource: Resource) -> Resource:
    """Return a built-in type as claims bring it: its objects, and nothing done through them.

    Who may see ServiceAccounts is not to have their tokens, who may see Pods not to run in them.
    """
    info = resource.info
    kept = tuple(each for each in info.subresources if each.name in _CLAIMED_SUBRESOURCES)
    return replace(resource, info=replace(info, subresources=kept))


def _initializable(resource: Resource) -> Resource:
    """Return the type of logical clusters as initializers may use it: read, and patch status.

    Discovery tells of it as kcp's view does.
    """
    info = resource.info
    below = tuple(replace(each, listed=False) for each in info.subresources)
    stored = storage_version_hash(f"/{info.group}", info.version, info.kind)
    info = replace(info, verbs=_READ_VERBS, subresources=below)
    return replace(resource, info=info, storage_hash=stored)


def _read_only(resource: Resource) -> Resource:
    info = replace(resource.info, verbs=_READ_VERBS, subresources=())
    return replace(resource, info=info)
