"""What a hub has to offer from the start, made through its own API.

``root:compute`` exports Kubernetes' workload kinds. With the edge provider come ``root:espw``,
which exports ``edge.kcp.io``, and finer exports of Kubernetes' kinds.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import orjson

from skerry.api.edge import USUAL_PROVIDER
from skerry.api.errors import AlreadyExists, Conflict, InternalError, from_status
from skerry.api.kcp import edge
from skerry.api.kcp.resources import WORKSPACES
from skerry.api.objects import Object
from skerry.app.hub_server import HubServer
from skerry.logic.machinery.builtin import builtin_resources
from skerry.logic.machinery.workspaces.principals import BOUND_PREFIX, SCOPED
from skerry.logic.machinery.workspaces.schemas import native_schema_object, schema_object
from skerry.server.http.message import Peer, Request, Response
from skerry.server.security.authorization import MASTERS
from skerry.server.user import User

COMPUTE = "root:compute"
_SYSTEM = User("system:skerry", groups=(MASTERS, "system:authenticated"))
_NATIVE_PREFIX = "v124"
# Of the names of schemas, the date of the last change of any: a hub that finds those of an earlier
# one offers its own instead.
EDGE_PREFIX = "v261117"
# Who may bind: groups that an administrator puts people in, never everybody.
EDGE_BINDERS = f"{edge.GROUP}:binders"
COMPUTE_BINDERS = "compute:binders"
_USERS = "compute:authenticated:use"
# Another hub on the same store may write the same object at the same moment.
_ATTEMPTS = 5
# Everybody who is authenticated, as an export's policy knows them.
_BOUND_USERS = f"{BOUND_PREFIX}system:authenticated"
_BOUND_SCOPED = f"{BOUND_PREFIX}{SCOPED}"

# kcp's own compute export, and the finer ones KubeStellar adds.
_KUBERNETES = (("apps", "deployments"), ("networking.k8s.io", "ingresses"), ("", "pods"),
               ("", "services"))  # fmt: skip
FINER_EXPORTS: dict[str, Sequence[tuple[str, str]]] = {
    "apps": tuple(("apps", name) for name in ("daemonsets", "replicasets", "statefulsets")),
    "autoscaling": (("autoscaling", "horizontalpodautoscalers"),),
    "batch": (("batch", "cronjobs"), ("batch", "jobs")),
    "core.k8s.io": tuple(
        ("", name)
        for name in (
            "endpoints",
            "persistentvolumeclaims",
            "persistentvolumes",
            "podtemplates",
            "replicationcontrollers",
        )
    ),
    "discovery.k8s.io": (("discovery.k8s.io", "endpointslices"),),
    "networking.k8s.io": (
        ("networking.k8s.io", "ingressclasses"),
        ("networking.k8s.io", "networkpolicies"),
    ),
    "policy": (("policy", "poddisruptionbudgets"),),
    "storage.k8s.io": (
        ("storage.k8s.io", "csidrivers"),
        ("storage.k8s.io", "csinodes"),
        ("storage.k8s.io", "storageclasses"),
        ("storage.k8s.io", "volumeattachments"),
    ),
}


async def ensure_compute(api: HubServer) -> None:
    """Make sure ``root:compute`` offers Kubernetes' workload kinds."""
    await _ensure(api, "root", _workspace("compute", "universal"))
    policy: Object = {"local": {}}
    annotations = {"extra.apis.kcp.io/compute.workload.kcp.io": "true"}
    export = _export_objects("kubernetes", _KUBERNETES, policy=policy, annotations=annotations)
    # What is done with the copies in a mailbox is between the mailbox and its edge.
    permissions = _permissions(_KUBERNETES, _USERS, _BOUND_USERS, _BOUND_SCOPED)
    for obj in [*export, *permissions, *_binders("kubernetes", COMPUTE_BINDERS)]:
        await _ensure(api, COMPUTE, obj)


async def ensure_edge_provider(api: HubServer) -> None:
    """Make sure ``root:espw`` offers the edge kinds, and ``root:compute`` the finer exports."""
    for cluster, obj in edge_provider_objects():
        await _ensure(api, cluster, obj)


def edge_provider_objects() -> list[tuple[str, Object]]:
    """Return everything of the edge provider, each with its workspace, in the order of making."""
    made = [("root", _workspace("espw", ""))]
    made += [(USUAL_PROVIDER, obj) for obj in edge_export_objects()]
    for name, kinds in FINER_EXPORTS.items():
        objects = [*_export_objects(name, kinds), *_binders(name, COMPUTE_BINDERS)]
        made += [(COMPUTE, obj) for obj in objects]
    return made


def edge_export_objects() -> list[Object]:
    """Return the schemas and the export of ``edge.kcp.io``, and who may bind it."""
    schemas = [schema_object(kind, EDGE_PREFIX) for kind in edge.definitions()]
    export = {
        "apiVersion": "apis.kcp.io/v1alpha1",
        "kind": "APIExport",
        "metadata": {"name": edge.GROUP},
        "spec": {"latestResourceSchemas": [s["metadata"]["name"] for s in schemas]},
    }
    return [*schemas, export, *_binders(edge.GROUP, EDGE_BINDERS)]


def _workspace(name: str, type_name: str) -> Object:
    spec: Object = {"type": {"name": type_name, "path": "root"}} if type_name else {}
    return {
        "apiVersion": str(WORKSPACES.group_version),
        "kind": "Workspace",
        "metadata": {"name": name},
        "spec": spec,
    }


def _export_objects(
    name: str,
    kinds: Sequence[tuple[str, str]],
    *,
    policy: Object | None = None,
    annotations: dict[str, str] | None = None,
) -> list[Object]:
    schemas = []
    for group, resource in kinds:
        native = next(
            r
            for r in builtin_resources()
            if r.info.group_resource == (group, resource) and r.info.version == r.storage_version
        )
        schemas.append(native_schema_object(native, _NATIVE_PREFIX))
    spec: Object = {"latestResourceSchemas": sorted(s["metadata"]["name"] for s in schemas)}
    if policy is not None:
        spec["maximalPermissionPolicy"] = policy
    export: Object = {
        "apiVersion": "apis.kcp.io/v1alpha1",
        "kind": "APIExport",
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": spec,
    }
    return [*schemas, export]


def compute_permission_objects() -> list[Object]:
    """Return what lets edges report status where the compute export's own policy does not.

    The name is not that of a role which a hub has from the start: it adds and replaces nothing.
    """
    return _permissions(_KUBERNETES, f"{edge.GROUP}:report", _BOUND_USERS)


def _permissions(kinds: Sequence[tuple[str, str]], name: str, *groups: str) -> list[Object]:
    """Return the most that users of the compute export may do: all of it, status included."""
    rules = [
        {
            "apiGroups": [group],
            "resources": [resource, f"{resource}/status", f"{resource}/scale"],
            "verbs": ["*"],
        }
        for group, resource in kinds
    ]
    return [_role(name, rules), _role_binding(name, *groups)]


def _binders(export: str, group: str) -> list[Object]:
    """Return what lets *group* bind *export*; it lets nobody into the workspace."""
    bind = {
        "apiGroups": ["apis.kcp.io"],
        "resources": ["apiexports"],
        "resourceNames": [export],
        "verbs": ["bind"],
    }
    name = f"{export}:bind"
    return [_role(name, [bind]), _role_binding(name, group)]


def _superseded(obj: Object) -> Object | None:
    """Return what the version before made of *obj*, where that granted something else.

    It let who binds also enter, or everybody bind, and knew no principals of single workspaces.
    """
    name = obj["metadata"]["name"]
    if obj["kind"] == "ClusterRole" and name.endswith(":bind"):
        return {**obj, "rules": [*obj["rules"], {"nonResourceURLs": ["/"], "verbs": ["access"]}]}
    if obj["kind"] == "ClusterRoleBinding":
        return _role_binding(name, _BOUND_USERS if name == _USERS else "system:authenticated")
    return None


def _role(name: str, rules: Sequence[Object]) -> Object:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": list(rules),
    }


def _role_binding(role: str, *groups: str) -> Object:
    """Return the binding of a role, by its name, to groups."""
    api_group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{api_group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": role},
        "roleRef": {"apiGroup": api_group, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": api_group, "kind": "Group", "name": each} for each in groups],
    }


_PLURALS = {
    "APIExport": "apiexports",
    "APIResourceSchema": "apiresourceschemas",
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
    "Workspace": "workspaces",
}


async def _ensure(api: HubServer, cluster: str, obj: Object) -> None:
    """Create *obj* unless it is there; bring what the version before made up to this one."""
    path = f"/clusters/{cluster}/apis/{obj['apiVersion']}/{_PLURALS[obj['kind']]}"
    try:
        await _asked(api, "POST", path, obj)
    except AlreadyExists:
        if obj["kind"] == "Workspace":
            # Another hub may have made it this moment; what goes into it must find the way.
            await api.dispatcher.reached(await api.store.revision())
        else:
            await _upgrade(api, f"{path}/{obj['metadata']['name']}", obj)


async def _upgrade(api: HubServer, path: str, wanted: Object) -> None:
    """Write what this version says differently of an object that was there."""
    for _ in range(_ATTEMPTS):
        changed = upgraded(await _asked(api, "GET", path), wanted)
        if changed is None:
            return
        with contextlib.suppress(Conflict):
            await _asked(api, "PUT", path, changed)


def upgraded(live: Object, wanted: Object) -> Object | None:
    """Return *live*, which an earlier version made, as this one wants it; None when it is."""
    if wanted["kind"] == "APIExport":
        return extended_export(live, wanted)
    return regranted(live, wanted)


def extended_export(live: Object, wanted: Object) -> Object | None:
    """Return *live* with the kinds of *wanted*, at its schemas; None when it has them.

    A schema that an earlier version made gives way to this one's, and bindings follow: fields are
    only ever added. One that somebody else put there stays.
    """
    offered = list(live["spec"].get("latestResourceSchemas") or ())
    ours = {name.partition(".")[2]: name for name in wanted["spec"]["latestResourceSchemas"]}
    renewed = [_newer(name, ours.get(name.partition(".")[2], name)) for name in offered]
    kinds = {name.partition(".")[2] for name in offered}
    renewed += [name for kind, name in ours.items() if kind not in kinds]
    if renewed == offered:
        return None
    return {**live, "spec": {**live["spec"], "latestResourceSchemas": renewed}}


def _newer(offered: str, ours: str) -> str:
    """Return *ours* where *offered* is by its name an earlier version of it."""
    dates = [name.partition(".")[0] for name in (offered, ours)]
    dated = all(date[:1] == "v" and len(date) == 7 and date[1:].isdigit() for date in dates)
    return ours if dated and dates[0] < dates[1] else offered


def regranted(live: Object, wanted: Object) -> Object | None:
    """Return *live* with the grants of *wanted*, if it has exactly those of the version before.

    What somebody has edited is theirs.
    """
    before = _superseded(wanted)
    granted = [part for part in ("rules", "subjects") if part in wanted]
    if before is None or any(live.get(part) != before[part] for part in granted):
        return None
    return {**live, **{part: wanted[part] for part in granted}}


async def _asked(api: HubServer, verb: str, path: str, obj: Object | None = None) -> Object:
    headers = {"content-type": "application/json", "user-agent": "skerry/hub"}
    body = b"" if obj is None else orjson.dumps(obj)
    answer = await api.engine.handle(Request(verb, path, "", headers, body, Peer(user=_SYSTEM)))
    if not isinstance(answer, Response):
        raise InternalError(f"{verb} {path}: want an object, found a stream")
    raw = answer.body if isinstance(answer.body, bytes) else b"".join(answer.body)
    found: Object = orjson.loads(raw)
    if answer.status >= 300:
        raise from_status(answer.status, found)
    return found
