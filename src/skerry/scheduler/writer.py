"""What the scheduler writes, over the wire."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skerry.api.kinds import GroupVersion, GroupVersionResource
from skerry.api.objects import Object
from skerry.runtime.client import Client, DeleteOptions
from skerry.scheduler.cache.objects import KINDS
from skerry.scheduler.cache.pod import PodInfo

PODS = GroupVersionResource("", "v1", "pods")


def resource_of(attribute: str) -> GroupVersionResource:
    """Return the resource type a store of ``ClusterObjects`` holds."""
    api_version, plural = KINDS[attribute]
    group, version = GroupVersion.parse(api_version)
    return GroupVersionResource(group, version, plural)


class ApiWriter:
    """Writes through a client; see ``handle.Writer`` for what each promises.

    Of most only the success is of interest, and the informers bring the rest: they are quiet, so
    that they may travel together (``runtime.batching``).
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    async def bind(self, pod: PodInfo, node: str) -> None:
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        await self._client.create(
            PODS, binding, pod.namespace, name=pod.name, subresource="binding", quiet=True
        )

    async def delete_pod(self, pod: PodInfo) -> None:
        options = DeleteOptions(uid=pod.uid)
        await self._client.delete(PODS, pod.name, pod.namespace, options, quiet=True)

    async def patch_pod_status(self, pod: PodInfo, status: Mapping[str, Any]) -> None:
        patch = {"metadata": {"uid": pod.uid}, "status": status}
        await self._client.patch(
            PODS,
            pod.name,
            patch,
            pod.namespace,
            kind="strategic",
            subresource="status",
            quiet=True,
        )

    async def update(self, kind: str, obj: Object) -> Object:
        return await self._client.update(resource_of(kind), obj)
