"""A node that runs nothing: it binds every pod, says it runs, and lets it go when asked.

What a pod's containers would do stands in its annotations: ``test/exit`` ends them with that code,
``test/never-ready`` keeps them from being ready.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from skerry.api.errors import ApiError
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.kit.timestamps import rfc3339
from skerry.runtime.client import Client, DeleteOptions
from skerry.runtime.informer import InformerFactory

PODS = GroupVersionResource("", "v1", "pods")


class SimulatedKubelet:
    """Scheduler and agent of every node at once."""

    def __init__(self, client: Client, factory: InformerFactory, nodes: list[str]) -> None:
        self._client = client
        self._pods = factory.informer(PODS)
        self._nodes = nodes
        self._addresses = 0
        self.started: list[str] = []
        self.delay = 0.5

    async def run(self) -> None:
        await self._pods.wait_synced()
        async with asyncio.TaskGroup() as tasks:
            seen: dict[str, asyncio.Task[None]] = {}

            def changed(old: Object | None, new: Object | None) -> None:
                if new is None:
                    return
                uid = new["metadata"]["uid"]
                if "deletionTimestamp" in new["metadata"]:
                    tasks.create_task(self._gone(new))
                elif uid not in seen:
                    seen[uid] = tasks.create_task(self._live(new))

            self._pods.add_handler(changed)
            await asyncio.Event().wait()

    async def _gone(self, pod: Object) -> None:
        metadata = pod["metadata"]
        await asyncio.sleep(self.delay)
        with suppress(ApiError):
            if (pod.get("status") or {}).get("phase") in ("Pending", "Running"):
                await self._status(pod, {"phase": "Failed"})
            options = DeleteOptions(uid=metadata["uid"], grace_seconds=0)
            await self._client.delete(PODS, metadata["name"], metadata["namespace"], options)

    async def _live(self, pod: Object) -> None:
        metadata = pod["metadata"]
        node = _wanted_node(pod) or self._nodes[self._addresses % len(self._nodes)]
        self._addresses += 1
        with suppress(ApiError):
            if not pod["spec"].get("nodeName"):
                target = {"kind": "Node", "name": node}
                binding = {"metadata": {"name": metadata["name"]}, "target": target}
                await self._client.create(
                    PODS,
                    binding,
                    metadata["namespace"],
                    name=metadata["name"],
                    subresource="binding",
                )
            await asyncio.sleep(self.delay)
            self.started.append(metadata["name"])
            await self._play(pod)

    async def _play(self, pod: Object) -> None:
        annotations = pod["metadata"].get("annotations") or {}
        now = rfc3339(self._client.clock.now())
        ready = "False" if "test/never-ready" in annotations else "True"
        condition = {"type": "Ready", "status": ready, "lastTransitionTime": now}
        address = f"10.1.{self._addresses // 250}.{self._addresses % 250 + 1}"
        running = {
            "phase": "Running",
            "conditions": [condition],
            "podIP": address,
            "podIPs": [{"ip": address}],
        }
        await self._status(pod, running)
        if "test/exit" not in annotations:
            return
        await asyncio.sleep(self.delay)
        code = int(annotations["test/exit"])
        finished = rfc3339(self._client.clock.now())
        ended = {"exitCode": code, "startedAt": now, "finishedAt": finished}
        container = {
            "name": pod["spec"]["containers"][0]["name"],
            "image": "x",
            "imageID": "",
            "ready": False,
            "restartCount": 0,
            "state": {"terminated": ended},
        }
        over = {**condition, "status": "False"}
        await self._status(
            pod,
            {
                "phase": "Failed" if code else "Succeeded",
                "conditions": [over],
                "containerStatuses": [container],
            },
        )

    async def _status(self, pod: Object, status: Object) -> None:
        metadata = pod["metadata"]
        patch = {"metadata": {"uid": metadata["uid"]}, "status": status}
        await self._client.patch(
            PODS,
            metadata["name"],
            patch,
            metadata["namespace"],
            kind="strategic",
            subresource="status",
        )


def _wanted_node(pod: Object) -> str:
    affinity = ((pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    ) or {}
    for term in affinity.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            return str(field["values"][0])
    return ""
