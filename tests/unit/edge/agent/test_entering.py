"""Commands inside a running container; without one to enter, the command becomes the process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from skerry.edge.agent import entering

RIGHTS: dict[str, Any] = {}


class Task:
    """A file that says what to do."""

    def __init__(self, root: Path) -> None:
        self.path = root / "task.json"
        self.directory = str(root)

    def run(self, *argv: str, namespaces: list[str] | None = None, **more: Any) -> Any:
        task = {
            "argv": list(argv),
            "environment": {"PATH": "/usr/bin:/bin", "A": "1"},
            "directory": self.directory,
            "rights": RIGHTS,
            "namespaces": namespaces,
            "control_group": "",
            "bubblewrap": None,
            **more,
        }
        self.path.write_text(json.dumps(task))
        program = [sys.executable, "-I", "-S", str(Path(entering.__file__)), str(self.path)]
        return subprocess.run(
            program,
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
            env={"TERM": "xterm", "SECRET": "of the agent"},
        )


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return Task(tmp_path)


def test_a_command_ends_as_it_does_with_its_own_variables_and_folder(task: Task) -> None:
    done = task.run("sh", "-c", "env; pwd; exit 7")
    assert done.returncode == 7
    lines = done.stdout.splitlines()
    assert {"A=1", "TERM=xterm", task.directory} <= set(lines)
    assert "of the agent" not in done.stdout
    # What to do may hold secrets, and is read once.
    assert not task.path.exists()


@pytest.mark.parametrize(("program", "code"), [("no-such-program", 127), ("/etc/passwd", 126)])
def test_a_command_that_cannot_be_run_ends_as_a_shell_says(
    task: Task, program: str, code: int
) -> None:
    done = task.run(program)
    assert done.returncode == code
    assert done.stderr.startswith(f'exec: "{program}": ')


def test_a_folder_that_is_not_there_is_a_command_that_cannot_be_run(task: Task) -> None:
    task.directory = "/no/such/folder"
    assert task.run("true").returncode == 127


@pytest.mark.parametrize("paths", [[], ["/proc/self/ns/none"]])
def test_a_container_that_cannot_be_entered_runs_nothing(task: Task, paths: list[str]) -> None:
    done = task.run("touch", f"{task.directory}/made", namespaces=paths)
    assert done.returncode == 126
    assert "cannot enter the container" in done.stderr
    assert not os.path.exists(f"{task.directory}/made")


def test_a_command_is_entered_where_its_container_is(task: Task) -> None:
    """In a namespace with a host name of its own, which stands for all of them."""
    holder = subprocess.Popen(
        ["unshare", "--uts", "sh", "-c", "hostname inside; echo made; exec sleep 100"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "made\n"
        paths = [f"/proc/{holder.pid}/ns/{kind}" for kind in ("uts", "pid")]
        done = task.run("sh", "-c", "cat /proc/sys/kernel/hostname; kill -9 $$", namespaces=paths)
    finally:
        holder.kill()
        holder.communicate()
    assert done.stdout == "inside\n"
    assert done.returncode == 128 + 9
