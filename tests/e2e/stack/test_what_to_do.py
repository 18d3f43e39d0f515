"""The pages about what to do when something is lost, and for those who know kind, as printed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.e2e.processes import SKERRY, refuse_old_kubectl
from tests.kit.e2e.walkthrough import Terminal
from tests.kit.ports import free_ports

pytestmark = pytest.mark.long

_PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "what-to-do-when.md"
_KIND = _PAGE.with_name("coming-from-kind.md")
_BLOCK = re.compile(r"^```shell\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_the_pages_work_as_printed(tmp_path: Path) -> None:
    refuse_old_kubectl()
    edge, hub, disk, key = _BLOCK.findall(_PAGE.read_text())
    (kind,) = _BLOCK.findall(_KIND.read_text())
    terminal = Terminal(tmp_path)
    port = free_ports(1)[0]
    hub, key = (
        block.replace("--detach --data-dir", f"--detach --port {port} --data-dir")
        for block in (hub, key)
    )
    terminal.afterwards("skerry down --data-dir hub; skerry edge delete florin || true")
    try:
        terminal("skerry edge create florin; skerry edge stop florin")
        listed = terminal(edge)
        assert re.search(r"florin +Stopped", listed)
        assert "Edge florin is ready" in listed
        terminal("skerry edge delete florin")

        said = terminal(hub)
        assert said.count("not running") == 2
        assert said.count("running (pid ") == 2
        assert "hub" in terminal(disk) or "/" in terminal(disk)
        assert "NAME" in terminal(key)

        created = terminal(kind)
        assert "florin-control-plane" in created
        assert "Edge florin is deleted" in created
    finally:
        terminal.close()


_FULL = """
mount -t tmpfs -o size=24m tmpfs disk
{skerry} up --init --detach --data-dir disk/hub --port {port} >/dev/null
kubectl create configmap before >/dev/null
cat /dev/zero > disk/fill 2>/dev/null || true
echo refused; kubectl create configmap meanwhile --from-file=blob 2>&1 || true
echo read; kubectl get configmap before -o name
# What ends while nothing can be written down comes back all the same.
controllers="skerry.cli controllers --kubeconfig $PWD/disk"
kill -9 $(pgrep -f "python -m $controllers" | tail -1)
until [ $(pgrep -fc "$controllers") -ge 2 ]; do sleep 0.1; done
rm disk/fill
kubectl create configmap after >/dev/null
status() {{ {skerry} status --data-dir disk/hub -o json || true; }}
until [ $(status | grep -oE '"(running|supervised)": true' | wc -l) = 4 ]; do sleep 0.2; done
echo status; status
{skerry} down --data-dir disk/hub
"""


def test_a_disk_that_is_full_for_a_while_ends_nothing(tmp_path: Path) -> None:
    refuse_old_kubectl()
    if subprocess.run(["unshare", "-Urm", "true"], check=False).returncode:
        pytest.skip("no mount namespaces here")
    (tmp_path / "disk").mkdir()
    (tmp_path / "blob").write_text("x" * 200_000)
    script = _FULL.format(skerry=SKERRY, python=sys.executable, port=free_ports(1)[0])
    terminal = Terminal(tmp_path)
    done = subprocess.run(
        ["unshare", "-Urm", "bash", "-euo", "pipefail", "-c", script], cwd=tmp_path,
        capture_output=True, text=True, timeout=120, check=False,
        env={**terminal.environment, "KUBECONFIG": str(tmp_path / "disk/hub/admin.kubeconfig")},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "refused\nerror: failed to create configmap: the disk is full" in done.stdout
    assert "read\nconfigmap/before" in done.stdout
    status = json.loads(done.stdout.partition("status\n")[2])
    assert all(part["running"] and part["supervised"] for part in status["parts"])
