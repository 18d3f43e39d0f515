"""An agent of this version takes over what one before it started, and ends none of it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from skerry.api.objects import Object
from skerry.edge.agent.host_access import HostAccess
from skerry.edge.agent.sources import CLAIMS, VOLUMES
from tests.kit.agent.fixtures import record
from tests.kit.agent.harness import Edge, container, first, ready, why_no_namespaces


@pytest.fixture
async def edge(tmp_path: Path) -> AsyncIterator[Edge]:
    if refused := why_no_namespaces():
        pytest.skip(f"pods cannot have namespaces here: {refused}")
    world = Edge(tmp_path / "edge", namespaces=True)
    (tmp_path / "host").mkdir()
    world.access = HostAccess((str(tmp_path / "host"),))
    async with world.up():
        yield world


def refused(pod: Object) -> bool:
    waiting: Object = (first(pod).get("state") or {}).get("waiting") or {}
    return waiting.get("reason") == "CreateContainerConfigError"


async def test_a_pod_that_would_be_refused_now_goes_on_until_it_ends(edge: Edge) -> None:
    mount = {"name": "h", "mountPath": "/host"}
    async with edge.agents():
        await edge.run_pod(
            "old",
            container("busybox", "sleep", "100", volumeMounts=[mount]),
            volumes=[{"name": "h", "hostPath": {"path": str(edge.root.parent / "host")}}],
        )
        pod = await edge.pod("old", ready)
        before = record(edge, pod)
    # The next agent allows nothing, as after an upgrade.
    edge.access = HostAccess()
    async with edge.agents():
        pod = await edge.pod("old", ready)
        assert record(edge, pod) == before
        await edge.has_event("old", "RefusedByNode")
        os.kill(before["pid"], signal.SIGKILL)
        pod = await edge.pod("old", refused)
        assert "spec.volumes[0].hostPath.path" in first(pod)["state"]["waiting"]["message"]


async def test_a_container_of_an_earlier_agent_is_entered_by_its_process(edge: Edge) -> None:
    async with edge.agents():
        await edge.run_pod("old", container("busybox", "sleep", "100"))
        pod = await edge.pod("old", ready)
        # What a record said before namespaces were passed on.
        place = edge.root / "node-0" / pod["metadata"]["uid"] / "containers" / "c" / "0"
        known = json.loads((place / "record.json").read_text())
        del known["namespaces"]
        (place / "record.json").write_text(json.dumps(known))
    async with edge.agents():
        pod = await edge.pod("old", ready)
        life = edge.by_name["node-0"].life(pod["metadata"]["uid"], "c")
        while life is None or life.running is None or life.run_spec is None:
            await asyncio.sleep(0.01)  # nothing tells when it was taken over
            life = edge.by_name["node-0"].life(pod["metadata"]["uid"], "c")
        code, text = await life.reach().run(["echo", "entered"], 10)
        if os.geteuid() == 0:
            assert (code, text) == (0, "entered\n")
        else:
            assert "cannot enter" in text, "its first process may be looked at by nobody"


def claim(name: str) -> Object:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"metadata": {"name": name}, "spec": {**spec, "storageClassName": ""}}


def volume(name: str, bound: Object, path: str) -> Object:
    metadata = bound["metadata"]
    reference = {"name": metadata["name"], "namespace": "default", "uid": metadata["uid"]}
    return {
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "claimRef": reference,
            "hostPath": {"path": path},
        },
    }


async def bound_to(edge: Edge, name: str, volume_name: str, path: str) -> Object:
    """Make a claim and a volume that say they belong together."""
    made = await edge.direct.create(CLAIMS, claim(name), "default")
    wanted = volume_name.format(uid=made["metadata"]["uid"])
    where = path.format(uid=made["metadata"]["uid"], root=edge.root / "claims")
    await edge.direct.create(VOLUMES, volume(wanted, made, where))
    spec = {"spec": {"volumeName": wanted}}
    await edge.direct.patch(CLAIMS, name, spec, "default", kind="merge")
    status = {"status": {"phase": "Bound"}}
    await edge.direct.patch(CLAIMS, name, status, "default", kind="merge", subresource="status")
    return made


async def test_what_the_edge_provisioned_needs_no_leave_and_nothing_else_has_it(edge: Edge) -> None:
    edge.access = HostAccess()
    own = await bound_to(edge, "own", "pvc-{uid}", "{root}/pvc-{uid}_default_own")
    uid = own["metadata"]["uid"]
    forged = {
        "machine": ("pv-etc", "/etc"),
        "named": ("pvc-{uid}", "/etc"),
        "other": ("pv-other", f"{{root}}/pvc-{uid}_default_own"),
        "up": ("pv-up", "{root}/pvc-{uid}_default_up/../../pki"),
        "keys": ("pv-keys", str(edge.root)),
    }
    for name, (volume_name, path) in forged.items():
        await bound_to(edge, name, volume_name, path)
    async with edge.agents():
        for name in ("own", *forged):
            await edge.run_pod(
                name,
                container(
                    *("busybox", "sh", "-c", "touch /data/x; sleep 100"),
                    volumeMounts=[{"name": "v", "mountPath": "/data"}],
                ),
                volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": name}}],
            )
        await edge.pod("own", ready)
        for name in forged:
            await edge.has_event(name, "FailedMount")
            assert not any(
                "running" in (status.get("state") or {})
                for status in (await edge.pod(name, lambda p: bool(p.get("status"))))["status"][
                    "containerStatuses"
                ]
            )
    assert [path.name for path in (edge.root / "claims").iterdir()] == [f"pvc-{uid}_default_own"]
