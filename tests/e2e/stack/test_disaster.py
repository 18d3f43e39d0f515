"""The page about the loss of a hub, as it is printed, with an edge connected before and after."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.e2e.processes import refuse_old_kubectl
from tests.kit.e2e.walkthrough import Terminal
from tests.kit.ports import free_ports

pytestmark = pytest.mark.long

_PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "disaster-recovery.md"
_BLOCK = re.compile(r"^```shell\n(.*?)^```", re.MULTILINE | re.DOTALL)
_PREPARED = """
skerry up --init --detach --data-dir hub --port 6443
export KUBECONFIG=$PWD/hub/admin.kubeconfig
kubectl ws root
kubectl ws create imw --enter
skerry edge join florin env=prod
kubectl ws root
kubectl kubestellar ensure wmw shop
kubectl apply -f - <<EOF
apiVersion: v1
kind: Namespace
metadata: {name: web, labels: {goes: out}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: page, namespace: web}
data: {text: before}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: httpd, image: httpd}]}
---
apiVersion: edge.kcp.io/v1alpha1
kind: EdgePlacement
metadata: {name: everywhere}
spec:
  locationSelectors: [{matchLabels: {env: prod}}]
  namespaceSelector: {matchLabels: {goes: out}}
EOF
"""
_PATIENCE_SECONDS = 120.0


class Scene:
    """A hub, an edge that has joined it, and somebody who reads the page."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.terminal = Terminal(folder)
        self.port = str(free_ports(1)[0])
        self.hub = folder / "hub"

    def run(self, block: str) -> str:
        return self.terminal(block.replace("6443", self.port))

    def asked(self, words: str) -> Any:
        """Return what kubectl finds at the hub, in the workspace of the workload."""
        return json.loads(
            self.run(f"kubectl --server {self.url}/clusters/root:shop {words} -o json")
        )

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def target(self) -> Any:
        server = f"{self.url}/clusters/root:imw"
        found = self.run(f"kubectl --server {server} get synctarget florin -o json")
        return json.loads(found)["status"]

    def at_the_edge(self, words: str) -> Any:
        config = self.terminal.home / ".skerry" / "edges" / "florin" / "admin.kubeconfig"
        return json.loads(self.run(f"kubectl --kubeconfig {config} {words} -o json"))

    def identities(self) -> dict[str, tuple[str, str]]:
        """Return UID and start of whatever of the workload is at the edge, by kind and name."""
        found = self.at_the_edge("get --namespace web pods,replicasets,deployments,configmaps")
        return {
            f"{each['kind']}/{each['metadata']['name']}": (
                each["metadata"]["uid"],
                each.get("status", {}).get("startTime", ""),
            )
            for each in found["items"]
        }

    def processes(self) -> list[int]:
        """Return the processes of the hub and its controllers, supervisors first."""
        records = [json.loads((self.hub / f"{name}.json").read_text())
                   for name in ("controllers", "hub")]  # fmt: skip
        return [record[role][0] for role in ("supervisor", "server") for record in records]

    def syncer(self) -> int:
        record = self.terminal.home / ".skerry/edges/florin/syncer/process.json"
        return int(json.loads(record.read_text())["server"][0])

    def until(self, holds: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + _PATIENCE_SECONDS
        while not holds():
            assert time.monotonic() < end, what
            time.sleep(0.2)

    def destroy(self) -> None:
        """Lose the hub as a fire would."""
        for pid in self.processes():
            os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.hub)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    refuse_old_kubectl()
    found = Scene(tmp_path)
    found.terminal.export(KUBECONFIG=str(found.hub / "admin.kubeconfig"))
    try:
        found.run(_PREPARED)
        yield found
    finally:
        found.run("skerry down --data-dir hub || true; skerry edge delete florin || true")


def _healthy(scene: Scene) -> bool:
    items = scene.asked("get statussummaries --namespace web")["items"]
    names = {each["metadata"]["name"]: each for each in items}
    return bool(names.get("everywhere-deployments-web", {}).get("healthy") == 1)


def test_a_restored_hub_is_the_one_its_edges_knew(scene: Scene) -> None:
    passphrase, backup, restored, look, accepted = _BLOCK.findall(_PAGE.read_text())
    scene.until(lambda: _healthy(scene), "the workload is healthy")
    before = scene.identities()
    assert {name.partition("/")[0] for name in before} >= {"Pod", "Deployment", "ConfigMap"}
    scene.run(passphrase)
    scene.run(backup)
    scene.run("skerry backup --data-dir hub --without-keys objects.backup")
    heard = scene.target["lastSyncerHeartbeatTime"]

    # Placed after the backup: the restored hub will know nothing of it.
    scene.run("kubectl ws root:shop; kubectl --namespace web create configmap late")
    scene.until(lambda: "ConfigMap/late" in scene.identities(), "the late one arrives")

    scene.destroy()
    refused = scene.run("! skerry restore --data-dir hub objects.backup 2>&1")
    assert "the backup is without keys" in refused
    assert "edges and users must join again" in refused
    assert not (scene.hub / "store.db").exists()

    # Nobody at the edge speaks while the hub comes back: it must not say that somebody does.
    os.kill(scene.syncer(), signal.SIGSTOP)
    try:
        scene.run(restored)
        last = scene.target.get("lastSyncerHeartbeatTime", "")
        assert last <= heard, "what a backup says of an edge was heard before it"
    finally:
        os.kill(scene.syncer(), signal.SIGCONT)

    fleet = scene.run(look)
    assert "florin" in fleet
    scene.until(lambda: scene.target["lastSyncerHeartbeatTime"] > heard, "a sign of life")
    scene.until(lambda: _healthy(scene), "the state comes back")

    # The owner's next change arrives, and what was there is still the same.
    change = '{"data": {"text": "after"}}'
    scene.run(f"kubectl ws root:shop; kubectl --namespace web patch configmap page -p '{change}'")
    scene.until(
        lambda: scene.at_the_edge("get --namespace web configmap page")["data"]["text"] == "after",
        "a change arrives",
    )
    after = scene.identities()
    assert {name: after.get(name) for name in before} == before
    assert "ConfigMap/late" in after, "nothing goes on the word of a store nobody has accepted"

    scene.run("kubectl ws root:imw")
    scene.run(accepted)
    scene.until(lambda: "ConfigMap/late" not in scene.identities(), "what nobody wants goes")
    after = scene.identities()
    assert {name: after.get(name) for name in before} == before
