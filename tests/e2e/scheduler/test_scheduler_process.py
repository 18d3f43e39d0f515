"""skerry scheduler as a process, beside a server and kubectl."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.e2e.manifests import pod
from tests.kit.e2e.processes import Kubectl, ServerProcess, refuse_old_kubectl
from tests.kit.ports import free_ports

SKERRY = Path(sys.executable).with_name("skerry")
CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {{leaderElect: false}}
clientConnection: {{kubeconfig: {kubeconfig}}}
podInitialBackoffSeconds: {backoff}
podMaxBackoffSeconds: 10
"""


def node(name: str, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "status": {"capacity": {"cpu": "2", "memory": "4Gi", "pods": "10"}},
    }


def wanting(name: str, cpu: str) -> dict[str, Any]:
    found = pod(name)
    found["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    return found


class SchedulerProcess:
    """One ``skerry scheduler`` that is scheduling."""

    def __init__(self, log: Path, *flags: str) -> None:
        self._log = log
        with log.open("w") as stderr:
            self.process = subprocess.Popen(
                [str(SKERRY), "scheduler", *flags],
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert "skerry scheduler ready for default-scheduler at https://" in line, self.log

    @property
    def log(self) -> str:
        return self._log.read_text()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=60)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(SKERRY), "scheduler", *words], capture_output=True, text=True, check=False, timeout=60
    )


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    """A server of our own with two nodes: others' pods must not be scheduled."""
    refuse_old_kubectl()
    server = ServerProcess(tmp_path_factory.mktemp("server"))
    server.start()
    try:
        kubectl = Kubectl(server.kubeconfig, tmp_path_factory.mktemp("home"), "default")
        kubectl("create", "-f", "-", stdin=[node("florin", disk="ssd"), node("guilder")])
        kubectl.again("get", "serviceaccount", "default")
        yield kubectl
    finally:
        server.stop()


def test_pods_are_bound_or_reported_why_not(cluster: Kubectl, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    process = SchedulerProcess(
        tmp_path / "log",
        *("--kubeconfig", str(cluster.kubeconfig), "--leader-elect", "-v=2"),
        *("--secure-port", str(port), "--bind-address", "127.0.0.1"),
    )
    chosen = pod("chosen")
    chosen["spec"]["nodeSelector"] = {"disk": "ssd"}
    try:
        cluster("create", "-f", "-", stdin=[chosen, wanting("big", "9")])
        cluster("wait", "--for=condition=PodScheduled", "pod/chosen", "--timeout=60s")
        cluster.until("0/2 nodes are available: 2 Insufficient cpu. preemption:", "describe", "pod")
        assigned = "Successfully assigned default/chosen to florin"
        cluster.until(assigned, "describe", "pod", "chosen")
        assert cluster("get", "pod", "big", "-o", "jsonpath={.spec.nodeName}").out == ""
        lease = cluster("-n", "kube-system", "get", "lease", "kube-scheduler", "-o", "yaml").out
        assert f"holderIdentity: {socket.gethostname()}_" in lease
        health = subprocess.run(
            ["curl", "-sk", f"https://127.0.0.1:{port}/readyz?verbose"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert "[+]sched-handler-sync ok" in health.stdout
        refused = subprocess.run(
            ["curl", "-sk", f"https://127.0.0.1:{port}/metrics"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert refused.stdout == "Forbidden\n", "anybody may ask for health only"
    finally:
        code = process.stop()
    assert code == 0, process.log
    lease = cluster("-n", "kube-system", "get", "lease", "kube-scheduler", "-o", "yaml").out
    assert 'holderIdentity: ""' in lease, "given up, not left to expire"


def test_explain_reports_without_binding(cluster: Kubectl, tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: wanted}\n"
        "spec:\n  nodeSelector: {disk: ssd}\n  containers: [{name: m, image: example/app}]\n"
    )
    output = command("explain", "-f", str(file), "--kubeconfig", str(cluster.kubeconfig))
    assert output.returncode == 0, output.stderr
    lines = output.stdout.splitlines()
    assert lines[0] == "pod default/wanted: would go to florin"
    assert lines[1].startswith("  florin: ")
    assert "NodeResourcesFit" in lines[1]
    assert lines[2] == (
        "  guilder: refused by NodeAffinity: node(s) didn't match Pod's node affinity/selector"
    )
    assert "wanted" not in cluster("get", "pods").out
    cluster("create", "-f", "-", stdin=wanting("bigger", "9"))
    output = command("explain", "bigger", "-n", "default", "--kubeconfig", str(cluster.kubeconfig))
    assert "0/2 nodes are available: 2 Insufficient cpu." in output.stdout


def test_configuration_is_reloaded_or_the_old_one_kept(cluster: Kubectl, tmp_path: Path) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_text(CONFIG.format(kubeconfig=cluster.kubeconfig, backoff=1))
    log = tmp_path / "log"
    process = SchedulerProcess(log, "--config", str(config), "--secure-port", "0")
    try:
        config.write_text(CONFIG.format(kubeconfig=cluster.kubeconfig, backoff=100))
        process.process.send_signal(signal.SIGHUP)
        _until(log, "must be greater than or equal to PodInitialBackoffSeconds")
        _until(log, "configuration refused; the old one stays")
        config.write_text(CONFIG.format(kubeconfig=cluster.kubeconfig, backoff=2))
        process.process.send_signal(signal.SIGHUP)
        _until(log, "configuration reloaded")
        cluster("create", "-f", "-", stdin=pod("after"))
        cluster("wait", "--for=condition=PodScheduled", "pod/after", "--timeout=60s")
    finally:
        assert process.stop() == 0


def _until(log: Path, wanted: str) -> None:
    """Look at *log* until *wanted* is in it."""
    deadline = time.monotonic() + 60
    while wanted not in log.read_text():
        assert time.monotonic() < deadline, log.read_text()


def test_the_effective_configuration_is_written(tmp_path: Path) -> None:
    target = tmp_path / "effective.yaml"
    assert command("--write-config-to", str(target)).returncode == 0
    assert "schedulerName: default-scheduler" in target.read_text()


def test_a_bad_configuration_is_refused(tmp_path: Path) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_text(CONFIG.format(kubeconfig="/x", backoff=1) + "parallelism: 0\nfoo: 1\n")
    ended = command("--config", str(config))
    assert ended.returncode == 1
    assert r'err="strict decoding error: unknown field \"foo\""' in ended.stderr
    assert "Traceback" not in ended.stderr
