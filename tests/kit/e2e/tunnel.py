"""A hub that takes tunnels, an edge that has dialled one, and a pod of real processes there."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_BIN = Path(sys.executable).parent
_POD = """
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop}
spec:
  containers:
  - name: main
    image: python
    command: ["python3", "-u", "-m", "http.server", "8000", "--directory", "/etc"]
    ports: [{containerPort: 8000}]
    readinessProbe: {tcpSocket: {port: 8000}, periodSeconds: 1}
"""


class Place:
    """A hub that takes tunnels, and an edge that has dialled one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            "PATH": f"{_BIN}:{os.environ['PATH']}",
            "HOME": str(folder),
            "SKERRY_HOME": str(folder / "home"),
            "TMPDIR": str(folder),
            "KUBECONFIG": str(folder / "hub" / "admin.kubeconfig"),
        }

    def run(self, *words: str, given: str = "", code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            words, cwd=self.folder, env=self.environment, input=given, text=True, timeout=100,
            capture_output=True, check=False,
        )  # fmt: skip
        assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    def sessions(self, stage: str = "ResponseComplete") -> list[dict[str, str]]:
        """Return what the audit log says of sessions that have ended, or are at another *stage*."""
        return [event["annotations"] for event in self.audited("/edges/", stage)]

    def audited(self, path: str, stage: str = "ResponseComplete") -> list[dict[str, Any]]:
        """Return the events of requests whose address has *path* in it."""
        lines = (self.folder / "audit.log").read_text().splitlines()
        events = [event for event in map(json.loads, lines) if path in event["requestURI"]]
        return [event for event in events if event["stage"] == stage]


@contextlib.contextmanager
def tunnel_place(folder: Path, *flags: str) -> Iterator[Place]:
    """Run a hub with *flags*, the edge ``florin`` of ``root:imw``, and the pod ``web`` there."""
    place = Place(folder)
    up = ("skerry", "up", "--detach", "--init", "--data-dir", "hub", "--port", "0", *flags)
    place.run(*up, "--tunnel", "--audit-log", str(folder / "audit.log"))
    try:
        place.run("kubectl", "ws", "create", "imw", "--enter")
        place.run("skerry", "edge", "join", "florin", "env=prod", "--tunnel")
        at_edge = ("kubectl", "--context", "kind-florin")
        place.run(*at_edge, "create", "namespace", "shop")
        # What a pod needs is made a moment after its namespace.
        wait = (*at_edge, "-n", "shop", "wait", "--timeout=60s")
        place.run(*wait, "--for=create", "serviceaccount/default")
        place.run(*at_edge, "apply", "-f", "-", given=_POD)
        place.run(*wait, "--for=condition=Ready", "pod/web")
        yield place
    finally:
        with contextlib.suppress(AssertionError):
            place.run("skerry", "edge", "delete", "florin")
        place.run("skerry", "down", "--data-dir", "hub")
