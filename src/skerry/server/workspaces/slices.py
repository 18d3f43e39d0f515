"""APIExportEndpointSlices: where the views of an export are.

An export has a view at each Shard: at the hub's own, and at others that somebody has made. A slice
that names a Partition has those of the Shards that the Partition selects. Slices are looked at when
they are written and when their export, their Partition or a Shard comes, goes or changes.
"""

from __future__ import annotations

from collections.abc import Callable

from skerry.api.errors import FieldError, Forbidden, Invalid
from skerry.api.kcp.compute import TOPOLOGY
from skerry.api.keys import ObjectKey, type_prefix
from skerry.api.objects import Object
from skerry.kit.clock import Clock
from skerry.kit.timestamps import rfc3339
from skerry.logic.machinery.conditions import ready_first, set_conditions, unmet
from skerry.logic.machinery.selectors import Selector, SelectorError
from skerry.logic.machinery.workspaces.bindings import Export
from skerry.logic.machinery.workspaces.names import ROOT
from skerry.logic.machinery.workspaces.workspace_content import SHARD
from skerry.server.access import Authorizer
from skerry.server.admission.operation import Operation
from skerry.server.codec import decode
from skerry.server.workspaces.catalogue import HubCatalogue
from skerry.server.workspaces.exports import may_bind
from skerry.server.workspaces.state import APIS, CORE, HubState
from skerry.store.base import Store

SLICES = (APIS, "apiexportendpointslices")

# In the order in which they are judged.
_CONDITIONS = ("APIExportValid", "PartitionValid", "EndpointURLsReady")
# Type, reason and message of a condition that is False.
_Fault = tuple[str, str, str]


class Slices:
    """Works out what slices say."""

    def __init__(
        self,
        state: HubState,
        catalogue: HubCatalogue,
        store: Store,
        base_url: Callable[[], str],
    ) -> None:
        self._state = state
        self._catalogue = catalogue
        self._store = store
        self._base_url = base_url

    def export(self, cluster: str, obj: Object) -> Export | None:
        """Return the export a slice in *cluster* names."""
        reference = _reference(obj)
        return self._state.export(reference.get("path", ""), reference.get("name", ""), cluster)

    async def status(self, cluster: str, obj: Object, now: str) -> Object:
        """Return what a slice in *cluster* should say."""
        old = obj.get("status") or {}
        export = self.export(cluster, obj)
        if export is None:
            reference = _reference(obj)
            where = f"{reference.get('path') or cluster}|{reference.get('name', '')}"
            gone = ("APIExportValid", "APIExportNotFound", f"Error getting APIExport {where}")
            return _status(old, gone, [], now)
        partition = (obj.get("spec") or {}).get("partition")
        try:
            bases = await self._bases(cluster, partition)
        except SelectorError as error:
            fault = ("PartitionValid", "PartitionInvalidReference", str(error))
            return _status(old, fault, [], now)
        where = f"services/apiexport/{export.cluster}/{export.name}"
        return _status(old, None, [{"url": f"{base}/{where}"} for base in bases], now)

    async def _bases(self, cluster: str, partition: str | None) -> list[str]:
        """Return where the views of the Shards are that a Partition selects; without one, of all.

        Raises SelectorError where the Partition does not say.
        """
        selects = await self._selector(cluster, partition) if partition else Selector([])
        found = set()
        for entry in (await self._store.range(type_prefix(CORE, "shards", ROOT))).entries:
            shard = decode(entry.value, entry.revision)
            if selects.matches(shard["metadata"].get("labels")):
                # The hub's own answers at the name that it goes by now.
                own = self._base_url() if shard["metadata"]["name"] == SHARD else ""
                found.add(own or (shard.get("spec") or {}).get("virtualWorkspaceURL"))
        return sorted(base.rstrip("/") for base in found if base)

    async def _selector(self, cluster: str, partition: str) -> Selector:
        partitions = self._catalogue.types(cluster).find(TOPOLOGY, "v1alpha1", "partitions")
        entry = None
        if partitions is not None:
            place = (partitions.stored_group, partitions.storage_resource)
            entry = await self._store.get(ObjectKey(*place, cluster, "", partition).path())
        if entry is None:
            raise SelectorError(f'partitions.topology.kcp.io "{partition}" not found')
        spec = decode(entry.value, entry.revision).get("spec") or {}
        # As in kcp, one that is absent selects nothing.
        return Selector.from_label_selector(spec.get("selector"))


class SliceRules:
    """Completes slices, for who may bind the export."""

    def __init__(self, slices: Slices, authorizer: Authorizer, clock: Clock) -> None:
        self._slices = slices
        self._authorizer = authorizer
        self._clock = clock

    async def admit(self, operation: Operation) -> None:
        if operation.type != SLICES or operation.verb == "DELETE" or operation.subresource:
            return
        cluster, obj = operation.call.info.cluster, operation.obj
        if operation.old is None:
            self._check(operation, cluster)
        elif _reference(operation.old) != _reference(obj):
            detail = "APIExport reference must not be changed"
            error = FieldError.invalid("spec.export", "object", detail)
            raise Invalid.of(APIS, "APIExportEndpointSlice", obj["metadata"]["name"], [error])
        obj["status"] = await self._slices.status(cluster, obj, rfc3339(self._clock.now()))

    def _check(self, operation: Operation, cluster: str) -> None:
        """Refuse who may not bind the export, in words that do not tell whether there is one."""
        reference = _reference(operation.obj)
        path, name = reference.get("path", ""), reference.get("name", "")
        export = self._slices.export(cluster, operation.obj)
        where = export.cluster if export is not None else "" if path else cluster
        if may_bind(self._authorizer, operation.call.user, where, name):
            return
        named = f"{path}:{name}" if path else name
        why = f"unable to create APIExportEndpointSlice: no permission to bind to export {named}"
        raise Forbidden.of(*SLICES, operation.obj["metadata"].get("name", ""), why)


def _reference(obj: Object) -> Object:
    found: Object = (obj.get("spec") or {}).get("export") or {}
    return found


def _status(old: Object, fault: _Fault | None, endpoints: list[Object], now: str) -> Object:
    """Return the status of a slice; without endpoints to tell, that is False too.

    While there is no export there is no condition about its Partition.
    """
    wanted: list[Object] = [{"status": "True", "type": kind} for kind in _CONDITIONS]
    if fault is not None:
        named = _CONDITIONS.index(fault[0])
        wanted = [*wanted[:named], unmet(*fault), unmet("EndpointURLsReady", "ErrorGeneratingURLs")]
    conditions = ready_first(set_conditions(old.get("conditions") or (), wanted, now))
    return {"conditions": conditions, "endpoints": endpoints}
