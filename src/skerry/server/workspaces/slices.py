"""APIExportEndpointSlices: where the views of an export are.

There is one Shard, so an export has one view. A slice that names a Partition has it if the
Partition selects that Shard. Slices are looked at when they are written and when their export or
Partition comes, goes or changes.
"""

from __future__ import annotations

from collections.abc import Callable

from skerry.api.errors import FieldError, Forbidden, Invalid
from skerry.api.keys import ObjectKey
from skerry.api.objects import Object
from skerry.kit.clock import Clock
from skerry.kit.timestamps import rfc3339
from skerry.logic.machinery.conditions import condition_of, dated
from skerry.logic.machinery.selectors import Selector, SelectorError
from skerry.logic.machinery.workspaces.bindings import Export
from skerry.logic.machinery.workspaces.names import ROOT
from skerry.logic.machinery.workspaces.workspace_content import SHARD
from skerry.server.access import Authorizer
from skerry.server.admission.operation import Operation
from skerry.server.catalogue import TypeSet
from skerry.server.codec import decode
from skerry.server.workspaces.catalogue import HubCatalogue
from skerry.server.workspaces.exports import may_bind
from skerry.server.workspaces.state import APIS, HubState
from skerry.store.base import Store

SLICES = (APIS, "apiexportendpointslices")

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
        selected, problem = await self._selected(cluster, (obj.get("spec") or {}).get("partition"))
        if problem:
            return _status(old, ("PartitionValid", "PartitionInvalidReference", problem), [], now)
        url = f"{self._base_url()}/services/apiexport/{export.cluster}/{export.name}"
        return _status(old, None, [{"url": url}] if selected else [], now)

    async def _selected(self, cluster: str, partition: str | None) -> tuple[bool, str]:
        """Tell whether a Partition selects the one Shard, and what is wrong with it."""
        if not partition:
            return True, ""
        types = self._catalogue.types(cluster)
        obj = await self._get(types, "topology.kcp.io", "partitions", cluster, partition)
        if obj is None:
            return False, f'partition.topology.kcp.io "{partition}" not found'
        shards = self._catalogue.types(ROOT)
        shard = await self._get(shards, "core.kcp.io", "shards", ROOT, SHARD) or {"metadata": {}}
        selector = (obj.get("spec") or {}).get("selector")
        try:
            # As in kcp, one that is absent selects nothing.
            chosen = Selector.from_label_selector(selector)
        except SelectorError as error:
            return False, str(error)
        return chosen.matches(shard["metadata"].get("labels")), ""

    async def _get(
        self, types: TypeSet, group: str, resource: str, cluster: str, name: str
    ) -> Object | None:
        found = types.find(group, "v1alpha1", resource)
        if found is None:
            return None
        key = ObjectKey(found.stored_group, found.storage_resource, cluster, "", name)
        entry = await self._store.get(key.path())
        return None if entry is None else decode(entry.value, entry.revision)


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
    """Return the status of a slice; without endpoints to tell, that is False too."""
    before = old.get("conditions") or ()
    conditions = []
    for kind in ("APIExportValid", "EndpointURLsReady", "PartitionValid"):
        said: Object = {"status": "True", "type": kind}
        if fault is not None and kind == fault[0]:
            said |= _false(fault[1], fault[2])
        elif fault is not None and kind == "EndpointURLsReady":
            said |= _false("ErrorGeneratingURLs", "")
        conditions.append(dated(said, condition_of(before, kind), now))
    return {"conditions": conditions, "endpoints": endpoints}


def _false(reason: str, message: str) -> Object:
    base: Object = {"status": "False", "severity": "Error", "reason": reason}
    return {**base, "message": message} if message else base
