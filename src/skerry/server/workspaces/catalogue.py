"""The types of a hub's clusters: a few of Kubernetes' own, the system's, bound ones, local ones.

Precedence is kcp's: system types, then bindings, then local CustomResourceDefinitions.
"""

from __future__ import annotations

from collections.abc import Sequence

from skerry.api.kcp import apis, tenancy
from skerry.logic import crd
from skerry.logic.resource import Resource
from skerry.logic.workspaces.names import ROOT, SYSTEM_ADMIN, WILDCARD
from skerry.server.catalogue import Catalogue, TypeSet, builtin_types
from skerry.server.workspaces.state import BoundType, HubState

# What kcp keeps of Kubernetes: no pods, nodes or services until somebody binds them.
_KEPT = {
    "": "configmaps events limitranges namespaces resourcequotas secrets serviceaccounts",
    "admissionregistration.k8s.io": "mutatingwebhookconfigurations validatingwebhookconfigurations",
    "apiextensions.k8s.io": "customresourcedefinitions",
    "authentication.k8s.io": "tokenreviews selfsubjectreviews",
    "authorization.k8s.io": "localsubjectaccessreviews selfsubjectaccessreviews "
    "selfsubjectrulesreviews subjectaccessreviews",
    "certificates.k8s.io": "certificatesigningrequests",
    "coordination.k8s.io": "leases",
    "events.k8s.io": "events",
    "rbac.authorization.k8s.io": "clusterrolebindings clusterroles rolebindings roles",
}
_KEPT_NAMES = {(group, name) for group, names in _KEPT.items() for name in names.split()}


def kept_resources() -> list[Resource]:
    """Return the built-in types every workspace serves."""
    return [
        resource
        for resource in builtin_types()
        if (resource.info.group, resource.info.resource) in _KEPT_NAMES
    ]


def system_resources() -> list[Resource]:
    """Return the types the workspace layer itself works with."""
    definitions = [*apis.definitions(), tenancy.logical_cluster()]
    return [resource for definition in definitions for resource in crd.resources_of(definition)]


class HubCatalogue(Catalogue):
    """Types per cluster; clusters that bind the same things share one set."""

    def __init__(self, state: HubState) -> None:
        self._every = [*kept_resources(), *system_resources()]
        super().__init__(self._every)
        self._state = state
        self._shards = list(crd.resources_of(tenancy.shard()))
        self._by_binding: dict[tuple[tuple[BoundType, ...], ...], TypeSet] = {}
        self._base_names = {r.info.group_resource for r in self._every}
        state.types_changed = self.forget

    def forget(self, cluster: str) -> None:
        """Derive the types of *cluster* anew when next asked."""
        self._sets.pop(cluster, None)

    def _derive(self, cluster: str) -> TypeSet:
        if cluster == WILDCARD:
            return WildcardTypes([*self._every, *self._shards], self._state)
        bound = self._state.bound_types(cluster)
        local = self._served(cluster)
        if cluster in (ROOT, SYSTEM_ADMIN):
            return TypeSet([*self._every, *self._shards, *self._bound(bound)])
        if local:
            served = self._bound(bound)
            names = {r.info.group_resource for r in served} | self._base_names
            own = [r for r in local if r.info.group_resource not in names]
            return TypeSet([*self._every, *served, *own])
        known = self._by_binding.get(bound)
        if known is None:
            known = self._by_binding[bound] = TypeSet([*self._every, *self._bound(bound)])
        return known

    def _bound(self, bound: Sequence[Sequence[BoundType]]) -> list[Resource]:
        return [
            resource
            for group in bound
            for each in group
            for resource in self._state.resources(each)
            if resource.info.group_resource not in self._base_names
        ]


class WildcardTypes(TypeSet):
    """What can be read across all clusters.

    Types that come from exports are named with the identity of the export, as in
    ``synctargets:<identity>``; local types of different clusters need not agree and have none.
    """

    def __init__(self, resources: Sequence[Resource], state: HubState) -> None:
        super().__init__(resources)
        self._state = state

    def find(self, group: str, version: str, resource: str) -> Resource | None:
        plural, _, identity = resource.partition(":")
        if not identity:
            return super().find(group, version, resource)
        bound = self._state.by_identity.get((group, plural, identity))
        if bound is None:
            return None
        return next((r for r in self._state.resources(bound) if r.info.version == version), None)
