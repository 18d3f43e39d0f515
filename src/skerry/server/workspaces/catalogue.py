"""The types of a hub's clusters: a few of Kubernetes' own, the system's, bound ones, local ones.

Precedence is kcp's: system types, then bindings, then local CustomResourceDefinitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from skerry.api.kcp import apis, tenancy
from skerry.api.kinds import GroupVersionResource
from skerry.logic.machinery import crd
from skerry.logic.machinery.resource import ANY_IDENTITY, Resource
from skerry.logic.machinery.workspaces.names import ROOT, SYSTEM_ADMIN, WILDCARD
from skerry.server.catalogue import Catalogue, TypeSet, builtin_types
from skerry.server.change import Change
from skerry.server.workspaces.records import BoundType
from skerry.server.workspaces.state import HubState

# What kcp keeps of Kubernetes: no pods, nodes or services until somebody binds them. Admission
# policies are younger than the Kubernetes that kcp 0.11 is made of; they are kept as webhooks are.
_KEPT = {
    "": "configmaps events limitranges namespaces resourcequotas secrets serviceaccounts",
    "admissionregistration.k8s.io": "mutatingwebhookconfigurations validatingadmissionpolicies "
    "validatingadmissionpolicybindings validatingwebhookconfigurations",
    "apiextensions.k8s.io": "customresourcedefinitions",
    "authentication.k8s.io": "tokenreviews",
    "authorization.k8s.io": "localsubjectaccessreviews selfsubjectaccessreviews "
    "selfsubjectrulesreviews subjectaccessreviews",
    "certificates.k8s.io": "certificatesigningrequests",
    "coordination.k8s.io": "leases",
    "events.k8s.io": "events",
    "rbac.authorization.k8s.io": "clusterrolebindings clusterroles rolebindings roles",
}
_KEPT_NAMES = {(group, name) for group, names in _KEPT.items() for name in names.split()}
# Served, so that ``kubectl auth whoami`` works, but not reported in discovery: programs written for
# kcp try to list whatever type they do not know.
_HIDDEN_NAMES = {("authentication.k8s.io", "selfsubjectreviews")}


def kept_resources() -> list[Resource]:
    """Return the built-in types every workspace serves."""
    return _named(_KEPT_NAMES)


def _named(names: set[tuple[str, str]]) -> list[Resource]:
    types = builtin_types(in_workspaces=True)
    return [r for r in types if (r.info.group, r.info.resource) in names]


def system_resources() -> list[Resource]:
    """Return the types the workspace layer itself works with."""
    definitions = [*apis.definitions(), tenancy.logical_cluster()]
    return [resource for definition in definitions for resource in crd.resources_of(definition)]


class HubTypes(TypeSet):
    """The types of one cluster; some of them unannounced.

    A bound type may also be asked for with the identity of its export, as in
    ``synctargets:<identity>``, and is then found under no other.
    """

    def __init__(self, resources: Iterable[Resource], hidden: Iterable[Resource] = ()) -> None:
        super().__init__(resources)
        self._hidden = {r.info.gvr: r for r in hidden}

    def find(self, group: str, version: str, resource: str) -> Resource | None:
        plural, _, identity = resource.partition(":")
        found = super().find(group, version, plural)
        if found is None:
            return self._hidden.get(GroupVersionResource(group, version, resource))
        return found if not identity or found.identity == identity else None


class HubCatalogue(Catalogue):
    """Types per cluster; clusters that bind the same things share one set."""

    def __init__(self, state: HubState) -> None:
        self._every = [*kept_resources(), *system_resources()]
        super().__init__(self._every)
        self._state = state
        self._hidden = _named(_HIDDEN_NAMES)
        self._shards = list(crd.resources_of(tenancy.shard()))
        self._by_binding: dict[tuple[tuple[BoundType, ...], ...], TypeSet] = {}
        self._base_names = {r.info.group_resource for r in self._every}
        state.types_changed = self.forget
        state.types_unused = self._forget_unused
        state.offers_changed = lambda: self.forget(WILDCARD)

    def forget(self, cluster: str) -> None:
        """Derive the types of *cluster* anew when next asked."""
        self._sets.pop(cluster, None)
        if not self._definitions.get(cluster, True):
            del self._definitions[cluster]

    def _forget_unused(self, unused: frozenset[BoundType]) -> None:
        """Keep no set of types that nobody can have any more."""
        for bound in [b for b in self._by_binding if any(unused.intersection(g) for g in b)]:
            del self._by_binding[bound]

    def observe(self, change: Change) -> None:
        super().observe(change)
        self.forget(WILDCARD)

    def _derive(self, cluster: str) -> TypeSet:
        if cluster == WILDCARD:
            return WildcardTypes([*self._every, *self._shards], self._any_identity(), self._state)
        bound = self._state.bound_types(cluster)
        local = self._served(cluster)
        terminating = self._state.terminating_types(cluster)
        if cluster in (ROOT, SYSTEM_ADMIN):
            served = [*self._every, *self._shards, *self._bound(bound, terminating)]
            return self._types([*served, *self._own(local, served)])
        if local or terminating:
            served = [*self._every, *self._bound(bound, terminating)]
            return self._types([*served, *self._own(local, served)])
        known = self._by_binding.get(bound)
        if known is None:
            known = self._types([*self._every, *self._bound(bound)])
            self._by_binding[bound] = known
        return known

    def _types(self, resources: Iterable[Resource]) -> HubTypes:
        return HubTypes(resources, self._hidden)

    def _own(self, local: Sequence[Resource], served: Sequence[Resource]) -> list[Resource]:
        """Return the local types whose names nothing else has."""
        names = {r.info.group_resource for r in served}
        return [self._state.extend(r) for r in local if r.info.group_resource not in names]

    def _bound(
        self,
        bound: Sequence[Sequence[BoundType]],
        terminating: frozenset[BoundType] = frozenset(),
    ) -> list[Resource]:
        return [
            replace(resource, terminating=True) if each in terminating else resource
            for group in bound
            for each in group
            for resource in self._state.resources(each)
            if resource.info.group_resource not in self._base_names
        ]

    def _any_identity(self) -> list[Resource]:
        """Return every type any export offers or any cluster defines, each once."""
        found: dict[GroupVersionResource, Resource] = {}
        offered = [r for each in self._state.offered_types() for r in self._state.resources(each)]
        local = [r for cluster in self._definitions for r in self._served(cluster)]
        for resource in [*offered, *local]:
            if resource.info.group_resource not in self._base_names:
                found.setdefault(resource.info.gvr, replace(resource, identity=ANY_IDENTITY))
        return list(found.values())


class WildcardTypes(TypeSet):
    """What can be read across all clusters.

    Types that come from exports are named with the identity of the export, as in
    ``synctargets:<identity>``: workspaces need not agree on what ``synctargets`` are. Without one
    only the metadata of objects can be read, which is the same for all.
    """

    def __init__(
        self, resources: Sequence[Resource], any_identity: Sequence[Resource], state: HubState
    ) -> None:
        super().__init__([*resources, *any_identity])
        self._state = state

    def find(self, group: str, version: str, resource: str) -> Resource | None:
        plural, separator, identity = resource.partition(":")
        if not separator:
            return super().find(group, version, resource)
        bound = self._state.by_identity.get((group, plural, identity))
        if bound is None:
            return None
        return next((r for r in self._state.resources(bound) if r.info.version == version), None)
