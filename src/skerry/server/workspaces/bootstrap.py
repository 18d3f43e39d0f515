"""A hub's first objects: root, its exports and types, and who may enter.

Everything is written in one transaction by whichever server finds an empty store, so that no
half of a root is ever seen.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from skerry.api.kcp import compute, tenancy
from skerry.api.kcp.building import Raw
from skerry.api.keys import ObjectKey
from skerry.api.objects import Object
from skerry.api.refs import PATH_ANNOTATION
from skerry.kit.clock import Clock
from skerry.kit.ids import IdSource
from skerry.kit.timestamps import rfc3339
from skerry.logic.machinery import crd
from skerry.logic.machinery.rbac.bootstrap import bootstrap_objects
from skerry.logic.machinery.resource import Resource
from skerry.logic.machinery.workspaces import schemas, workspace_content
from skerry.logic.machinery.workspaces.bindings import (
    FINALIZER,
    Export,
    binding_labels,
    bound_status,
)
from skerry.logic.machinery.workspaces.names import ADMIN_GROUP, ROOT, SYSTEM_ADMIN
from skerry.logic.machinery.workspaces.workspace_content import NewWorkspace
from skerry.server.catalogue import TypeSet
from skerry.server.codec import decode, encode
from skerry.server.seeding import Seeder
from skerry.server.workspaces.catalogue import kept_resources, system_resources
from skerry.server.workspaces.exports import export_status, identity_hash, identity_secret
from skerry.server.workspaces.root_policies import (
    POLICIES,
    administrators_policy_objects,
    cluster_role,
    group_binding,
    paths,
    policy_objects,
    rule,
)
from skerry.server.workspaces.type_rules import type_status
from skerry.store.base import Conflict, Store, Write

# Names of schemas carry when they were made, so that a changed one can stand beside the old.
_PREFIX = "v261115"
_USED_BY_ALL = ("universal", "organization", "team")


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
        await self._ensure_policies()

    async def _ensure_policies(self) -> None:
        """Give the exports of a root that an earlier version made their policies, once.

        Each export and its roles are written together: neither a policy without roles, which
        would allow nothing, nor roles without a policy. Where the roles are, an administrator's
        changes to either last.
        """
        types = TypeSet(kept_resources())
        await self.seeder.ensure(types, ROOT, administrators_policy_objects())
        for name in POLICIES:
            made = [self.seeder.born(types, ROOT, o) for o in policy_objects(name, _plurals(name))]
            key = ObjectKey("apis.kcp.io", "apiexports", ROOT, "", name).path()
            while await self.store.get(made[0].key) is None:
                entry = await self.store.get(key)
                if entry is None:
                    break
                export = decode(entry.value, entry.revision)
                export["spec"].setdefault("maximalPermissionPolicy", {"local": {}})
                with contextlib.suppress(Conflict):
                    await self.store.commit(
                        [*made, Write(key, encode(export), expected=entry.revision)]
                    )

    def _root(self) -> list[Write]:
        now = rfc3339(self.clock.now())
        exports = [self._export(name, kinds, now) for name, kinds in root_definitions().items()]
        served = [r for _, export in exports for r in _resources(export)]
        types = TypeSet([*kept_resources(), *system_resources(), *_shards(), *served])
        objects: list[Object] = [obj for objs, _ in exports for obj in objs]
        new = NewWorkspace(ROOT, "", f"{self.base_url}/clusters/{ROOT}", "root:root", now)
        objects += [
            workspace_content.logical_cluster(new, None),
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}},
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kcp-system"}},
            _shard(self.base_url),
            *_workspace_types(self.base_url, now),
            *_root_policy(),
            *(obj for name in POLICIES for obj in policy_objects(name, _plurals(name))),
            *administrators_policy_objects(),
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
        if name in POLICIES:
            obj["spec"]["maximalPermissionPolicy"] = {"local": {}}
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
        cluster_role("system:kcp:workspace:access", [paths(["/"], "access")]),
        group_binding("system:kcp:admin", "cluster-admin", ADMIN_GROUP),
    ]


def _plurals(export: str) -> list[str]:
    return [kind["spec"]["names"]["plural"] for kind in root_definitions()[export]]


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
        # Workspaces and Partitions select Shards by their labels.
        "metadata": {"name": "root", "labels": {"name": "root"}},
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
        cluster_role(
            "system:kcp:authenticated",
            [
                paths(["/"], "access"),
                rule("tenancy.kcp.io", ["workspaces", "workspacetypes"], "get", "list", "watch"),
                rule("core.kcp.io", ["logicalclusters"], "get", "list", "watch"),
                # Which parents these may have is limited, so they lead nowhere new.
                rule("tenancy.kcp.io", ["workspacetypes"], "use", names=list(_USED_BY_ALL)),
                rule("tenancy.kcp.io", ["workspaces"], "create", "get", names=["~"]),
                rule("apis.kcp.io", ["apiexports"], "bind", names=list(root_definitions())),
            ],
        ),
        group_binding(
            "system:kcp:authenticated", "system:kcp:authenticated", "system:authenticated"
        ),
    ]
