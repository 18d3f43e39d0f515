"""What a restart leaves as it was, and what a stop leaves behind: nothing."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kit.e2e.installed import installed
from tests.kit.ports import free_ports

_LONG = 60


class Place:
    """A folder, a port, and somebody with kubectl and its plugins there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.port = str(free_ports(1)[0])
        programs = installed(folder / "bin")
        self.skerry = str(programs / "skerry")
        self.environment = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "HOME": str(folder),
            "KUBECONFIG": str(self.data / "admin.kubeconfig"),
        }

    def __call__(self, words: str, code: int = 0) -> str:
        done = subprocess.run(
            words.split(), cwd=self.folder, env=self.environment,
            capture_output=True, text=True, timeout=_LONG, check=False,
        )  # fmt: skip
        assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def up(self, *flags: str) -> str:
        return self(" ".join(["skerry up --detach --data-dir data --port", self.port, *flags]))

    def foreground(self, **how: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self.skerry, "up", "--data-dir", str(self.data), "--port", self.port],
            cwd=self.folder, env=self.environment, text=True,
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how},
        )  # fmt: skip

    def left(self) -> list[str]:
        """Return the command lines of processes that have to do with this folder."""
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes().split(b"\0")
            except OSError:
                continue
            if str(self.data).encode() in b" ".join(words):
                found.append(b" ".join(words).decode())
        return found

    def parts(self) -> dict[str, Any]:
        done = subprocess.run(
            [self.skerry, "status", "--data-dir", str(self.data), "-o", "json"],
            capture_output=True, text=True, timeout=_LONG, check=False,
        )  # fmt: skip
        return {part["name"]: part for part in json.loads(done.stdout)["parts"]}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    found = Place(tmp_path)
    yield found
    if found.data.exists():
        found("skerry down --data-dir data")


def test_a_restart_leaves_the_current_workspace_and_everything_people_added(place: Place) -> None:
    place.up()
    place("kubectl ws create team --enter")
    place("kubectl config set-cluster elsewhere --server https://elsewhere.example")
    place("kubectl config set-credentials me --token mine")
    place("kubectl config set-context mine --cluster elsewhere --user me --namespace shop")
    file = place.data / "admin.kubeconfig"
    file.chmod(0o640)
    before = yaml.safe_load(file.read_text())
    place("skerry down --data-dir data")
    place.port = str(free_ports(1)[0])
    place.up()
    assert place("kubectl ws .") == 'Current workspace is "root:team".\n'
    after = yaml.safe_load(file.read_text())
    for section in ("contexts", "users", "current-context"):
        assert after[section] == before[section]
    assert file.stat().st_mode & 0o777 == 0o640
    place("kubectl create configmap here")
    assert "here" in place("kubectl get configmaps --server "
                           f"https://127.0.0.1:{place.port}/clusters/root:team")  # fmt: skip


def test_a_kubeconfig_that_is_broken_stops_no_hub_and_is_not_thrown_away(place: Place) -> None:
    place.up()
    place("skerry down --data-dir data")
    file = place.data / "admin.kubeconfig"
    file.write_text("clusters: [")
    said = place.up()
    assert file.read_text() == "clusters: ["
    fresh = place.data / "admin.fresh.kubeconfig"
    assert str(fresh) in said
    assert "admin.kubeconfig is left as it is" in (place.data / "hub.log").read_text()
    place(f"kubectl --kubeconfig {fresh} get workspaces")
    assert place.parts()["controllers"]["running"]


def test_controllers_run_without_a_flag_and_begin_when_there_is_a_provider(place: Place) -> None:
    place.up()
    assert place.parts()["controllers"]["running"]
    _until(place, '"waiting for the provider workspace" workspace="root:espw"')
    # Asking for it later is enough, and it is the same process that then goes to work.
    pid = place.parts()["controllers"]["pid"]
    place.up("--init")
    _until(place, '"starting workers" controller="placement-translator"')
    assert place.parts()["controllers"]["pid"] == pid


def test_controllers_do_not_follow_people_to_another_cluster(place: Place) -> None:
    place.up("--init")
    place("kubectl config set-cluster elsewhere --server https://127.0.0.1:1")
    place("kubectl config set-context elsewhere --cluster elsewhere")
    place("kubectl config use-context elsewhere")
    place("skerry down --data-dir data")
    (place.data / "controllers.log").unlink()
    place.up("--init")
    _until(place, '"starting workers" controller="placement-translator"')
    assert place("kubectl config current-context") == "elsewhere\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_to_the_command_leaves_no_process(place: Place, number: signal.Signals) -> None:
    running = place.foreground()
    assert running.stdout is not None
    assert "skerry up ready at" in running.stdout.readline()
    assert len(place.left()) > 3
    running.send_signal(number)
    running.send_signal(number)
    _, errors = running.communicate(timeout=_LONG)
    assert (running.returncode, errors) == (0, "")
    assert place.left() == []


@pytest.mark.parametrize("seconds", [0.2, 0.5, 0.9])
def test_a_signal_during_the_start_leaves_no_process(place: Place, seconds: float) -> None:
    running = place.foreground(process_group=0)
    # Somewhere in the start; where exactly is what the parameter is for.
    with pytest.raises(subprocess.TimeoutExpired):
        running.wait(seconds)
    os.killpg(running.pid, signal.SIGINT)
    running.communicate(timeout=_LONG)
    # Before the command has loaded, it is Python that ends it.
    assert running.returncode in (0, 1, 130, -signal.SIGINT)
    assert place.left() == []


def test_a_terminal_that_is_closed_leaves_no_process(place: Place) -> None:
    ours, theirs = pty.openpty()
    running = place.foreground(
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        preexec_fn=_own_terminal,
    )  # fmt: skip
    os.close(theirs)
    printed = ""
    while "skerry up ready at" not in printed:
        printed += os.read(ours, 4096).decode()
    os.close(ours)
    running.wait(_LONG)
    assert place.left() == []


def _own_terminal() -> None:
    """Make standard input the terminal whose closing is felt."""
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def test_what_lost_its_supervisor_is_shown_and_replaced_by_the_next_start(place: Place) -> None:
    place.up()
    first = place.parts()["hub"]
    supervisor = json.loads((place.data / "hub.json").read_text())["supervisor"][0]
    ended = os.pidfd_open(supervisor)
    os.kill(supervisor, signal.SIGKILL)
    select.select([ended], [], [], _LONG)
    os.close(ended)
    assert place.parts()["hub"] == {**first, "supervised": False}
    assert f"running (pid {first['pid']}, not supervised)" in place("skerry status --data-dir data")
    place.up()
    second = place.parts()["hub"]
    assert second["supervised"]
    assert second["pid"] != first["pid"]
    place("skerry down --data-dir data")
    assert place.left() == []


def test_down_ends_a_foreground_command_too(place: Place) -> None:
    running = place.foreground()
    assert running.stdout is not None
    running.stdout.readline()
    place("skerry down --data-dir data")
    _, errors = running.communicate(timeout=_LONG)
    assert running.returncode == 1
    assert errors.startswith("skerry up: stopped, because another command")
    assert place.left() == []


def test_without_flags_it_runs_where_it_says(place: Place) -> None:
    """Port 6443 may be somebody's on this machine: the test has a network of its own."""
    up = "import fcntl, socket, struct; fcntl.ioctl(socket.socket(), 0x8914, struct.pack('16sH14s', b'lo', 0x41, b''))"  # noqa: E501
    script = f"""
        {sys.executable} -c "{up}"
        skerry up --detach && skerry status && kubectl --kubeconfig .skerry/admin.kubeconfig get ws
        skerry down && ! skerry status
    """
    trial = subprocess.run(["unshare", "-Urn", "true"], check=False)
    if trial.returncode:
        pytest.skip("no network namespaces here")
    done = subprocess.run(
        ["unshare", "-Urn", "bash", "-euc", script], cwd=place.folder, env=place.environment,
        capture_output=True, text=True, timeout=_LONG, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "skerry up ready at https://127.0.0.1:6443" in done.stdout


def _until(place: Place, line: str) -> None:
    """Wait for a line of the controllers' log, which tells nobody when it grows."""
    done = subprocess.run(
        ["timeout", str(_LONG), "bash", "-c",
         f"until grep -qF '{line}' {place.data}/controllers.log; do sleep 0.05; done"],
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, (place.data / "controllers.log").read_text()
