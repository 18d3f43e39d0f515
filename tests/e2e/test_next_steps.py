"""The demo's last lines, pasted into a shell that knows nothing of this installation."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.kit.e2e.processes import SKERRY
from tests.kit.ports import free_ports

pytestmark = pytest.mark.long

_LONG = 240


def _commands(process: subprocess.Popen[str]) -> tuple[list[str], list[str]]:
    """Return what is printed between the two empty lines at the end, and what before."""
    assert process.stdout is not None
    before: list[str] = []
    for line in process.stdout:
        if line == "\n":
            break
        before.append(line)
    found: list[str] = []
    for line in process.stdout:
        if line == "\n":
            return found, before
        found.append(line.rstrip("\n"))
    raise AssertionError(f"the demo ended before its last lines: {before}")


def _signed_in(link: str) -> Any:
    """Follow the link to the console as its page does; return who is signed in."""
    address = urlsplit(link)
    origin = f"http://{address.netloc}"
    ours = {"Origin": origin, "X-Skerry-Console": "1", "Content-Type": "application/json"}
    code = json.dumps({"code": address.fragment.removeprefix("code=")}).encode()
    asked = urllib.request.Request(f"{origin}/console/session", code, ours)
    with urllib.request.urlopen(asked) as answer:
        cookie = answer.headers["Set-Cookie"].partition(";")[0]
    asked = urllib.request.Request(f"{origin}/console/session", headers={"Cookie": cookie})
    with urllib.request.urlopen(asked) as answer:
        return json.load(answer)


def _bare_path(folder: Path) -> str:
    """Return a path with kubectl on it, and without the programs of this installation."""
    folder.mkdir()
    kubectl = shutil.which("kubectl")
    assert kubectl is not None
    (folder / "kubectl").symlink_to(kubectl)
    ours = Path(sys.executable).parent
    others = [each for each in os.environ["PATH"].split(":") if Path(each) != ours]
    return ":".join([str(folder), *others])


@pytest.fixture
def own_temporary() -> Iterator[str]:
    """A temporary folder in which no other demo of this machine is found; its path is short."""
    with tempfile.TemporaryDirectory(prefix="own-") as folder:
        yield folder


def test_every_command_works_as_it_is_printed(tmp_path: Path, own_temporary: str) -> None:
    environment = {
        "PATH": _bare_path(tmp_path / "bin"),
        "HOME": str(tmp_path),
        "TMPDIR": own_temporary,
    }
    ports = [str(port) for port in free_ports(3)]
    demo = subprocess.Popen(
        [SKERRY, "demo", "--ports", *ports], stdout=subprocess.PIPE, text=True, env=environment
    )
    try:
        commands, before = _commands(demo)
        (link,) = [line.strip() for line in before if "/console/login#code=" in line]
        assert _signed_in(link)["user"] == "kcp-admin"
        assert commands[0].startswith("export PATH=")
        assert commands[1].startswith("export KUBECONFIG=")
        for wanted in ("skerry status", "skerry edge list", "skerry fleet", "skerry explain",
                       "skerry whatif", "kubectl ws", "curl"):  # fmt: skip
            assert any(command.startswith(wanted) for command in commands), wanted
        printed = _pasted(commands, environment, tmp_path)
        status = printed["skerry status"]
        assert status.startswith("demo ")
        assert status.count("running (pid ") == 2
        edges = printed["skerry edge list"].splitlines()
        assert [line.split()[:3] for line in edges[1:]] == [
            ["florin", "Running", "Running"],
            ["guilder", "Running", "Running"],
        ]
        assert "edge-placement-c" in printed["skerry fleet"]
        assert "edge-placement-c" in printed["kubectl get edgeplacements"]
        (whatif,) = [text for words, text in printed.items() if words.startswith("skerry whatif")]
        assert "location-f" in whatif or "florin" in whatif or "sync-target-f" in whatif, whatif
        known = subprocess.run(
            [SKERRY, "status", "-o", "json"], capture_output=True, text=True, check=True,
            cwd=tmp_path, env=environment,
        )  # fmt: skip
        (shown,) = json.loads(known.stdout)["demos"]
        assert all(part["running"] for part in shown["parts"])
    finally:
        demo.send_signal(signal.SIGINT)
        demo.communicate(timeout=_LONG)
    assert demo.returncode == 0


def _pasted(commands: list[str], environment: dict[str, str], folder: Path) -> dict[str, str]:
    """Paste *commands* one by one into one shell; return what each printed."""
    marked = [f"echo '=== {number}'\n{command}" for number, command in enumerate(commands)]
    done = subprocess.run(
        ["bash", "-e"], input="\n".join(marked) + "\n", capture_output=True, text=True,
        timeout=_LONG, check=False, cwd=folder, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    parts = done.stdout.split("=== ")[1:]
    return {command: part.partition("\n")[2] for command, part in zip(commands, parts, strict=True)}


def test_a_demo_that_is_hung_up_on_leaves_no_process(tmp_path: Path) -> None:
    data = tmp_path / "demo"
    ports = [str(port) for port in free_ports(3)]
    demo = subprocess.Popen(
        [SKERRY, "demo", "--ports", *ports, "--data-dir", str(data)],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert demo.stdout is not None
    assert "Stage 1: two edge clusters" in demo.stdout.readline()
    # While the hub starts.
    demo.send_signal(signal.SIGHUP)
    demo.communicate(timeout=_LONG)
    assert not [words for words in _command_lines() if str(data).encode() in words]


def _command_lines() -> Iterator[bytes]:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended meanwhile
            yield path.read_bytes()
