"""A program written with kr8s, run as a process of its own: kubeconfig, namespace, story."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import kr8s.asyncio
from kr8s.asyncio.objects import (
    ConfigMap,
    CustomResourceDefinition,
    Deployment,
    Pod,
    new_class,
)

from tests.kit.e2e.manifests import config_map, definition, deployment, pod


async def reads_writes_and_waits(api: Any) -> None:
    made = await ConfigMap(config_map("c", a="1"), api=api)
    await made.create()
    await made.patch({"data": {"b": "2"}})
    assert dict(made.data) == {"a": "1", "b": "2"}
    await made.label({"x": "1"})
    found = [item async for item in api.get("configmaps", label_selector="x=1")]
    assert [item.name for item in found] == ["c"]
    web = await Deployment(deployment("web"), api=api)
    await web.create()
    await web.patch({"spec": {"replicas": 3}})
    await web.refresh()
    assert web.replicas == 3
    solo = await Pod(pod("solo"), api=api)
    await solo.create()
    await solo.delete()
    await solo.wait("delete", timeout=60)
    assert not await solo.exists()


async def watches_custom_kinds(api: Any) -> None:
    group = "watched.example.org"
    defined = await CustomResourceDefinition(definition(group, "punts", "Punt"), api=api)
    await defined.create()
    punts = new_class(kind="Punt", version=f"{group}/v1", namespaced=True, plural="punts")
    made = await punts({"metadata": {"name": "p"}, "spec": {"size": 1}}, api=api)
    await made.create()
    async for kind, seen in api.watch(punts):
        if kind == "ADDED":
            await made.patch({"spec": {"size": 2}})
        elif seen.spec.size == 2:
            assert kind == "MODIFIED"
            return


async def main(kubeconfig: str, namespace: str, story: str) -> None:
    api = await kr8s.asyncio.api(kubeconfig=kubeconfig, namespace=namespace)
    stories = {
        "reads_writes_and_waits": reads_writes_and_waits,
        "watches_custom_kinds": watches_custom_kinds,
    }
    await stories[story](api)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
