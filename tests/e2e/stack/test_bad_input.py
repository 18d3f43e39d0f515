"""What people mistype: a sentence, an exit code, and nothing made or removed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import yaml

from tests.kit.e2e.hubs import Hub
from tests.kit.e2e.processes import SKERRY
from tests.kit.ports import free_ports


def _run(folder: Path, *words: str, within: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*within, SKERRY, *words], cwd=folder, capture_output=True, text=True, timeout=120,
        check=False, env={"PATH": os.environ["PATH"], "HOME": str(folder)},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        ("demo --ports 80 22082 99999", 2, "99999 is not in the range 1<=x<=65535"),
        ("demo --ports 0 22082 22083", 2, "0 is not in the range 1<=x<=65535"),
        ("demo --ports 22081 22082", 2, "'--ports' requires 3 arguments"),
        ("demo --ports 22081 x 22082", 2, "'x' is not a valid integer range"),
        ("demo --ports 22081 22082 22081", 2, "port 22081 is named twice"),
        ("demo --port 22082 --ports 22081 22082 22083", 2, "port 22082 is named twice"),
        ("demo --data-dir /proc/x", 1, "cannot keep data in /proc/x: No such file or directory"),
        ("up --detach --data-dir /proc/x", 1, "cannot keep data in /proc/x: No such file"),
        ("up --detach --data-dir file", 2, "Directory 'file' is a file"),
        ("up --detach --data-dir file/below", 1, "cannot keep data in"),
        ("hub --data-dir /proc/x", 1, "cannot keep data in /proc/x: No such file or directory"),
        ("serve --data-dir /proc/x", 1, "cannot keep data in /proc/x: No such file or directory"),
        ("up --detach --data-dir d --port x", 1, "Invalid value for '--port': 'x'"),
        ("up --detach --data-dir d --nonsense", 1, "No such option '--nonsense'"),
        ("down --data-dir nothere", 1, "there is no folder nothere"),
        ("status --data-dir nothere", 1, ""),
        ("edge create Bad_Name", 1, "edge name 'Bad_Name': want a lower-case RFC 1123 label"),
        ("edge create -- -x", 1, "edge name '-x': want a lower-case RFC 1123 label"),
        (f"edge create {'a' * 49}", 1, "RFC 1123 label of at most 48 characters"),
        ("edge create ../up", 1, "want a name, not a path"),
        ("edge create a.b", 1, "edge name 'a.b': want a lower-case RFC 1123 label"),
        ("edge create x --data-dir /proc/x", 1, "cannot be kept in /proc/x: No such file"),
        ("edge delete nothere", 1, "there is no edge nothere; skerry edge list shows those"),
        ("edge delete .", 1, "want a name, not a path"),
        ("edge stop nothere", 1, "there is no edge nothere"),
        ("edge start nothere", 1, "there is no edge nothere"),
        ("edge kubeconfig nothere", 1, "there is no edge nothere"),
        ("controllers --kubeconfig nofile", 1, "kubeconfig nofile: there is no such file"),
        ("controllers --espw-kubeconfig nofile", 1, "there is no such file"),
        ("controllers", 1, "/.kube/config: there is no such file"),
        ("controllers --kubeconfig file", 1, "kubeconfig file: "),
        ("explain placement x --kubeconfig nofile", 1, "nofile: there is no such file"),
        ("syncer --from-kubeconfig nofile --data-dir s", 2, "File 'nofile' does not exist"),
    ],
)  # fmt: skip
def test_a_mistake_is_answered_by_a_sentence(
    tmp_path: Path, words: str, code: int, expected: str
) -> None:
    (tmp_path / "file").write_text("just text")
    done = _run(tmp_path, *words.split())
    assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
    assert expected in done.stderr
    left = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")}
    assert not {name for name in left if name.startswith((".skerry", "s"))}, "nothing was made"


def test_a_port_that_takes_rights_is_not_called_taken(tmp_path: Path) -> None:
    """Root of a namespace of its own is nobody in particular to the machine's ports."""
    within = ["unshare", "-Ur"]
    if subprocess.run([*within, "true"], check=False).returncode:
        pytest.skip("no user namespaces here")
    if Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text().strip() == "0":
        pytest.skip("every port is everybody's here")
    ports = [str(port) for port in free_ports(2)]
    done = _run(tmp_path, "demo", "--once", "--ports", "80", *ports, within=within)
    assert done.returncode == 1
    assert "port 80 needs rights that you do not have here" in done.stderr


@pytest.mark.parametrize(
    ("options", "fill", "expected"),
    [("ro", "", "Read-only file"), ("size=256k", "cat /dev/zero > disk/full", "o space")],
    ids=["read-only", "full"],
)
def test_a_disk_that_takes_nothing_is_named(
    tmp_path: Path, options: str, fill: str, expected: str
) -> None:
    if subprocess.run(["unshare", "-Urm", "true"], check=False).returncode:
        pytest.skip("no mount namespaces here")
    (tmp_path / "disk").mkdir()
    script = f"""
        mount -t tmpfs -o {options} tmpfs disk
        {fill or ":"} 2>/dev/null || true
        exec {SKERRY} up --detach --data-dir disk/data --port {free_ports(1)[0]}
    """
    done = subprocess.run(
        ["unshare", "-Urm", "bash", "-c", script], cwd=tmp_path, capture_output=True,
        text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout
    assert done.stderr.startswith("skerry up: "), done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert expected in done.stderr


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    found = Hub(tmp_path_factory.mktemp("hub"), "--init").start()
    yield found
    found.stop()


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("", "", "both ends lead to https://127.0.0.1:"),
        ("/clusters/root", "/clusters/root:compute", "are the same server"),
        ("127.0.0.1", "localhost", "are the same server"),
    ],
    ids=["the same file", "another workspace", "another address"],
)
def test_a_syncer_does_not_take_the_hub_for_its_edge(
    hub: Hub, tmp_path: Path, old: str, new: str, expected: str
) -> None:
    config = yaml.safe_load(hub.kubeconfig.read_text())
    for each in config["clusters"]:
        each["cluster"]["server"] = each["cluster"]["server"].replace(old, new)
    (tmp_path / "to").write_text(yaml.safe_dump(config))
    done = _run(
        tmp_path, "syncer", "--from-kubeconfig", str(hub.kubeconfig), "--to-kubeconfig", "to",
        "--sync-target-name", "x", "--data-dir", "data",
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert done.stderr.startswith("skerry syncer: ")
    assert expected in done.stderr
    assert "--from-kubeconfig is the hub's, --to-kubeconfig the edge's" in done.stderr
    assert not (tmp_path / "data").exists()


def test_logs_that_are_to_be_json_are_json_throughout(tmp_path: Path) -> None:
    data = tmp_path / "data"
    flags = ["--data-dir", str(data), "--port", str(free_ports(1)[0])]
    json_flags = ["--log-format", "json"]
    started = _run(tmp_path, "up", "--init", "--detach", *flags, *json_flags)
    try:
        assert started.returncode == 0, started.stderr
        ready, *_ = started.stdout.splitlines()
        assert "skerry up ready at https://" in json.loads(ready)["msg"]
        # What supervises them speaks of an end in the same form.
        server, _ = json.loads((data / "controllers.json").read_text())["server"]
        os.kill(server, signal.SIGKILL)
        _until_other(data / "controllers.json", server)
        refused = _run(tmp_path, "hub", *flags, *json_flags)
        assert refused.returncode == 1
        assert "skerry hub: " in json.loads(refused.stderr.splitlines()[-1])["msg"]
        again = _run(tmp_path, "up", "--detach", "--data-dir", str(tmp_path / "other"),
                     "--bind-address", "203.0.113.1", *json_flags)  # fmt: skip
        assert again.returncode == 1
        message = json.loads(again.stderr)["msg"]
        assert message.startswith("skerry up: the hub did not start: skerry hub: cannot listen on")
    finally:
        _run(tmp_path, "down", "--data-dir", str(data))
    logs = [(data / name).read_text() for name in ("hub.log", "controllers.log")]
    messages = [json.loads(line)["msg"] for log in logs for line in log.splitlines()]
    assert any(message.startswith("skerry hub ready at") for message in messages)
    assert any(message.startswith("supervisor: exit code -9") for message in messages)


def _until_other(record: Path, pid: int) -> None:
    """Wait until a record names another process; files tell nobody when they change."""
    check = f"import json, sys; sys.exit(json.load(open({str(record)!r}))['server'][0] == {pid})"
    waiting = f"until {sys.executable} -c {check!r} 2>/dev/null; do sleep 0.1; done"
    assert subprocess.run(["timeout", "120", "bash", "-c", waiting], check=False).returncode == 0
