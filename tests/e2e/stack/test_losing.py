"""The page for a bad day, its commands run as they are printed."""

from __future__ import annotations

import os
import re
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.client import HTTPSConnection
from pathlib import Path

import pytest
import yaml

from skerry.app.hub_credential import IDENTITY_FILE
from skerry.logic.fleet.syncing.certificates import EdgeIdentity, decode_identity
from skerry.runtime.kubeconfig import load, tls_context
from tests.kit.e2e.processes import ServerProcess
from tests.kit.ports import free_ports

pytestmark = pytest.mark.long

_PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "lose-something.md"
_BLOCK = re.compile(r"^```shell\n(.*?)^```", re.MULTILINE | re.DOTALL)
_BIN = Path(sys.executable).parent
_PREPARED = """
skerry up --init --detach --port {port} --data-dir .skerry
kubectl ws root
kubectl ws create imw --enter
kubectl kubestellar ensure location florin env=prod
kubectl create secret generic password --from-literal=word=sesame
skerry edge bootstrap florin --imw root:imw -o florin-hub.kubeconfig
"""
_PATIENCE_SECONDS = 60.0


class Scene:
    """A hub, an edge and its syncer below one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = str(free_ports(1)[0])
        self.variables = ""
        self.environment = {
            "PATH": f"{_BIN}:{os.environ['PATH']}",
            "HOME": str(folder),
            "KUBECONFIG": str(folder / ".skerry" / "admin.kubeconfig"),
        }
        self.syncer: subprocess.Popen[str] | None = None
        self.log = folder / "syncer.log"

    def run(self, script: str) -> str:
        """Run commands; what they set is there for the next ones."""
        script = script.replace("--detach --data-dir", f"--detach --port {self.port} --data-dir")
        keep = "{ declare -p mailbox 2>/dev/null || true; }"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", f"{self.variables}\n{script}\n{keep} > variables"],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
        self.variables = (self.folder / "variables").read_text()
        return done.stdout

    def start_syncer(self, edge: Path) -> None:
        with self.log.open("w") as log:
            self.syncer = subprocess.Popen(
                [str(_BIN / "skerry"), "syncer", "--from-kubeconfig", "florin-hub.kubeconfig",
                 "--to-kubeconfig", str(edge), "--sync-target-name", "florin",
                 "--data-dir", "syncer", "--heartbeat-seconds", "1"],
                cwd=self.folder, stdout=log, stderr=log, text=True,
            )  # fmt: skip

    def until(self, holds: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + _PATIENCE_SECONDS
        while not holds():
            assert time.monotonic() < end, f"{what}\n{self.log.read_text()[-3000:]}"
            time.sleep(0.1)

    @property
    def identity(self) -> EdgeIdentity:
        path = self.folder / "syncer" / IDENTITY_FILE
        return decode_identity(path.read_bytes()) if path.exists() else EdgeIdentity()

    def certified(self, after: str = "") -> EdgeIdentity:
        self.until(lambda: self.identity.certificate not in ("", after), "a new certificate")
        return self.identity

    def status(self, identity: EdgeIdentity) -> str:
        """Return the status the hub answers an edge's certificate with; empty: it hangs up."""
        config = replace(
            load([self.folder / "florin-hub.kubeconfig"]),
            token="",
            certificate=identity.certificate.encode(),
            key=identity.key.encode(),
            ca=(self.folder / ".skerry" / "pki" / "ca.crt").read_bytes(),
        )
        connection = HTTPSConnection("127.0.0.1", int(self.port), context=tls_context(config))
        path = config.server.partition(str(self.port))[2]
        try:
            connection.request("GET", f"{path}/version")
            return str(connection.getresponse().status)
        except (ssl.SSLError, ConnectionError):
            return ""
        finally:
            connection.close()


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    found = Scene(tmp_path)
    edge = ServerProcess(tmp_path / "edge")
    edge.start()
    try:
        found.run(_PREPARED.format(port=found.port))
        found.start_syncer(edge.kubeconfig)
        yield found
    finally:
        if found.syncer is not None:
            found.syncer.kill()
            found.syncer.wait()
        found.run("skerry down --data-dir .skerry")
        edge.kill()


def test_the_page_for_a_bad_day_works_as_printed(scene: Scene) -> None:
    device, seen, replacement, withdrawn, secrets, authority, signing, tokens = _BLOCK.findall(
        _PAGE.read_text()
    )
    first = scene.certified()
    assert scene.status(first) == "200"

    scene.run(device)
    assert scene.status(first) == "401"
    scene.until(lambda: "the hub refuses this edge" in scene.log.read_text(), "a loud refusal")
    scene.run(seen)

    scene.run(replacement)
    second = scene.certified(first.certificate)
    assert (scene.status(first), scene.status(second)) == ("401", "200")

    scene.run("skerry edge bootstrap florin --imw root:imw -o astray.kubeconfig")
    assert "bootstrap-token-" in scene.run(withdrawn)
    left = (
        "kubectl --namespace default get secrets --field-selector type=edge.kcp.io/bootstrap-token"
    )
    assert scene.run(left) == ""

    scene.run(secrets)
    scene.run("kubectl ws root:imw; kubectl get secret password")

    scene.run(authority)
    assert scene.status(second) == ""
    scene.run(replacement)
    third = scene.certified(second.certificate)
    assert scene.status(third) == "200"

    scene.run(signing)

    admin = scene.folder / ".skerry" / "admin.kubeconfig"
    before = {user["user"]["token"] for user in yaml.safe_load(admin.read_text())["users"]}
    scene.run(tokens)
    after = {user["user"]["token"] for user in yaml.safe_load(admin.read_text())["users"]}
    assert not before & after
    for token in before:
        got = scene.run(f"kubectl --token {token} get workspaces 2>&1 || true")
        assert "provide credentials" in got or "(Unauthorized)" in got
    scene.run("kubectl get workspaces")
    assert scene.status(third) == "200"
    assert scene.syncer is not None
    assert scene.syncer.poll() is None
