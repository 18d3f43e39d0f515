"""Embedded edges as a user meets them: the command, kubectl, HTTP, the seed's own files."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from skerry.edge.agent.processes import Process, alive
from tests.kit.e2e.processes import refuse_old_kubectl
from tests.kit.ports import free_ports

FLORIN = """\
kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
nodes:
- role: control-plane
  extraPortMappings:
  - containerPort: 8081
    hostPort: {a}
"""
GUILDER = """\
kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
nodes:
- role: control-plane
  extraPortMappings:
  - containerPort: 8081
    hostPort: {a}
  - containerPort: 8082
    hostPort: {b}
"""
# The seed's workload, with its host port to be filled in.
WORKLOAD = """\
apiVersion: v1
kind: Namespace
metadata:
  name: {name}stuff
---
apiVersion: v1
kind: ConfigMap
metadata:
  namespace: {name}stuff
  name: httpd-htdocs
data:
  index.html: |
    <!DOCTYPE html>
    <html>
      <body>
        This is a {name} web site.
      </body>
    </html>
---
apiVersion: apps/v1
kind: Deployment
metadata:
  namespace: {name}stuff
  name: {name}d
spec:
  selector: {{matchLabels: {{app: {name}}} }}
  template:
    metadata:
      labels: {{app: {name}}}
    spec:
      containers:
      - name: httpd
        image: library/httpd:2.4
        ports:
        - name: http
          containerPort: 80
          hostPort: {port}
          protocol: TCP
        volumeMounts:
        - name: htdocs
          readOnly: true
          mountPath: /usr/local/apache2/htdocs
      volumes:
      - name: htdocs
        configMap:
          name: httpd-htdocs
          optional: false
"""


class Machine:
    """A user's home: commands, kubeconfig, edges."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.environment = {
            **os.environ,
            "HOME": str(home),
            "SKERRY_HOME": str(home / ".skerry"),
            "KUBECONFIG": str(home / "config"),
        }

    def skerry(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return self._run([sys.executable, "-m", "skerry.cli", *words], check=check)

    def kubectl(self, *words: str, stdin: str = "", check: bool = True) -> str:
        return self._run(["kubectl", *words], stdin=stdin, check=check).stdout

    def _run(
        self, words: list[str], stdin: str = "", *, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            words,
            input=stdin,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        if check:
            assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done

    def create(self, name: str, config: str) -> str:
        path = self.home / f"{name}-config.yaml"
        path.write_text(config)
        return self.skerry("edge", "create", name, "--config", str(path)).stdout

    def processes(self, name: str) -> dict[str, Process]:
        path = self.home / ".skerry" / "edges" / name / "processes.json"
        return {role: Process(*parts) for role, parts in json.loads(path.read_text()).items()}

    def get(self, *words: str) -> Any:
        return json.loads(self.kubectl("get", *words, "-o", "json"))


def page(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10) as answer:
        return str(answer.read().decode())


def eventually_page(port: int, seconds: float = 60.0) -> str:
    """Return the page once somebody serves it; nothing else tells when that is."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return page(port)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    refuse_old_kubectl()
    found = Machine(tmp_path)
    yield found
    edges = tmp_path / ".skerry" / "edges"
    for edge in edges.iterdir() if edges.is_dir() else ():
        found.skerry("edge", "delete", edge.name, check=False)


def test_the_seeds_two_clusters_serve_their_three_pages(machine: Machine) -> None:
    a, b, c = free_ports(3)
    other = "apiVersion: v1\nkind: Config\ncontexts:\n"
    other += "- name: mine\n  context: {cluster: there, user: me}\n"
    (machine.home / "config").write_text(other)
    assert "kind-florin" in machine.create("florin", FLORIN.format(a=a))
    machine.create("guilder", GUILDER.format(a=b, b=c))

    contexts = machine.kubectl("config", "get-contexts", "-o", "name").split()
    assert set(contexts) == {
        "mine",
        "kind-florin",
        "skerry-florin",
        "kind-guilder",
        "skerry-guilder",
    }
    common = WORKLOAD.format(name="common", port=8081)
    for edge in ("florin", "guilder"):
        machine.kubectl("--context", f"kind-{edge}", "apply", "-f", "-", stdin=common)
    special = WORKLOAD.format(name="special", port=8082)
    machine.kubectl("--context", "skerry-guilder", "apply", "-f", "-", stdin=special)
    for edge, name in (("florin", "common"), ("guilder", "common"), ("guilder", "special")):
        machine.kubectl(
            *("--context", f"kind-{edge}", "-n", f"{name}stuff"),
            *("rollout", "status", f"deployment/{name}d", "--timeout=60s"),
        )
    assert "This is a common web site." in eventually_page(a)
    assert "This is a common web site." in eventually_page(b)
    assert "This is a special web site." in eventually_page(c)

    listed = machine.skerry("edge", "list").stdout
    # A demo that somebody plays meanwhile is listed, too.
    own = [line for line in listed.splitlines() if str(machine.home) in line]
    assert [line.split()[:2] for line in own] == [
        ["florin", "Running"],
        ["guilder", "Running"],
    ]
    again = machine.create("florin", FLORIN.format(a=a))
    assert "ready" in again, "creating what exists changes nothing"
    machine.skerry("edge", "delete", "guilder")
    with pytest.raises(OSError, match="refused"):
        page(c)
    assert "kind-guilder" not in machine.kubectl("config", "get-contexts", "-o", "name")
    assert "This is a common web site." in page(a), "the other edge is left alone"


def test_an_edge_survives_kill_nine_and_a_stop(machine: Machine) -> None:
    (port,) = free_ports(1)
    machine.create("florin", FLORIN.format(a=port))
    workload = WORKLOAD.format(name="common", port=8081)
    machine.kubectl("apply", "-f", "-", stdin=workload)
    machine.kubectl("-n", "commonstuff", "rollout", "status", "deployment/commond", "--timeout=60s")
    assert "common" in eventually_page(port)
    before = machine.get("pods", "-n", "commonstuff")["items"][0]

    server = machine.processes("florin")["server"]
    os.kill(server.pid, signal.SIGKILL)
    deadline = time.monotonic() + 60
    while machine.processes("florin")["server"] == server:
        assert time.monotonic() < deadline, "the supervisor never started it again"
        time.sleep(0.1)
    assert "common" in eventually_page(port)
    machine.skerry("edge", "start", "florin")
    after = machine.get("pods", "-n", "commonstuff")["items"][0]
    ids = [pod["status"]["containerStatuses"][0]["containerID"] for pod in (before, after)]
    assert ids[0] == ids[1], "the process was taken over, not replaced"

    machine.skerry("edge", "stop", "florin")
    assert not any(alive(process) for process in machine.processes("florin").values())
    with pytest.raises(OSError, match="refused"):
        page(port)
    assert "Stopped" in machine.skerry("edge", "list").stdout
    machine.skerry("edge", "start", "florin")
    assert "common" in eventually_page(port)
    # The node reports a container after it has started it.
    count = "--for=jsonpath={.status.containerStatuses[0].restartCount}=1"
    machine.kubectl("wait", "-n", "commonstuff", "pods", "--all", count, "--timeout=50s")
    restarted = machine.get("pods", "-n", "commonstuff")["items"][0]
    assert restarted["metadata"]["uid"] == before["metadata"]["uid"]
    assert restarted["status"]["containerStatuses"][0]["restartCount"] == 1


def test_kubectl_reads_logs_runs_commands_and_rolls_back(machine: Machine) -> None:
    (port,) = free_ports(1)
    machine.create("florin", FLORIN.format(a=port))
    script = "echo one; echo two >&2; sleep 1000"
    words = ("--image=busybox", "--restart=Never", "--command", "--", "sh", "-c", script)
    machine.kubectl("run", "talk", *words)
    machine.kubectl("wait", "pod/talk", "--for=condition=Ready", "--timeout=60s")
    deadline = time.monotonic() + 60
    while len(logged := machine.kubectl("logs", "talk").split()) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert sorted(logged) == ["one", "two"]
    assert machine.kubectl("exec", "talk", "--", "sh", "-c", "echo $HOSTNAME") == "talk\n"
    echoed = machine.kubectl("exec", "-i", "talk", "--", "cat", stdin="typed")
    assert echoed == "typed"
    failed = machine._run(["kubectl", "exec", "talk", "--", "sh", "-c", "exit 3"], check=False)
    assert failed.returncode == 3

    site = WORKLOAD.format(name="common", port=8081)
    machine.kubectl("apply", "-f", "-", stdin=site.replace("hostPort: 8081", ""))
    status = ("-n", "commonstuff", "rollout")
    machine.kubectl(*status, "status", "deployment/commond", "--timeout=60s")
    machine.kubectl(*status, "restart", "deployment/commond")
    machine.kubectl(*status, "status", "deployment/commond", "--timeout=60s")
    assert len(machine.kubectl(*status, "history", "deployment/commond").split("\n")) >= 4
    machine.kubectl(*status, "undo", "deployment/commond")
    machine.kubectl(*status, "status", "deployment/commond", "--timeout=60s")
    history = machine.kubectl(*status, "history", "deployment/commond")
    assert "3" in history
    assert "\n1 " not in history
    assert machine.get("nodes")["items"][0]["metadata"]["annotations"]["node.skerry.io/isolation"]


@pytest.mark.parametrize("runtime", ["auto", "processes"])
def test_kubectl_forwards_attaches_copies_and_debugs(machine: Machine, runtime: str) -> None:
    made = machine.skerry("edge", "create", "florin", "--runtime", runtime)
    conditions = machine.get("nodes")["items"][0]["status"]["conditions"]
    (isolated,) = [c for c in conditions if c["type"] == "ProcessIsolation"]
    # Whoever starts an edge that cannot keep its pods apart is informed.
    result = f"Warning: {isolated['message']}" in made.stderr
    assert result is (isolated["status"] == "False")
    site = WORKLOAD.format(name="common", port=8081)
    machine.kubectl("apply", "-f", "-", stdin=site)
    place = ("-n", "commonstuff")
    machine.kubectl(*place, "rollout", "status", "deployment/commond", "--timeout=60s")
    deadline = time.monotonic() + 60
    seen: list[str] = []
    while len(seen) < 2:
        # The pod has no readiness probe: it is rolled out before its server listens, and kubectl
        # ends with the first connection that it cannot forward.
        with forwarded(machine, *place, "deployment/commond", ":80") as port:
            try:
                seen += [page(port), page(port)]
            except (OSError, http.client.HTTPException):
                assert time.monotonic() < deadline
    assert all("This is a common web site." in each for each in seen)

    once = ("--image=busybox", "--restart=Never", "-i", "--rm", "--quiet", "--", "cat")
    assert machine.kubectl("run", "echo", *once, stdin="one\ntwo\n") == "one\ntwo\n"

    pod = machine.get("pods", *place)["items"][0]["metadata"]["name"]
    proxy = f"/api/v1/namespaces/commonstuff/pods/{pod}:80/proxy/index.html"
    assert "This is a common web site." in machine.kubectl("get", "--raw", proxy)
    if "namespaces" in machine.kubectl("get", "nodes", "-o", "yaml"):
        # Without, a container's paths are the machine's, and kubectl wonders at them.
        sent, back = machine.home / "sent", machine.home / "back"
        sent.write_text("copied")
        machine.kubectl(*place, "cp", str(sent), f"{pod}:/tmp/there")
        machine.kubectl(*place, "cp", f"{pod}:/tmp/there", str(back))
        assert back.read_text() == "copied"
    words = ("--image=busybox", "--container=look", "--profile=general", "--", "sh", "-c")
    machine.kubectl(*place, "debug", pod, *words, "echo looked")
    deadline = time.monotonic() + 60
    while machine.kubectl(*place, "logs", pod, "-c", "look", check=False) != "looked\n":
        assert time.monotonic() < deadline
        time.sleep(0.1)


@contextmanager
def forwarded(machine: Machine, *words: str) -> Iterator[int]:
    """Have kubectl forward a port while inside; yields the one it listens on."""
    with subprocess.Popen(
        ["kubectl", "port-forward", *words],
        env=machine.environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            said = process.stdout.readline()
            yield int(said.partition("127.0.0.1:")[2].split()[0])
        finally:
            process.terminate()


def test_a_taken_port_is_reported_in_one_sentence_and_leaves_nothing(machine: Machine) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        path = machine.home / "f.yaml"
        path.write_text(FLORIN.format(a=port))
        done = machine.skerry("edge", "create", "florin", "--config", str(path), check=False)
    assert done.returncode == 1
    assert f"needs port {port} on 127.0.0.1" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    # A demo that runs on this machine meanwhile is listed, too.
    assert str(machine.home) not in machine.skerry("edge", "list").stdout
