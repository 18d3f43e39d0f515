"""The agent of one node: a worker for each pod that is bound to it."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from skerry.api.objects import Object
from skerry.edge.agent.container import ContainerLife
from skerry.edge.agent.context import NodeContext
from skerry.edge.agent.leftovers import end_recorded_pod
from skerry.edge.agent.node import NodeHeartbeat
from skerry.edge.agent.pod import PodWorker, remembered_address
from skerry.edge.agent.pod_api import PODS
from skerry.edge.agent.sources import refers_to
from skerry.kit.log import Logger
from skerry.logic.workloads.pods import is_finished
from skerry.runtime.client import Selection
from skerry.runtime.events import EventRecorder
from skerry.runtime.informer import Handler, InformerFactory

_log = Logger("agent")
# Soon enough for a person who made room on the disk, seldom enough to be no load.
_RETRY_SECONDS = 5.0


class NodeAgent:
    """Runs the pods of one node until cancelled; processes outlive it."""

    def __init__(
        self,
        node: NodeContext,
        factory: InformerFactory,
        *,
        control_plane: bool = True,
        tainted: bool = False,
    ) -> None:
        self._node = node
        selection = Selection(fields=f"spec.nodeName={node.name}")
        self._pods = factory.informer(PODS, selection)
        self._workers: dict[str, PodWorker] = {}
        self._tasks: asyncio.TaskGroup | None = None
        self.heartbeat = NodeHeartbeat(node, control_plane=control_plane, tainted=tainted)

    @property
    def name(self) -> str:
        return self._node.name

    @property
    def recorder(self) -> EventRecorder:
        """What writes the agent's Events; to be run beside it."""
        return self._node.recorder

    def life(self, uid: str, container: str) -> ContainerLife | None:
        """Return the life of a container, for logs and exec; None when there is none here."""
        worker = self._workers.get(uid)
        return None if worker is None else worker.life(container)

    async def run(self) -> None:
        """Run the pods of a node that was registered, until cancelled."""
        for informer in (self._pods, *self._node.sources.informers):
            await informer.wait_synced()
        await self._end_orphans()
        self._reserve_addresses()
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                tasks.create_task(self.heartbeat.run())
                self._pods.add_handler(self._pod_changed)
                sources = self._node.sources
                sources.config_maps.add_handler(self._enqueue_on("configmap"))
                sources.secrets.add_handler(self._enqueue_on("secret"))
                sources.claims.add_handler(self._enqueue_all)
                await asyncio.Event().wait()
        finally:
            self._tasks = None

    async def _end_orphans(self) -> None:
        """End processes of pods that are not on this node any more, and remove what they left."""
        known = {pod["metadata"]["uid"] for pod in self._pods.index.objects()}
        if not self._node.root.exists():
            return
        for directory in self._node.root.iterdir():
            if directory.name not in known and directory.is_dir():
                _log.info("ending what a vanished pod left", v=1, uid=directory.name)
                end_recorded_pod(directory)
                await asyncio.get_running_loop().run_in_executor(None, _removed, directory)

    def _reserve_addresses(self) -> None:
        """Keep the addresses of pods that run already from new ones, whoever is seen first."""
        if not self._node.root.exists():
            return
        for directory in self._node.root.iterdir():
            if address := remembered_address(directory):
                self._node.network.reserve(directory.name, address)

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        if new is None:
            if old is not None and (worker := self._workers.get(old["metadata"]["uid"])):
                worker.end()
            return
        uid = new["metadata"]["uid"]
        worker = self._workers.get(uid)
        if worker is not None:
            worker.update(new)
        elif self._tasks is not None and not self._done_with(new):
            worker = self._workers[uid] = PodWorker(self._node, new)
            if "deletionTimestamp" in new["metadata"]:
                worker.update(new)
            self._tasks.create_task(self._work(worker))

    def _done_with(self, pod: Object) -> bool:
        """Tell whether nothing is left to do for a pod that only a finalizer still holds."""
        metadata = pod["metadata"]
        ended = "deletionTimestamp" in metadata and is_finished(pod)
        return ended and not (self._node.root / metadata["uid"]).exists()

    async def _work(self, worker: PodWorker) -> None:
        """Run a pod to its end; what the machine refuses is reported and tried again.

        A full disk, an unreadable path, an object that makes no sense: one pod's misfortune, never
        the node's.
        """
        uid = worker.uid
        try:
            while await self._failed(worker):
                await self._node.clock.sleep(_RETRY_SECONDS)
                worker = self._workers[uid] = worker.anew()
        finally:
            self._workers.pop(uid, None)

    async def _failed(self, worker: PodWorker) -> bool:
        """Run a pod; True when it has to be begun again."""
        try:
            await worker.run()
        except* (OSError, ValueError, LookupError, TypeError) as group:
            cause = _first(group)
            _log.error("pod interrupted", key=worker.pod["metadata"]["name"], error=cause)
            self.recorder.record(worker.pod, "Warning", "FailedSync", f"error syncing pod: {cause}")
            again = True
        else:
            again = False
        return again

    def _enqueue_on(self, kind: str) -> Handler:
        def handle(old: Object | None, new: Object | None) -> None:
            metadata = (new or old or {})["metadata"]
            for worker in self._workers.values():
                same_place = worker.pod["metadata"]["namespace"] == metadata["namespace"]
                # The API server's CA comes as a ConfigMap every pod refers to.
                if same_place and refers_to(worker.pod, kind, metadata["name"]):
                    worker.sources_changed()

        return handle

    def _enqueue_all(self, old: Object | None, new: Object | None) -> None:
        for worker in self._workers.values():
            worker.sources_changed()


def _first(error: BaseException) -> BaseException:
    """Return the first failure of a group, however deep it lies."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _removed(directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
