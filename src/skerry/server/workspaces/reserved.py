"""What of a person's own objects is the server's: marks it finds its way by, and its finalizers.

An administrator of a workspace may edit its LogicalCluster, the Workspaces in it and its
APIBindings. What they would lie about by that (of which type a workspace is, whose it is, which
groups it requires), they may not change; what they leave out, as ``kubectl replace`` does, stays.
A finalizer of the server's comes back until the object is being deleted, and is then the server's
to take off: whatever it stands for would be left behind.
"""

from __future__ import annotations

from typing import Literal

from skerry.api.objects import Object
from skerry.api.refs import PATH_ANNOTATION
from skerry.logic.machinery.workspaces import workspace_content
from skerry.logic.machinery.workspaces.bindings import EXPORT_LABEL, FINALIZER
from skerry.logic.machinery.workspaces.names import INITIALIZER_LABEL
from skerry.server.admission.operation import Operation
from skerry.server.security.authorization import MASTERS
from skerry.server.workspaces.state import APIS, CORE, TENANCY

_FINALIZERS = {
    (TENANCY, "workspaces"): workspace_content.WORKSPACE_FINALIZER,
    (CORE, "logicalclusters"): workspace_content.CLUSTER_FINALIZER,
    (APIS, "apibindings"): FINALIZER,
}
_ANNOTATIONS = (
    workspace_content.OWNER,
    PATH_ANNOTATION,
    workspace_content.REQUIRED_GROUPS,
    "internal.tenancy.kcp.io/",
)
_LABELS = (workspace_content.PHASE_LABEL, INITIALIZER_LABEL, EXPORT_LABEL)


class ReservedMetadata:
    """Keeps the server's marks and finalizers on workspaces, logical clusters and bindings."""

    async def admit(self, operation: Operation) -> None:
        finalizer = _FINALIZERS.get(operation.type)
        if finalizer is None or operation.verb != "UPDATE" or operation.old is None:
            return
        if MASTERS not in operation.call.user.groups:
            _keep(operation, operation.old, "annotation", _ANNOTATIONS)
            _keep(operation, operation.old, "label", _LABELS)
        _hold(operation, operation.old, finalizer)


def _keep(
    operation: Operation,
    old: Object,
    what: Literal["annotation", "label"],
    reserved: tuple[str, ...],
) -> None:
    """Put back what was left out of what is *reserved*; refuse what was changed or added."""
    member = f"{what}s"
    before = _reserved(old, member, reserved)
    for name, value in _reserved(operation.obj, member, reserved).items():
        if before.get(name) != value:
            raise operation.forbidden(f'modification of reserved {what}: "{name}"')
    if before:
        metadata = operation.obj["metadata"]
        metadata[member] = (metadata.get(member) or {}) | before


def _reserved(obj: Object, member: str, reserved: tuple[str, ...]) -> dict[str, str]:
    found = obj["metadata"].get(member) or {}
    return {name: value for name, value in found.items() if name.startswith(reserved)}


def _hold(operation: Operation, old: Object, finalizer: str) -> None:
    """Keep *finalizer* on an object that is not being deleted, and from people on one that is."""
    metadata = operation.obj["metadata"]
    if finalizer in (metadata.get("finalizers") or ()):
        return
    if "deletionTimestamp" not in metadata:
        metadata["finalizers"] = [*(metadata.get("finalizers") or ()), finalizer]
    elif finalizer in (old["metadata"].get("finalizers") or ()) and (
        MASTERS not in operation.call.user.groups
    ):
        raise operation.forbidden(f"removing the finalizer {finalizer} is forbidden")
