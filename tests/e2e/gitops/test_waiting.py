"""Tools that wait are right about what runs at two real edges: kubectl and Helm themselves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.e2e.processes import refuse_old_kubectl
from tests.kit.e2e.summaries import binding, manifests

_BIN = Path(sys.executable).parent
EDGES = ("berlin", "denver")


class Machine:
    """A user's machine: a home, a hub, two edges, the commands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.hub = folder / "hub"
        self.environment = {
            **os.environ,
            "HOME": str(folder),
            "KUBECONFIG": str(self.hub / "admin.kubeconfig"),
            "PATH": f"{_BIN}:{os.environ['PATH']}",
        }

    def __call__(self, script: str, *, code: int = 0) -> str:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == code, f"{script}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def at(self, edge: str, words: str) -> Any:
        """Return what an edge itself says, as JSON."""
        return json.loads(self(f"kubectl --kubeconfig {edge}.kubeconfig {words} -o json"))


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """Two edges that have joined a hub, and a workspace whose namespace ``web`` goes to both."""
    refuse_old_kubectl()
    machine = Machine(tmp_path_factory.mktemp("home"))
    machine("skerry up --init --detach --data-dir hub --port 0")
    try:
        machine("kubectl ws root; kubectl ws create imw --enter")
        for edge in EDGES:
            machine(f"skerry edge join {edge} env=prod image=busybox")
            machine(f"skerry edge kubeconfig {edge} > {edge}.kubeconfig")
        machine("kubectl ws root; kubectl ws create shop --enter")
        machine(
            manifests(
                binding("bind-kube", "root:compute", "kubernetes"),
                binding("bind-espw", "root:espw", "edge.kcp.io"),
            )
        )
        space = {"name": "web", "labels": {"goes": "out"}}
        spec = {
            "locationSelectors": [{"matchLabels": {"env": "prod"}}],
            "namespaceSelector": {"matchLabels": {"goes": "out"}},
            "reportedState": "Aggregate",
        }
        machine(
            manifests(
                {"apiVersion": "v1", "kind": "Namespace", "metadata": space},
                {
                    "apiVersion": "edge.kcp.io/v1alpha1",
                    "kind": "EdgePlacement",
                    "metadata": {"name": "all"},
                    "spec": spec,
                },
            )
        )
        yield machine
    finally:
        for edge in EDGES:
            machine(f"skerry edge delete {edge} || true")
        machine("skerry down --data-dir hub")


def deployment(name: str, image: str = "busybox", **notes: str) -> dict[str, Any]:
    labels = {"app": name}
    container = {"name": "main", "image": image, "command": ["sleep", "9999"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "web", "annotations": notes},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def available(machine: Machine, name: str) -> list[int]:
    """Return how many replicas each edge has running."""
    found = [machine.at(edge, f"-n web get deployment {name}") for edge in EDGES]
    return [each["status"].get("availableReplicas", 0) for each in found]


def test_rollout_status_returns_when_both_edges_run_it_and_not_before(machine: Machine) -> None:
    expand = {"edge.kcp.io/expand-parameters": "true"}
    machine(manifests(deployment("web", "%(image)", **expand)))
    machine("kubectl -n web rollout status deployment/web --timeout=240s")
    assert available(machine, "web") == [2, 2]
    ready = machine("kubectl -n web get deployment web --no-headers").split()
    assert ready[:4] == ["web", "2/2", "2", "2"]

    # From now on one edge cannot run it.
    machine("kubectl ws root:imw; kubectl label location denver image=nowhere --overwrite")
    machine("kubectl ws root:shop")
    change = '{"spec":{"template":{"metadata":{"annotations":{"edition":"2"}}}}}'
    machine(f"kubectl -n web patch deployment web -p '{change}'")
    machine("kubectl -n web rollout status deployment/web --timeout=15s", code=1)
    obj = json.loads(machine("kubectl -n web get deployment web -o json"))
    conditions = {each["type"]: each for each in obj["status"]["conditions"]}
    assert conditions["Progressing"]["reason"] != "NewReplicaSetAvailable"

    machine("kubectl ws root:imw; kubectl label location denver image=busybox --overwrite")
    machine("kubectl ws root:shop")
    machine("kubectl -n web rollout status deployment/web --timeout=240s")
    assert available(machine, "web") == [2, 2]


def stateful_set(name: str) -> dict[str, Any]:
    made = deployment(name)
    made["kind"] = "StatefulSet"
    made["spec"]["serviceName"] = name
    made["spec"]["template"]["metadata"]["annotations"] = {"edition": "{{ .Values.edition }}"}
    return made


def hook() -> dict[str, Any]:
    """A Job that Helm runs after the rest; one of its own for each revision."""
    container = {"name": "main", "image": "busybox", "command": ["true"]}
    pod = {"containers": [container], "restartPolicy": "Never"}
    notes = {"helm.sh/hook": "post-install,post-upgrade"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "greet-{{ .Release.Revision }}", "annotations": notes},
        "spec": {"template": {"spec": pod}},
    }


def test_helm_waits_for_the_edges_and_keeps_its_records_at_the_hub(machine: Machine) -> None:
    for export in ("apps", "batch"):
        machine(manifests(binding(f"bind-{export}", "root:compute", export)))
    templates = machine.folder / "chart" / "templates"
    templates.mkdir(parents=True)
    (templates.parent / "Chart.yaml").write_text("apiVersion: v2\nname: shop\nversion: 0.1.0\n")
    front = deployment("front", "{{ .Values.image }}")
    for name, made in (("till", stateful_set("till")), ("front", front), ("greet", hook())):
        (templates / f"{name}.yaml").write_text(json.dumps(made))
    (templates.parent / "values.yaml").write_text("image: busybox\n")
    upgrade = "helm upgrade --install shop chart -n web --wait --timeout 240s"
    for revision, edition in (("1", "one"), ("2", "two")):
        machine(f"{upgrade} --set edition={edition}")
        for edge in EDGES:
            found = machine.at(edge, "-n web get statefulset till")
            assert found["status"]["readyReplicas"] == 2
            noted = found["spec"]["template"]["metadata"]["annotations"]
            assert noted["edition"] == edition
            assert "meta.helm.sh/release-name" not in found["metadata"].get("annotations", {})
            assert found["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "Helm"
            job = machine.at(edge, f"-n web get job greet-{revision}")
            assert job["status"]["succeeded"] == 1
            secrets = machine.at(edge, "-n web get secrets")["items"]
            assert "helm.sh/release.v1" not in {each["type"] for each in secrets}
            # What Helm counts at the hub is there alone.
            found = machine.at(edge, "-n web get replicasets -l app=front")["items"]
            assert "front-reported" not in {each["metadata"]["name"] for each in found}
        assert available(machine, "front") == [2, 2]
    history = json.loads(machine("helm history shop -n web -o json"))
    assert [each["status"] for each in history] == ["superseded", "deployed"]
    machine(f"{upgrade} --set edition=two --set image=nowhere --timeout 5s", code=1)
    machine("helm uninstall shop -n web --wait --timeout 120s")
    machine("kubectl -n web wait --for=delete replicaset/front-reported --timeout=60s")
