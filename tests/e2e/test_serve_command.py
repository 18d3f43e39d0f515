"""skerry serve as a command: what it prints, keeps, refuses, and how it ends."""

from __future__ import annotations

import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.e2e import processes
from tests.kit.e2e.processes import Kubectl, ServerProcess, kubectl_version

SKERRY = Path(sys.executable).with_name("skerry")


def run_skerry(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(SKERRY), *arguments], capture_output=True, text=True, check=False, timeout=60
    )


def test_it_keeps_its_secrets_to_itself(own_server: ServerProcess) -> None:
    assert stat.S_IMODE(own_server.kubeconfig.stat().st_mode) == 0o600
    assert stat.S_IMODE(own_server.data_dir.stat().st_mode) == 0o700
    for path in (own_server.data_dir / "pki").iterdir():
        if path.suffix == ".key":
            assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_it_ends_with_zero_and_finds_everything_again(
    own_server: ServerProcess, admin: Kubectl, tmp_path: Path
) -> None:
    kubectl = Kubectl(own_server.kubeconfig, tmp_path, "default")
    kubectl("create", "configmap", "kept")
    watching = kubectl.start("get", "cm", "-w")
    assert watching.stdout is not None
    watching.stdout.readline()
    assert own_server.stop() == 0
    watching.communicate(timeout=60)
    own_server.start()
    assert kubectl("get", "cm", "kept", "-o", "name").out == "configmap/kept\n"


def test_a_taken_port_is_reported_in_one_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = run_skerry("serve", "--data-dir", str(tmp_path / "d"), "--port", str(port))
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert f"skerry serve: cannot listen on 127.0.0.1:{port}: " in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_data_folder_in_use_is_reported_in_one_sentence(own_server: ServerProcess) -> None:
    ended = run_skerry("serve", "--data-dir", str(own_server.data_dir), "--port", "0")
    assert ended.returncode == 1
    assert "skerry serve: cannot open the store: " in ended.stderr
    assert "Traceback" not in ended.stderr


def test_an_etcd_out_of_reach_is_reported_in_one_sentence(tmp_path: Path) -> None:
    ended = run_skerry(
        *("serve", "--data-dir", str(tmp_path / "d"), "--port", "0", "--store", "etcd"),
        *("--etcd-servers", "http://127.0.0.1:1"),
    )
    assert ended.returncode == 1
    assert "skerry serve: cannot open the store: " in ended.stderr
    assert "Traceback" not in ended.stderr


def test_tokens_of_a_file_are_users(tmp_path: Path, admin: Kubectl) -> None:
    tokens = tmp_path / "tokens.csv"
    tokens.write_text('open-sesame,ali,1,"thieves,forty"\n')
    audit = tmp_path / "audit.log"
    server = ServerProcess(
        tmp_path, "--token-auth-file", str(tokens), "--audit-log", str(audit), "--no-anonymous-auth"
    )
    server.start()
    try:
        kubectl = Kubectl(server.kubeconfig, tmp_path, "default")
        bare = tmp_path / "bare.kubeconfig"
        stranger = Kubectl(bare, tmp_path)
        authority = f"--certificate-authority={server.data_dir / 'pki' / 'ca.crt'}"
        stranger("config", "set-cluster", "c", f"--server={server.url}", authority)
        stranger("config", "set-context", "x", "--cluster=c")
        stranger("config", "use-context", "x")
        flags = ("--token", "open-sesame")
        assert "[thieves forty system:authenticated]" in stranger("auth", "whoami", *flags).out
        assert "ali" in stranger("get", "pods", *flags, fails=1).err
        kubectl("create", "clusterrolebinding", "b", "--clusterrole=view", "--group=forty")
        assert "No resources found" in stranger("get", "pods", *flags).err
    finally:
        server.stop()
    assert '"username":"ali"' in audit.read_text()


def test_backup_and_restore_bring_everything_back_and_make_clients_relist(
    own_server: ServerProcess, admin: Kubectl, tmp_path: Path
) -> None:
    kubectl = Kubectl(own_server.kubeconfig, tmp_path, "default")
    kubectl("create", "configmap", "kept")
    version = kubectl.json("get", "cm", "kept")["metadata"]["resourceVersion"]
    copy = tmp_path / "copy.skerry"
    passphrase = tmp_path / "passphrase"
    passphrase.write_text("open sesame\n")
    sealed = ("--passphrase-file", str(passphrase), str(copy))
    assert run_skerry("backup", "--data-dir", str(own_server.data_dir), *sealed).returncode == 0
    elsewhere = ServerProcess(tmp_path / "elsewhere")
    ended = run_skerry("restore", "--data-dir", str(elsewhere.data_dir), *sealed)
    assert ended.returncode == 0, ended.stderr
    elsewhere.start()
    try:
        restored = Kubectl(elsewhere.kubeconfig, tmp_path / "home2", "default")
        authorities = [each.data_dir / "pki" / "ca.crt" for each in (own_server, elsewhere)]
        assert authorities[0].read_bytes() == authorities[1].read_bytes()
        assert restored("get", "cm", "kept", "-o", "name").out == "configmap/kept\n"
        path = f"/api/v1/configmaps?watch=1&resourceVersion={version}&timeoutSeconds=1"
        assert '"code":410' in restored("get", "--raw", path).out
    finally:
        elsewhere.stop()


def test_flags_that_make_no_sense_are_refused() -> None:
    assert run_skerry("serve", "--port", "nothing").returncode == 2
    assert run_skerry("serve", "--store", "paper").returncode == 2
    assert "Place workloads" in run_skerry("--help").stdout
    assert run_skerry("--version").stdout.startswith("skerry, version")


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('{"clientVersion": {"gitVersion": "v1.32.4-dispatcher"}}', (1, 32)),
        ('{"clientVersion": {"gitVersion": "v1.9.0"}}', (1, 9)),
        ("", (0, 0)),
    ],
)
def test_the_version_of_kubectl_is_understood(text: str, version: tuple[int, int]) -> None:
    assert kubectl_version(text) == version
    assert (version >= processes.OLDEST_KUBECTL) == (version == (1, 32))
