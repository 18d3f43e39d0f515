"""Workloads that go wrong at a real embedded edge: their owner reads why, at the hub."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.e2e.until import PATIENCE_SECONDS, until
from tests.kit.e2e.walkthrough import Terminal

_EDGE = """
skerry edge create north
skerry edge kubeconfig north > north.kubeconfig
"""
_HUB = """
skerry up --init --detach --data-dir hub --port 0
"""
_INVENTORY = """
kubectl ws root
kubectl ws create inventory --enter
kubectl kubestellar ensure location north env=prod
skerry edge bootstrap north --imw root:inventory -o north-hub.kubeconfig
"""
_SYNCER = (
    "skerry syncer --from-kubeconfig north-hub.kubeconfig --to-kubeconfig north.kubeconfig "
    "--sync-target-name north --data-dir syncer"
)
_BINDINGS = """
kubectl ws root
kubectl ws create shop --enter
kubectl apply -f - <<EOF
apiVersion: apis.kcp.io/v1alpha1
kind: APIBinding
metadata: {name: bind-kube}
spec: {reference: {export: {path: "root:compute", name: kubernetes}}}
---
apiVersion: apis.kcp.io/v1alpha1
kind: APIBinding
metadata: {name: bind-espw}
spec: {reference: {export: {path: "root:espw", name: edge.kcp.io}}}
EOF
"""


def deployment(name: str, **container: Any) -> dict[str, Any]:
    labels = {"app": name}
    pod = {"containers": [{"name": "main", "image": "busybox", **container}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "web"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def config_map(name: str, **data: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "web"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


CRASH = ["sh", "-c", "echo starting; echo cannot open the till; exit 7"]
PROBE = {"exec": {"command": ["sh", "-c", "echo no till; false"]}, "periodSeconds": 1}
TROUBLED = [
    deployment("image", image="nowhere.example/none:1"),
    deployment("crash", command=CRASH),
    deployment("large", resources={"requests": {"cpu": "900"}}),
    deployment("lacking", envFrom=[{"configMapRef": {"name": "settings"}}]),
    deployment("probed", command=["sleep", "999"], readinessProbe=PROBE),
    deployment("unmounted", volumeMounts=[{"name": "data", "mountPath": "/data"}]),
]
VOLUME = {"name": "data", "configMap": {"name": "data"}}
TROUBLED[-1]["spec"]["template"]["spec"]["volumes"] = [VOLUME]
PLACED: list[dict[str, Any]] = [
    {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "web", "labels": {"goes": "out"}},
    },
    *TROUBLED,
    config_map("page", text="ours"),
    {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": "door", "namespace": "web"},
        "spec": {"defaultBackend": {"service": {"name": "image", "port": {"number": 80}}}},
    },
    {
        "apiVersion": "edge.kcp.io/v1alpha1",
        "kind": "EdgePlacement",
        "metadata": {"name": "all"},
        "spec": {
            "locationSelectors": [{"matchLabels": {"env": "prod"}}],
            "namespaceSelector": {"matchLabels": {"goes": "out"}},
        },
    },
]


def applied(*objects: dict[str, Any]) -> str:
    manifest = json.dumps({"kind": "List", "apiVersion": "v1", "items": objects})
    return f"kubectl apply -f - <<'EOF'\n{manifest}\nEOF"


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """A hub with controllers, and an embedded edge with a syncer, in one folder."""
    here = Terminal(tmp_path)
    try:
        here.export(KUBECONFIG=str(tmp_path / "edges.kubeconfig"))
        here.afterwards(f"KUBECONFIG={tmp_path / 'edges.kubeconfig'} skerry edge delete north")
        here(_EDGE)
        here.afterwards("skerry down --data-dir hub")
        here(_HUB)
        here.export(KUBECONFIG=str(tmp_path / "hub" / "admin.kubeconfig"))
        here(_INVENTORY)
        yield here
    finally:
        here.close()


def message(shell: Terminal, name: str, reason: str, words: str) -> str:
    """Return the message of a summary's only destination, once it has the reason and *words*."""

    def says(summary: Any) -> bool:
        # There is none before the placement has its destinations.
        only: dict[str, Any] = next(iter(summary["details"]), {})
        return only.get("reason") == reason and words in only.get("message", "")

    found = until(shell, f"kubectl -n web get statussummary all-deployments-{name} -o json", says)
    assert found["details"][0]["healthy"] == "False"
    return str(found["details"][0]["message"])


def test_the_owner_reads_at_the_hub_what_goes_wrong_at_the_edge(terminal: Terminal) -> None:
    # Somebody at the edge has a ConfigMap of the same name.
    edge = "kubectl --kubeconfig north.kubeconfig"
    theirs = json.dumps(config_map("page", text="theirs"))
    terminal(f"{edge} create namespace web; {edge} create -f - <<'EOF'\n{theirs}\nEOF")
    terminal.background(_SYNCER)
    terminal(_BINDINGS)
    terminal(applied(*PLACED))

    message(terminal, "image", "ImagePullBackOff", "nowhere.example/none:1")
    crash = message(terminal, "crash", "CrashLoopBackOff", ": ")
    assert crash == "exit code 7: cannot open the till"
    large = message(terminal, "large", "Unschedulable", "Insufficient cpu")
    message(terminal, "lacking", "CreateContainerConfigError", 'configmap "settings" not found')

    message(terminal, "probed", "Unhealthy", "Readiness probe failed: no till")
    message(terminal, "unmounted", "FailedMount", 'configmap "data" not found')
    inert = "kubectl -n web get statussummary all-ingresses-door -o json"
    until(terminal, inert, lambda found: found["details"][0].get("reason") == "NotEnforced")

    def condemned(placement: Any) -> bool:
        """Tell whether the refused ConfigMap and the unhealthy rest are in the conditions."""
        found = {each["type"]: each for each in placement["status"].get("conditions") or ()}
        types = ("Delivered", "Healthy", "Ready")
        return all(found.get(kind, {}).get("status") == "False" for kind in types)

    until(terminal, "kubectl get edgeplacement all -o json", condemned)

    wanted = (
        "no ingress controller runs",
        "ImagePullBackOff",
        "exit code 7: cannot open the till",
        large,
        "NotOurs",
    )
    deadline = time.monotonic() + PATIENCE_SECONDS
    while missing := [w for w in wanted if w not in terminal("skerry explain placement all")]:
        assert time.monotonic() < deadline, missing

    # What was missing comes, and the cause goes.
    terminal(applied(config_map("settings", a="1"), deployment("lacking", command=["sleep", "99"])))
    healed = "kubectl -n web get statussummary all-deployments-lacking -o json"
    summary = until(terminal, healed, lambda found: found["healthy"] == 1)
    assert "reason" not in summary["details"][0]
