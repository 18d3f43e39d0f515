"""SyncTargets and Locations as they are written.

The first SyncTarget of a workspace brings the Location ``default`` with it, in the same
transaction; once somebody deletes it, it stays deleted.
"""

from __future__ import annotations

from collections.abc import Callable

from skerry.api.kcp.compute import SCHEDULING
from skerry.api.kcp.resources import SYNC_TARGETS
from skerry.api.keys import ObjectKey
from skerry.api.objects import Object
from skerry.api.refs import PATH_ANNOTATION
from skerry.kit.clock import Clock
from skerry.kit.ids import IdSource
from skerry.kit.timestamps import rfc3339
from skerry.logic.machinery.workspaces.names import label_hash
from skerry.server.admission.operation import Operation
from skerry.server.seeding import Seeder
from skerry.server.workspaces.catalogue import HubCatalogue
from skerry.server.workspaces.state import HubState
from skerry.store.base import Store, Write

KEY_LABEL = "internal.workload.kcp.io/key"
LABELS_ANNOTATION = "scheduling.kcp.io/labels"
DEFAULT = "default"


class ComputeRules:
    """Completes SyncTargets and Locations."""

    def __init__(
        self,
        state: HubState,
        catalogue: HubCatalogue,
        seeder: Seeder,
        store: Store,
        clock: Clock,
        ids: IdSource,
        base_url: Callable[[], str],
    ) -> None:
        self._state = state
        self._catalogue = catalogue
        self._seeder = seeder
        self._store = store
        self._clock = clock
        self._ids = ids
        self._base_url = base_url

    async def admit(self, operation: Operation) -> None:
        if operation.verb == "DELETE" or operation.subresource:
            return
        if operation.type == SYNC_TARGETS.group_resource:
            await self._sync_target(operation)
        elif operation.type == (SCHEDULING, "locations"):
            self._location(operation)

    async def _sync_target(self, operation: Operation) -> None:
        obj, cluster = operation.obj, operation.call.info.cluster
        metadata = obj["metadata"]
        name = metadata["name"]
        metadata.setdefault("labels", {})[KEY_LABEL] = label_hash(f"{cluster}:{name}")
        if operation.verb != "CREATE":
            return
        now = rfc3339(self._clock.now())
        uid = metadata["uid"]
        failing = {
            "lastTransitionTime": now,
            "message": "No heartbeat yet seen",
            "reason": "ErrorHeartbeat",
            "severity": "Warning",
            "status": "False",
        }
        base = self._base_url()
        obj["status"] = {
            "conditions": [{**failing, "type": kind} for kind in ("Ready", "HeartbeatHealthy")],
            "virtualWorkspaces": [
                {
                    "syncerURL": f"{base}/services/syncer/{cluster}/{name}/{uid}",
                    "upsyncerURL": f"{base}/services/upsyncer/{cluster}/{name}/{uid}",
                }
            ],
        }
        await self._default_location(operation, cluster)

    async def _default_location(self, operation: Operation, cluster: str) -> None:
        """Add the Location every workspace with SyncTargets begins with, once."""
        mark = ObjectKey("marks", "default-location", cluster, "", DEFAULT).path()
        if await self._store.get(mark) is not None:
            return
        location: Object = {
            "apiVersion": f"{SCHEDULING}/v1alpha1",
            "kind": "Location",
            "metadata": {
                "name": DEFAULT,
                "annotations": {PATH_ANNOTATION: self._state.path_of(cluster)},
            },
            "spec": {
                "resource": SYNC_TARGETS._asdict(),
                "instanceSelector": {},
            },
            "status": {"instances": 1, "availableInstances": 0},
        }
        write = self._seeder.born(self._catalogue.types(cluster), cluster, location)
        if await self._store.get(write.key) is None:
            operation.writes.append(write)
        operation.writes.append(Write(mark, b"1", expected=0))

    def _location(self, operation: Operation) -> None:
        metadata = operation.obj["metadata"]
        annotations = metadata.setdefault("annotations", {})
        annotations[PATH_ANNOTATION] = self._state.path_of(operation.call.info.cluster)
        labels = metadata.get("labels") or {}
        shown = " ".join(f"{key}={labels[key]}" for key in sorted(labels))
        if shown:
            annotations[LABELS_ANNOTATION] = shown
        else:
            annotations.pop(LABELS_ANNOTATION, None)
