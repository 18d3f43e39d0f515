"""What a mailbox lacks, or that it has outlived its SyncTarget.

A mailbox is three objects, made one after the other: a Workspace, its mark, and the APIBinding in
it. Each step is decided from what is there and not from what was done before, so whoever removes
one of them, at any time, finds it made again. The reference of a binding cannot be changed; one
that leads elsewhere is deleted, and made in the next round.

The SyncTarget's absence is taken for true here. That it is, ``observe`` has asked the server: a
deletion takes with it all that was placed at an edge.
"""

from __future__ import annotations

from skerry.api.edge import EXPORT, MAILBOX_BINDING, SYNC_TARGET_NAME
from skerry.api.kcp.resources import API_BINDINGS, WORKSPACES
from skerry.api.objects import Object
from skerry.controllers.mailbox.events import content_of
from skerry.controllers.mailbox.observe import Observed
from skerry.logic.fleet.placement.records import is_being_deleted
from skerry.logic.machinery.plan import NOTHING, Action, Create, Delete, Patch, Plan, Target

# A binding that refers elsewhere is in nobody's view, so no event tells that it has gone. It is
# asked for soon, as an edge waits for the right one; not at once, as its finalizers take a moment.
_REQUEUE_AFTER_SECONDS = 0.2


def decide(observed: Observed) -> Plan:
    """Have exactly one mailbox, marked and bound, while the SyncTarget is there."""
    workspace = observed.workspace
    if observed.sync_target is None:
        return _departure(observed)
    if workspace is None:
        return Plan([_creation(observed, observed.sync_target)])
    if is_being_deleted(workspace):
        return NOTHING  # its end is an event, and then it is made anew
    actions: list[Action] = []
    if _marked_as(workspace) != observed.sync_target:
        actions.append(_mark(observed, observed.sync_target))
    if not content_of(workspace):
        return Plan(actions)  # what it stands for is an event, too
    return _bound(observed, actions)


def _departure(observed: Observed) -> Plan:
    """Delete a mailbox without SyncTarget."""
    workspace = observed.workspace
    if workspace is None or is_being_deleted(workspace):
        return NOTHING
    uid = workspace["metadata"]["uid"]
    return Plan([Delete(_workspace(observed), reason="SyncTargetGone", uid=uid)])


def _bound(observed: Observed, actions: list[Action]) -> Plan:
    binding = observed.binding
    cluster = content_of(observed.workspace or {})
    target = Target(API_BINDINGS, MAILBOX_BINDING, cluster=cluster)
    wanted = {"export": {"path": observed.provider.path, "name": EXPORT}}
    if binding is None:
        obj = _object(str(API_BINDINGS.group_version), "APIBinding", MAILBOX_BINDING)
        obj["spec"] = {"reference": wanted}
        return Plan([*actions, Create(target, obj, reason="BindingMissing")])
    if is_being_deleted(binding) or _same_reference(binding, observed):
        return Plan(actions)
    # A reference cannot be changed, only replaced.
    uid = binding["metadata"]["uid"]
    return Plan(
        [*actions, Delete(target, reason="BoundElsewhere", uid=uid)],
        requeue_after_seconds=_REQUEUE_AFTER_SECONDS,
    )


def _same_reference(binding: Object, observed: Observed) -> bool:
    # By path or by cluster: whoever bound it by hand may have named the provider in either way.
    reference = (binding.get("spec") or {}).get("reference") or {}
    export = reference.get("export") or {}
    paths = (observed.provider.path, observed.provider.cluster)
    return export.get("name") == EXPORT and export.get("path") in paths


def _creation(observed: Observed, sync_target: str) -> Create:
    obj = _object(str(WORKSPACES.group_version), "Workspace", observed.mailbox.workspace)
    obj["metadata"]["annotations"] = {SYNC_TARGET_NAME: sync_target}
    obj["spec"] = {}
    return Create(_workspace(observed), obj, reason="SyncTargetAdded")


def _mark(observed: Observed, sync_target: str) -> Patch:
    patch = {"metadata": {"annotations": {SYNC_TARGET_NAME: sync_target}}}
    return Patch(
        _workspace(observed), patch, reason="MarkMissing", retry_on_conflict=True,
        absent_is_fine=True,
    )  # fmt: skip


def _marked_as(workspace: Object) -> str:
    annotations = workspace["metadata"].get("annotations") or {}
    return str(annotations.get(SYNC_TARGET_NAME) or "")


def _workspace(observed: Observed) -> Target:
    return Target(WORKSPACES, observed.mailbox.workspace, cluster=observed.provider.path)


def _object(api_version: str, kind: str, name: str) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}
