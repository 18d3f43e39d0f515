"""A hub's first objects: root, its exports and types, and who may enter.

Everything is written in one transaction by whichever server finds an empty store, so that no
half of a root is ever seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from skerry.api.kcp import compute, tenancy
from skerry.api.kcp.building import Raw
from skerry.api.keys import ObjectKey
from skerry.kit.clock import Clock, rfc3339
from skerry.kit.ids import IdSource
from skerry.logic import crd
from skerry.logic.rbac.bootstrap import bootstrap_objects
from skerry.logic.resource import Object, Resource
from skerry.logic.workspaces import births, schemas
from skerry.logic.workspaces.bindings import (
    FINALIZER,
    Export,
    binding_labels,
    bound_status,
)
from skerry.logic.workspaces.births import PATH_ANNOTATION, Birth
from skerry.logic.workspaces.names import ADMIN_GROUP, ROOT, SYSTEM_ADMIN
from skerry.server.catalogue import TypeSet
from skerry.server.codec import decode
from skerry.server.seeding import Seeder
from skerry.server.workspaces.catalogue import kept_resources, system_resources
from skerry.server.workspaces.exports import export_status, identity_hash, identity_secret
from skerry.server.workspaces.type_rules import type_status
from skerry.store.base import Conflict, Store, Write

# Names of schemas carry when they were made, so that a changed one can stand beside the old.
_PREFIX = "v261115"
_RBAC = "rbac.authorization.k8s.io"


def root_definitions() -> dict[str, list[Raw]]:
    """Return the kinds root exports, by export."""
    return {
        tenancy.TENANCY: [
            tenancy.cluster_workspace(),
            tenancy.workspace(),
            tenancy.workspace_type(),
        ],
        compute.SCHEDULING: [compute.location(), compute.placement()],
        compute.WORKLOAD: [compute.sync_target()],
        compute.API_RESOURCE: compute.api_resources(),
        compute.TOPOLOGY: compute.topology(),
    }


@dataclass(slots=True)
class Bootstrap:
    """Writes root if it is not there."""

    store: Store
    seeder: Seeder
    clock: Clock
    ids: IdSource
    base_url: str

    async def ensure_root(self) -> None:
        """Make sure root and the policy of all clusters exist; several servers may try at once."""
        await self.seeder.ensure(TypeSet(kept_resources()), SYSTEM_ADMIN, bootstrap_policy())
        key = ObjectKey("core.kcp.io", "logicalclusters", ROOT, "", "cluster").path()
        while await self.store.get(key) is None:
            try:
                await self.store.commit(self._root())
            except Conflict:
                continue

    def _root(self) -> list[Write]:
        now = rfc3339(self.clock.now())
        exports = [self._export(name, kinds, now) for name, kinds in root_definitions().items()]
        served = [r for _, export in exports for r in _resources(export)]
        types = TypeSet([*kept_resources(), *system_resources(), *_shards(), *served])
        objects: list[Object] = [obj for objs, _ in exports for obj in objs]
        birth = Birth(ROOT, "", f"{self.base_url}/clusters/{ROOT}", "root:root", now)
        objects += [
            births.logical_cluster(birth, None),
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}},
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kcp-system"}},
            _shard(self.base_url),
            *_workspace_types(self.base_url, now),
            *_root_policy(),
            *(self._binding(export, now) for _, export in exports),
        ]
        return [self.seeder.born(types, ROOT, obj) for obj in objects]

    def _export(self, name: str, kinds: Sequence[Raw], now: str) -> tuple[list[Object], Export]:
        key = self.ids.bytes(32).hex()
        identity = identity_hash(key.encode())
        offered = [schemas.schema_object(kind, _PREFIX) for kind in kinds]
        for schema in offered:
            # Bindings refer to schemas by UID, so it must be known before they are written.
            schema["metadata"]["uid"] = self.ids.uid()
        export = Export(ROOT, ROOT, name, identity, tuple(offered))
        obj: Object = {
            "apiVersion": "apis.kcp.io/v1alpha1",
            "kind": "APIExport",
            "metadata": {"name": name, "annotations": {PATH_ANNOTATION: ROOT}},
            "spec": {
                "identity": {"secretRef": {"name": name, "namespace": "kcp-system"}},
                "latestResourceSchemas": [s["metadata"]["name"] for s in offered],
            },
            "status": export_status(name, ROOT, identity, self.base_url, now),
        }
        _, secret = identity_secret(name, key)
        return [*offered, obj, secret], export

    def _binding(self, export: Export, now: str) -> Object:
        spec = {"reference": {"export": {"path": ROOT, "name": export.name}}}
        return {
            "apiVersion": "apis.kcp.io/v1alpha1",
            "kind": "APIBinding",
            "metadata": {
                "name": f"{export.name}-{self.ids.suffix()}",
                "finalizers": [FINALIZER],
                "labels": binding_labels(ROOT, export.name),
            },
            "spec": spec,
            "status": bound_status(export, (), spec, {}, now),
        }


def bootstrap_policy() -> list[Object]:
    """Return the roles and bindings that count in every cluster."""
    roles = [
        obj
        for obj in bootstrap_objects()
        if obj["kind"] in ("ClusterRole", "ClusterRoleBinding")
        and not obj["metadata"]["name"].startswith("system:controller:")
    ]
    return [
        *roles,
        _cluster_role("system:kcp:workspace:access", [_paths(["/"], "access")]),
        _binding("system:kcp:admin", "cluster-admin", "Group", ADMIN_GROUP),
    ]


async def tenancy_identity(store: Store) -> str:
    """Return the identity under which workspaces are stored."""
    key = ObjectKey("apis.kcp.io", "apiexports", ROOT, "", tenancy.TENANCY).path()
    entry = await store.get(key)
    if entry is None:
        raise LookupError("the store has no root; it was not made by a hub")
    return str(decode(entry.value, entry.revision)["status"]["identityHash"])


def _resources(export: Export) -> list[Resource]:
    return [r for s in export.schemas for r in schemas.resources_of(s, export.identity)]


def _shards() -> list[Resource]:
    return list(crd.resources_of(tenancy.shard()))


def _shard(base_url: str) -> Object:
    return {
        "apiVersion": "core.kcp.io/v1alpha1",
        "kind": "Shard",
        "metadata": {"name": "root"},
        "spec": {
            "baseURL": base_url,
            "externalURL": base_url,
            "virtualWorkspaceURL": base_url,
        },
    }


def _workspace_types(base_url: str, now: str) -> list[Object]:
    def reference(name: str) -> Object:
        return {"name": name, "path": ROOT}

    universal: Object = {
        "defaultAPIBindings": [{"export": name, "path": ROOT} for name in root_definitions()],
        "defaultChildWorkspaceType": reference("universal"),
        "initializer": True,
    }
    extends = {"with": [reference("universal")]}
    types: dict[str, Object] = {
        "universal": universal,
        "root": {
            "extend": extends,
            "defaultChildWorkspaceType": reference("organization"),
            "limitAllowedParents": {"none": True},
        },
        "organization": {
            "extend": extends,
            "defaultChildWorkspaceType": reference("universal"),
            "limitAllowedParents": {"types": [reference("root")]},
            "limitAllowedChildren": {"types": [reference("universal")]},
        },
        "team": {
            "extend": extends,
            "defaultChildWorkspaceType": reference("universal"),
            "limitAllowedParents": {"types": [reference("organization"), reference("team")]},
        },
        "home": {
            "extend": extends,
            "defaultChildWorkspaceType": reference("universal"),
            "limitAllowedParents": {"none": True},
        },
    }
    return [
        {
            "apiVersion": "tenancy.kcp.io/v1alpha1",
            "kind": "WorkspaceType",
            "metadata": {"name": name, "annotations": {PATH_ANNOTATION: ROOT}},
            "spec": spec,
            "status": type_status(base_url, ROOT, name, now),
        }
        for name, spec in types.items()
    ]


def _root_policy() -> list[Object]:
    """Return what every authenticated user may do in root."""
    return [
        _cluster_role(
            "system:kcp:authenticated",
            [
                _paths(["/"], "access"),
                _rule("tenancy.kcp.io", ["workspaces", "workspacetypes"], "get", "list", "watch"),
                _rule("tenancy.kcp.io", ["workspacetypes"], "use", names=["universal"]),
                _rule("tenancy.kcp.io", ["workspaces"], "create", "get", names=["~"]),
                _rule("apis.kcp.io", ["apiexports"], "bind", names=list(root_definitions())),
            ],
        ),
        _binding(
            "system:kcp:authenticated",
            "system:kcp:authenticated",
            "Group",
            "system:authenticated",
        ),
    ]


def _rule(group: str, resources: list[str], *verbs: str, names: Sequence[str] = ()) -> Object:
    rule: Object = {"apiGroups": [group], "resources": resources, "verbs": list(verbs)}
    if names:
        rule["resourceNames"] = list(names)
    return rule


def _paths(paths: list[str], *verbs: str) -> Object:
    return {"nonResourceURLs": paths, "verbs": list(verbs)}


def _cluster_role(name: str, rules: list[Object]) -> Object:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": rules,
    }


def _binding(name: str, role: str, kind: str, subject: str) -> Object:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": _RBAC, "kind": kind, "name": subject}],
    }
