"""An edge's certificate asked for, approved, used, lapsed and revoked with kubectl and openssl."""

from __future__ import annotations

import base64
import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from skerry.api.edge_identity import (
    EDGES,
    REQUESTS_PATH,
    EdgeName,
    certificate_request,
    request_name,
)
from tests.kit.e2e.hubs import Hub, Shell
from tests.kit.e2e.processes import refuse_old_kubectl

MakeShell = Callable[..., Shell]
_SYNC_TARGET = """
apiVersion: workload.kcp.io/v1alpha1
kind: SyncTarget
metadata:
  name: {name}
spec: {{}}
"""
_CONTENT = """
apiVersion: apis.kcp.io/v1alpha1
kind: APIBinding
metadata:
  name: bind-edge
spec:
  reference:
    export:
      path: root:espw
      name: edge.kcp.io
"""
_CONFIG = """
apiVersion: edge.kcp.io/v1alpha1
kind: SyncerConfig
metadata:
  name: the-one
spec:
  namespaceScope:
    namespaces: [shop]
    resources:
    - {group: "", resource: configmaps, apiVersion: v1}
---
apiVersion: v1
kind: Namespace
metadata:
  name: shop
  labels: {edge.kcp.io/projected: "yes"}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: copy
  namespace: shop
  labels: {edge.kcp.io/projected: "yes"}
data: {a: "1"}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: stranger
  namespace: shop
"""


@pytest.fixture
def hasty_hub(tmp_path: Path) -> Iterator[Hub]:
    """A hub whose certificates for edges live for seconds."""
    refuse_old_kubectl()
    flags = ("--init", "--controllers", "none", "--edge-certificate-lifetime", "4s")
    hub = Hub(tmp_path / "hub", *flags).start()
    yield hub
    assert hub.stop() == 0, hub.log


class Device:
    """The machine of an edge: its key, its request, and kubectl with its certificate."""

    def __init__(self, hub: Hub, shell: Shell, folder: Path, name: str) -> None:
        self.hub, self.shell, self.folder, self.target = hub, shell, folder, name
        shell("kubectl ws root:imw >/dev/null 2>&1 || kubectl ws create imw --enter")
        shell(f"kubectl create -f - <<EOF{_SYNC_TARGET.format(name=name)}EOF")
        found = json.loads(shell(f"kubectl get synctarget {name} -o json"))["metadata"]
        inventory, uid = found["annotations"]["kcp.io/cluster"], found["uid"]
        shell(f"kubectl ws root:espw; kubectl ws create {inventory}-mb-{uid} --enter")
        cluster = json.loads(shell("kubectl get logicalcluster cluster -o json"))
        self.name = EdgeName(cluster["metadata"]["annotations"]["kcp.io/cluster"], uid)
        shell(f"kubectl create -f - <<EOF{_CONTENT}EOF")
        shell(f"kubectl create -f - <<EOF{_CONFIG}EOF")

    def ask(self, key: str) -> str:
        """Make a key here, ask for its certificate as the administrator, return the request."""
        file = self.folder / key
        subject = f"/O={EDGES}/CN={self.name.common_name}"
        self.run(f"openssl ecparam -name prime256v1 -genkey -noout -out {file}.key")
        self.run(f"openssl req -new -key {file}.key -subj {subject} -out {file}.csr")
        self.run(f"openssl pkey -in {file}.key -pubout -outform DER -out {file}.spki")
        name = request_name(Path(f"{file}.spki").read_bytes())
        body = certificate_request(name, Path(f"{file}.csr").read_bytes())
        Path(f"{file}.json").write_text(json.dumps(body))
        self.shell(f"kubectl create -f {file}.json")
        return name

    @property
    def path(self) -> str:
        return f"/clusters/{self.name.mailbox}"

    def take(self, key: str, name: str) -> None:
        found = json.loads(self.shell(f"kubectl get csr {name} -o json"))
        pem = base64.b64decode(found["status"]["certificate"])
        (self.folder / f"{key}.crt").write_bytes(pem)

    def kubectl(self, key: str, words: str, code: int = 0) -> str:
        """Run kubectl with the edge's certificate and nothing else."""
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "edge",
            "clusters": [{"name": "hub", "cluster": {
                "server": f"{self.hub.url}/clusters/{self.name.mailbox}",
                "certificate-authority": str(self.hub.data_dir / "pki" / "ca.crt")}}],
            "users": [{"name": "edge", "user": {
                "client-certificate": str(self.folder / f"{key}.crt"),
                "client-key": str(self.folder / f"{key}.key")}}],
            "contexts": [{"name": "edge", "context": {"cluster": "hub", "user": "edge"}}],
        }  # fmt: skip
        file = self.folder / "edge.kubeconfig"
        file.write_text(json.dumps(config))
        return self.shell(f"kubectl --kubeconfig {file} {words}", code=code)

    def run(self, command: str) -> None:
        subprocess.run(command.split(), check=True, capture_output=True)


def test_kubectl_approves_an_edge_which_then_sees_its_copies_only(
    hub: Hub, shell_at: MakeShell, tmp_path: Path
) -> None:
    shell = shell_at(hub)
    device = Device(hub, shell, tmp_path, "florin")
    name = device.ask("first")
    assert "Pending" in shell(f"kubectl get csr {name}")
    assert "approved" in shell(f"kubectl certificate approve {name}")
    assert "Approved,Issued" in shell(f"kubectl get csr {name}")
    device.take("first", name)
    shown = device.kubectl("first", "get configmaps -A -o name")
    assert shown == "configmap/copy\n"
    assert "the-one" in device.kubectl("first", "get syncerconfigs")
    for words in (
        "get secrets -A",
        "get serviceaccounts",
        "get apibindings",
        "get clusterroles",
        "create configmap mine -n shop",
        "delete configmap copy -n shop",
        "label configmap copy -n shop a=b",
        "create clusterrolebinding x --clusterrole=cluster-admin --group=system:authenticated",
        "create serviceaccount robot",
        "create token default",
    ):
        refused = device.kubectl("first", words, code=1)
        assert "forbidden" in refused.lower(), (words, refused)
    device.kubectl("first", "annotate configmap copy -n shop edge.kcp.io/applied=1-a")


def test_a_lapsed_certificate_gets_through_the_handshake_and_requests_its_successor(
    hasty_hub: Hub, shell_at: MakeShell, tmp_path: Path
) -> None:
    shell = shell_at(hasty_hub)
    device = Device(hasty_hub, shell, tmp_path, "guilder")
    name = device.ask("first")
    shell(f"kubectl certificate approve {name}")
    device.take("first", name)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        result = device.kubectl("first", f"get --raw {device.path}/api || true")
        if "orbidden" in result:
            break
    assert "orbidden" in result, result
    file = tmp_path / "second"
    subject = f"/O={EDGES}/CN={device.name.common_name}"
    device.run(f"openssl genpkey -algorithm ed25519 -out {file}.key")
    device.run(f"openssl req -new -key {file}.key -subj {subject} -out {file}.csr")
    device.run(f"openssl pkey -in {file}.key -pubout -outform DER -out {file}.spki")
    again = request_name(Path(f"{file}.spki").read_bytes())
    body = certificate_request(again, Path(f"{file}.csr").read_bytes())
    Path(f"{file}.json").write_text(json.dumps(body))
    path = f"{device.path}{REQUESTS_PATH}"
    made = device.kubectl("first", f"create --raw {path} -f {file}.json")
    assert json.loads(made)["status"]["certificate"]
    assert again in device.kubectl("first", f"get --raw {path}/{again}")


def test_an_annotation_revokes_the_edge_and_ends_its_watch(
    hub: Hub, shell_at: MakeShell, tmp_path: Path
) -> None:
    shell = shell_at(hub)
    device = Device(hub, shell, tmp_path, "thaler")
    name = device.ask("first")
    shell(f"kubectl certificate approve {name}")
    device.take("first", name)
    config = tmp_path / "edge.kubeconfig"
    device.kubectl("first", "get configmaps -A -o name")
    with subprocess.Popen(
        ["kubectl", "--kubeconfig", str(config), "get", "--raw",
         f"{device.path}/api/v1/configmaps?watch=true"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=shell.environment, text=True,
    ) as watching:  # fmt: skip
        assert watching.stdout is not None
        assert "copy" in watching.stdout.readline()
        shell("kubectl annotate logicalcluster cluster edge.kcp.io/edge-revoked=lost")
        # Nothing else ends it for half an hour.
        assert watching.stdout.read() == ""
        assert watching.wait(timeout=60) == 0
    result = device.kubectl("first", "get configmaps -A", code=1)
    assert "logged in" in result or "nauthorized" in result, result
