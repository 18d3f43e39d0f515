"""Binding an export: what is bound, and what stands against it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skerry.api.edge import is_inert
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.logic.machinery.conditions import dated, find_condition
from skerry.logic.machinery.schema.lists import identity
from skerry.logic.machinery.workspaces.names import label_hash

FINALIZER = "apis.kcp.io/apibinding-finalizer"
EXPORT_LABEL = "internal.apis.kcp.io/export"
CLAIMED_LABEL = "claimed.internal.apis.kcp.io/"
_HEALTHY = (
    "Ready",
    "APIExportValid",
    "BindingUpToDate",
    "InitialBindingCompleted",
    "PermissionClaimsApplied",
    "PermissionClaimsValid",
)


@dataclass(frozen=True, slots=True)
class Export:
    """An APIExport as bindings see it."""

    cluster: str
    path: str
    name: str
    identity: str
    # The schemas it offers, by name; those that do not exist are in ``missing``.
    schemas: tuple[Object, ...]
    missing: tuple[str, ...] = ()
    claims: tuple[Object, ...] = ()
    annotations: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Taken:
    """A resource name already in use in the workspace, and by whom (in words)."""

    resource: GroupResource
    kind: str
    by: str


def taken_by(binding: str, export: Export) -> list[Taken]:
    """Return the names a binding to *export* takes."""
    where = f"{export.path}:{export.name}"
    by = f'naming conflict with APIBinding "{binding}" bound to APIExport {where}'
    return [
        Taken(
            GroupResource(schema["spec"]["group"], schema["spec"]["names"]["plural"]),
            schema["spec"]["names"]["kind"],
            by,
        )
        for schema in export.schemas
    ]


def bound_resource(schema: Object, identity: str) -> Object:
    """Return the entry of ``status.boundResources`` for one schema."""
    spec = schema["spec"]
    return {
        "group": spec["group"],
        "resource": spec["names"]["plural"],
        "schema": {
            "UID": schema["metadata"]["uid"],
            "identityHash": identity,
            "name": schema["metadata"]["name"],
        },
        "storageVersions": [v["name"] for v in spec["versions"] if v.get("storage")],
    }


def bound_status(
    export: Export | None,
    taken: Sequence[Taken],
    spec: Mapping[str, Any],
    old: Object,
    now: str,
    cluster: str = "",
) -> Object:
    """Return the status of a binding to *export* (None: there is none), at *now*.

    What was bound before stays bound, also when the export no longer offers it: objects of that
    type exist. The binding is in *cluster*.
    """
    named = (spec.get("reference") or {}).get("export") or {}
    where = f"{named.get('path') or cluster}|{named.get('name', '')}"
    if export is None:
        problem = ("APIExportValid", "APIExportNotFound", f"APIExport {where} not found")
        return _failed(old, now, problem)
    if not export.identity:
        text = f"APIExport {where} is missing status.identityHash"
        return _failed(old, now, ("APIExportValid", "MissingIdentityHash", text))
    if export.missing:
        text = f"APIResourceSchema {export.missing[0]} not found"
        return _failed(old, now, ("APIExportValid", "InternalError", text))
    conflict = _conflict(export, taken)
    if conflict:
        return _failed(old, now, ("BindingUpToDate", "NamingConflicts", conflict)) | {
            "apiExportClusterName": export.cluster
        }
    offered = {
        (s["spec"]["group"], s["spec"]["names"]["plural"]): bound_resource(s, export.identity)
        for s in export.schemas
    }
    kept = {(r["group"], r["resource"]): r for r in old.get("boundResources") or []}
    merged = kept | offered
    status: Object = {
        "apiExportClusterName": export.cluster,
        "boundResources": [merged[key] for key in sorted(merged)],
        "conditions": [
            dated({"status": "True", "type": name}, find_condition({"status": old}, name), now)
            for name in _HEALTHY
        ],
        "phase": "Bound",
    }
    _settle_claims(status, export, spec.get("permissionClaims") or [])
    return status


def agreed_spec(binding: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the spec of *binding*; of a copy, without the claims that its source accepts.

    The translator writes copies with the rights of the hub. Their source agreed to show its own
    workspace, and not what others placed in the mailbox.
    """
    spec: Mapping[str, Any] = binding.get("spec") or {}
    if not is_inert(binding):
        return spec
    return {name: value for name, value in spec.items() if name != "permissionClaims"}


def _settle_claims(status: Object, export: Export, answers: Sequence[Mapping[str, Any]]) -> None:
    """Say which claims of the export hold here: those it makes and the binding accepts."""
    accepted = [_bare(claim) for claim in answers if claim.get("state") == "Accepted"]
    made = [dict(claim) for claim in export.claims]
    if made:
        status["exportPermissionClaims"] = made
    known = {identity(claim) for claim in made}
    applied = [claim for claim in accepted if identity(claim) in known]
    if applied:
        status["appliedPermissionClaims"] = applied
    unknown = [claim for claim in map(_bare, answers) if identity(claim) not in known]
    if unknown:
        named = ", ".join(_claim_name(claim) for claim in unknown)
        for condition in status["conditions"]:
            if condition["type"] == "PermissionClaimsValid":
                condition |= {
                    "status": "False",
                    "severity": "Error",
                    "reason": "InvalidPermissionClaims",
                    "message": f"unexpected/invalid claims for this APIExport: {named}",
                }


def _claim_name(claim: Mapping[str, Any]) -> str:
    return ".".join(part for part in (claim.get("resource", ""), claim.get("group", "")) if part)


def _bare(claim: Mapping[str, Any]) -> Object:
    return {key: value for key, value in claim.items() if key != "state"}


def _conflict(export: Export, taken: Sequence[Taken]) -> str:
    for schema in export.schemas:
        spec = schema["spec"]
        wanted = GroupResource(spec["group"], spec["names"]["plural"])
        for other in taken:
            if other.resource == wanted:
                return f"Unable to bind APIs: {other.by}, spec.names.plural={wanted.resource} is forbidden"  # noqa: E501
            if other.resource.group == wanted.group and other.kind == spec["names"]["kind"]:
                return f"Unable to bind APIs: {other.by}, spec.names.kind={other.kind} is forbidden"
    return ""


def _failed(old: Object, now: str, problem: tuple[str, str, str]) -> Object:
    kind, reason, message = problem
    said = {"message": message, "reason": reason, "severity": "Error", "status": "False"}
    failed = dated(said, find_condition({"status": old}, kind), now)
    conditions = [{**failed, "type": "Ready"}, {**failed, "type": kind}]
    if kind != "APIExportValid":
        conditions.append({**failed, "type": "InitialBindingCompleted"})
    return {
        # What was bound stays in use: there are objects of it.
        **{key: old[key] for key in ("apiExportClusterName", "boundResources") if key in old},
        "conditions": conditions,
        "phase": "Bound" if old.get("phase") == "Bound" else "Binding",
    }


def is_pinned_elsewhere(binding: Object, export_cluster: str, export_name: str) -> bool:
    """Tell whether a binding was made to an export of another cluster than *export_cluster*.

    A path may come to lead to another workspace. Whoever was let bind what was there before has
    no right to what is there now.
    """
    pinned = (binding["metadata"].get("labels") or {}).get(EXPORT_LABEL)
    return pinned not in (None, label_hash(f"{export_cluster}:{export_name}"))


def binding_labels(export_cluster: str, export_name: str) -> dict[str, str]:
    """Return the labels by which an export finds its bindings."""
    return {EXPORT_LABEL: label_hash(f"{export_cluster}:{export_name}")}
