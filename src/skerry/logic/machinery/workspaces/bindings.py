"""Binding an export: what is bound, and what stands against it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skerry.api.edge import is_inert
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.logic.machinery.conditions import (
    condition_of,
    dated,
    find_condition,
    ready_first,
    set_conditions,
    unmet,
)
from skerry.logic.machinery.schema.lists import identity
from skerry.logic.machinery.workspaces.names import label_hash

FINALIZER = "apis.kcp.io/apibinding-finalizer"
EXPORT_LABEL = "internal.apis.kcp.io/export"
_APPLIED, _VALID = "PermissionClaimsApplied", "PermissionClaimsValid"
_BOUND_ONCE = "InitialBindingCompleted"
_HEALTHY = ("Ready", "APIExportValid", "BindingUpToDate", _BOUND_ONCE, _APPLIED, _VALID)
# What a binding says that was never bound.
_WAITING = unmet(
    _BOUND_ONCE, "WaitingForEstablished", "Waiting for API(s) to be established", severity="Info"
)
# Of claims that are wrong, so many are named.
_SHOWN = 10


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
    # Whether the words are all there is to say, as they are of a definition.
    whole: bool = False


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
        text = f"APIExport {where} not found"
        return _failed(old, now, [unmet("APIExportValid", "APIExportNotFound", text)])
    problems = _problems(export, taken, old, where)
    if problems:
        failed = _failed(old, now, problems)
        _settle_claims(failed, export, spec.get("permissionClaims") or [], now)
        return failed | {"apiExportClusterName": export.cluster}
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
    _settle_claims(status, export, spec.get("permissionClaims") or [], now)
    return status


def _problems(export: Export, taken: Sequence[Taken], old: Object, where: str) -> list[Object]:
    """Return what stands against binding *export*, as conditions."""
    if not export.identity:
        text = f"APIExport {where} is missing status.identityHash"
        return [unmet("APIExportValid", "MissingIdentityHash", text, severity="Warning")]
    if export.missing:
        text = f"APIResourceSchema {export.missing[0]} not found"
        return [unmet("APIExportValid", "InternalError", text)]
    conflict = _conflict(export, taken)
    if not conflict:
        return []
    found = [unmet("BindingUpToDate", "NamingConflicts", conflict)]
    if old.get("phase") != "Bound":
        found.append(unmet(_BOUND_ONCE, "NamingConflicts", conflict))
    return found


def agreed_spec(binding: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the spec of *binding*; of a copy, without the claims that its source accepts.

    The translator writes copies with the rights of the hub. Their source agreed to show its own
    workspace, and not what others placed in the mailbox.
    """
    spec: Mapping[str, Any] = binding.get("spec") or {}
    if not is_inert(binding):
        return spec
    return {name: value for name, value in spec.items() if name != "permissionClaims"}


def _settle_claims(
    status: Object, export: Export, answers: Sequence[Mapping[str, Any]], now: str
) -> None:
    """Say which claims of the export hold here: those it makes and the binding accepts."""
    accepted = [_bare(claim) for claim in answers if claim.get("state") == "Accepted"]
    made = [dict(claim) for claim in export.claims]
    for stale in ("exportPermissionClaims", "appliedPermissionClaims"):
        status.pop(stale, None)
    if made:
        status["exportPermissionClaims"] = made
    known = {identity(claim) for claim in made}
    applied = [claim for claim in accepted if identity(claim) in known]
    if applied:
        status["appliedPermissionClaims"] = applied
    wrong = sorted(_claim_name(claim) for claim in accepted if identity(claim) not in known)
    wanted: list[Object] = [{"type": kind, "status": "True"} for kind in (_APPLIED, _VALID)]
    if wrong:
        shown = wrong[:_SHOWN]
        text = shown[0] if len(shown) == 1 else f"[{', '.join(shown)}]"
        text = f"{len(wrong)} unexpected and/or invalid permission claims (showing first {len(shown)}): {text}"  # noqa: E501
        wanted[1] = unmet(_VALID, "InvalidPermissionClaims", text)
    status["conditions"] = ready_first(set_conditions(status["conditions"], wanted, now))


def _claim_name(claim: Mapping[str, Any]) -> str:
    named = f"{claim.get('resource', '')}.{claim.get('group', '')}"
    return f'unexpected/invalid claim for {named} (identity "{claim.get("identityHash", "")}")'


def _bare(claim: Mapping[str, Any]) -> Object:
    return {key: value for key, value in claim.items() if key != "state"}


def _conflict(export: Export, taken: Sequence[Taken]) -> str:
    for schema in export.schemas:
        spec = schema["spec"]
        wanted = GroupResource(spec["group"], spec["names"]["plural"])
        for other in taken:
            if other.whole and other.resource == wanted:
                return f"Unable to bind APIs: {other.by}"
            if other.resource == wanted:
                return f"Unable to bind APIs: {other.by}, spec.names.plural={wanted.resource} is forbidden"  # noqa: E501
            if other.resource.group == wanted.group and other.kind == spec["names"]["kind"]:
                return f"Unable to bind APIs: {other.by}, spec.names.kind={other.kind} is forbidden"
    return ""


def _failed(old: Object, now: str, problems: Sequence[Object]) -> Object:
    """Return the status of a binding that is not what it should be, for these *problems*.

    Ready says whether it was ever bound, as in kcp: what was bound stays in use, and there are
    objects of it, so a fault of the export that comes later does not make it unready.
    """
    known = old.get("conditions") or ()
    conditions = set_conditions(known, problems if known else [_WAITING, *problems], now)
    bound = condition_of(conditions, _BOUND_ONCE) or _WAITING
    summary = {name: bound[name] for name in bound if name != "lastTransitionTime"}
    conditions = set_conditions(conditions, [{**summary, "type": "Ready"}], now)
    kept = ("apiExportClusterName", "appliedPermissionClaims", "boundResources",
            "exportPermissionClaims")  # fmt: skip
    return {
        **{key: old[key] for key in kept if key in old},
        "conditions": ready_first(conditions),
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
