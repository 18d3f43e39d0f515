"""Two tenants, an inventory and an edge: a hub with its controllers, a syncer, real processes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.kit.e2e.hubs import Hub, Shell
from tests.kit.e2e.processes import Kubectl, ServerProcess
from tests.kit.e2e.summaries import binding, edge, manifests

Raw = dict[str, Any]
SKERRY = str(Path(sys.executable).with_name("skerry"))
TENANTS = ("shop", "bank")
_PATIENCE_SECONDS = 60.0


def workload(namespace: str, text: str) -> list[Raw]:
    """A namespace with a page in it."""
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "page", "namespace": namespace},
            "data": {"text": text},
        },
    ]


def placement(namespace: str, **spec: Any) -> Raw:
    """Place a namespace everywhere."""
    name = {"kubernetes.io/metadata.name": namespace}
    everywhere = {"locationSelectors": [{}], "namespaceSelector": {"matchLabels": name}}
    return {
        "apiVersion": "edge.kcp.io/v1alpha1",
        "kind": "EdgePlacement",
        "metadata": {"name": "everywhere"},
        "spec": {**everywhere, **spec},
    }


class World:
    """A hub with controllers, one edge with its syncer, and a shell for everybody."""

    def __init__(self, hub: Hub, shell: Shell, edge_cluster: Kubectl, folder: Path) -> None:
        self.shell = shell
        self._hub = hub
        self._edge = edge_cluster
        self._folder = folder
        self._controllers: subprocess.Popen[bytes] | None = None

    def at(self, workspace: str, script: str, *, code: int = 0) -> str:
        """Run *script* in a workspace; return what it printed."""
        return self.shell(f"kubectl ws {workspace} >/dev/null\n{script}", code=code)

    def apply(self, workspace: str, *documents: Raw, code: int = 0) -> str:
        return self.at(workspace, manifests(*documents), code=code)

    def config_map(self, namespace: str, name: str = "page") -> Raw | None:
        """Return a ConfigMap as the edge has it; None when it has none."""
        found = self._edge("get", "configmap", "-A", "-o", "json")
        for each in json.loads(found.out)["items"]:
            if (each["metadata"]["namespace"], each["metadata"]["name"]) == (namespace, name):
                return dict(each)
        return None

    def page(self, namespace: str) -> str | None:
        """Return the text of a namespace's page as the edge has it; None when it has none."""
        found = self.config_map(namespace)
        return None if found is None else str(found["data"]["text"])

    def record(self) -> Raw:
        """Return the inventory's LocationConsent; nothing while it has none."""
        listed = json.loads(self.at("root:imw", "kubectl get locationconsents -o json"))
        found: list[Raw] = listed["items"]
        return found[0] if found else {}

    def condition(self, workspace: str, kind: str) -> Raw:
        """Return a condition of the placement of a workspace; nothing while it has none."""
        text = self.at(workspace, "kubectl get edgeplacement everywhere -o json")
        conditions = json.loads(text).get("status", {}).get("conditions", [])
        return next((dict(each) for each in conditions if each["type"] == kind), {})

    def start_controllers(self) -> None:
        """Run the hub's controllers of the chain."""
        log = (self._folder / "controllers.log").open("ab")
        names = ("mailbox", "edge-scheduler", "placement-translator", "summarizer")
        only = (word for name in names for word in ("--only", name))
        where = ("--espw-path", "root:espw", "--kubeconfig", str(self._hub.kubeconfig))
        command = [SKERRY, "controllers", *where, *only, "--server-bind-address", "127.0.0.1:0"]
        self._controllers = subprocess.Popen(command, stdout=log, stderr=log)
        log.close()

    def stop_controllers(self) -> None:
        if self._controllers is not None:
            self._controllers.terminate()
            self._controllers.wait(timeout=60)
            self._controllers = None


def eventually(found: Callable[[], Any], wanted: Any) -> None:
    """Ask until the answer is *wanted*; real processes tell us in no other way."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while (last := found()) != wanted:
        assert time.monotonic() < deadline, f"in the end: {last!r}"
        time.sleep(0.1)


@contextmanager
def two_tenants(hub: Hub, shell: Shell, folder: Path) -> Iterator[World]:
    """Run an edge with its syncer and the controllers; tenants have nothing but the edge API."""
    with ExitStack() as stack:
        cluster = ServerProcess(folder / "edge")
        cluster.start()
        stack.callback(cluster.stop)
        world = World(hub, shell, Kubectl(cluster.kubeconfig, folder), folder)
        world.start_controllers()
        stack.callback(world.stop_controllers)
        edge_api = binding("bind-espw", "root:espw", "edge.kcp.io")
        names = "\n".join(f"kubectl ws create {name}" for name in ("imw", *TENANTS))
        world.at("root", names)
        world.apply("root:imw", edge_api, *edge("florin"))
        for tenant in TENANTS:
            world.apply(f"root:{tenant}", edge_api)
        joining = folder / "florin.kubeconfig"
        world.at("root:imw", f"skerry edge bootstrap florin --imw root:imw -o {joining}")
        log = stack.enter_context((folder / "syncer.log").open("w"))
        syncer = subprocess.Popen(
            [
                *(SKERRY, "syncer", "--from-kubeconfig", str(joining)),
                *("--sync-target-name", "florin", "--data-dir", str(folder / "syncer")),
                *("--to-kubeconfig", str(cluster.kubeconfig)),
            ],
            stdout=log,
            stderr=log,
        )
        stack.callback(syncer.wait, timeout=60)
        stack.callback(syncer.terminate)
        yield world
