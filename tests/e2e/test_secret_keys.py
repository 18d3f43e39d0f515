"""Secrets at rest, with real commands: on this machine's disk and in a real etcd."""

from __future__ import annotations

import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from skerry.kit.clock import SystemClock
from skerry.kit.ids import SystemIds
from skerry.store.base import Write
from skerry.store.open import StoreSettings, open_store
from tests.kit.e2e.processes import SKERRY, Kubectl, ServerProcess, refuse_old_kubectl
from tests.kit.store.etcd_process import EtcdProcess

PLAIN_TEXT = "c3dvcmRmaXNo"


def run_skerry(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [SKERRY, *arguments], capture_output=True, text=True, check=False, timeout=60
    )


def rotated(server: ServerProcess, command: str = "rotate") -> subprocess.CompletedProcess[str]:
    return run_skerry("secrets", command, "--data-dir", str(server.data_dir))


def kubectl_of(server: ServerProcess, home: Path) -> Kubectl:
    refuse_old_kubectl()
    return Kubectl(server.kubeconfig, home, "default")


def create_secret(kubectl: Kubectl, name: str) -> None:
    kubectl("create", "secret", "generic", name, "--from-literal=password=swordfish")


def password(kubectl: Kubectl, name: str) -> str:
    return kubectl("get", "secret", name, "-o", "jsonpath={.data.password}").out


def on_disk(server: ServerProcess) -> bytes:
    return b"".join(path.read_bytes() for path in server.data_dir.glob("store.db*"))


def test_secrets_are_encrypted_by_default_and_rotated_under_a_watch(
    own_server: ServerProcess, tmp_path: Path
) -> None:
    kubectl = kubectl_of(own_server, tmp_path)
    for name in ("one", "two"):
        create_secret(kubectl, name)
    assert PLAIN_TEXT.encode() not in on_disk(own_server)
    assert b"swordfish" not in on_disk(own_server)
    keys = own_server.data_dir / "pki" / "encryption.keys"
    assert stat.S_IMODE(keys.stat().st_mode) == 0o600
    watching = kubectl.start("get", "secrets", "-w", "-o", "name")
    assert watching.stdout is not None
    assert {watching.stdout.readline(), watching.stdout.readline()} == {
        "secret/one\n",
        "secret/two\n",
    }
    first = rotated(own_server)
    assert first.returncode == 0, first.stderr
    assert "rewrote 2 Secrets with key key-" in first.stdout
    # The watch saw both being rewritten, and nothing else changed.
    assert {watching.stdout.readline(), watching.stdout.readline()} == {
        "secret/one\n",
        "secret/two\n",
    }
    watching.terminate()
    watching.communicate()
    assert password(kubectl, "one") == PLAIN_TEXT
    dropped = rotated(own_server, "drop-old-keys")
    assert dropped.returncode == 0, dropped.stderr
    assert len([line for line in keys.read_text().splitlines() if line.startswith("key-")]) == 1
    assert own_server.stop() == 0
    own_server.start()
    assert password(kubectl, "two") == PLAIN_TEXT
    assert PLAIN_TEXT not in own_server.log
    assert "swordfish" not in own_server.log


async def test_plain_secrets_of_the_version_before_are_readable_and_become_encrypted(
    tmp_path: Path,
) -> None:
    server = ServerProcess(tmp_path)
    server.start()
    kubectl = kubectl_of(server, tmp_path)
    create_secret(kubectl, "old")
    server.stop()
    # As the version before left it: no record of keys, no key, values as they are.
    settings = StoreSettings(path=server.data_dir / "store.db")
    store = await open_store(settings, SystemClock(), SystemIds())
    (record,) = (await store.range("/-/keys/")).entries
    await store.commit([Write(record.key, None)])
    (sealed,) = (await store.range("/core/secrets/")).entries
    uid = "b6b5f8f5-9b66-4a43-92c2-5e6b3f1f0001"
    plain = (
        '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"old","namespace":"default",'
        f'"uid":"{uid}","creationTimestamp":"2026-01-01T00:00:00Z"}},"type":"Opaque",'
        f'"data":{{"password":"{PLAIN_TEXT}"}}}}'
    ).encode()
    offset = plain.index(b'"metadata":{') + len(b'"metadata":{')
    await store.commit([Write(sealed.key, offset.to_bytes(2, "big") + plain)])
    await store.close()
    (server.data_dir / "pki" / "encryption.keys").unlink()
    server.data_dir.chmod(0o755)
    server.start()
    try:
        assert password(kubectl, "old") == PLAIN_TEXT
        assert stat.S_IMODE(server.data_dir.stat().st_mode) == 0o700
        server.stop()
        store = await open_store(settings, SystemClock(), SystemIds())
        (kept,) = (await store.range("/core/secrets/")).entries
        await store.close()
        assert kept.value.startswith(b"skerry:enc:aesgcm:v1:key-")
    finally:
        server.kill()


@pytest.mark.etcd
def test_hubs_on_one_etcd_share_their_key_and_rotate_together(
    etcd: EtcdProcess, tmp_path: Path
) -> None:
    flags = ("--store", "etcd", "--etcd-servers", etcd.url, "--etcd-prefix", "/secret-keys/")
    one, two = (ServerProcess(tmp_path / name, *flags) for name in ("one", "two"))
    one.start()
    try:
        alone = run_skerry("serve", "--data-dir", str(two.data_dir), "--port", "0", *flags)
        assert alone.returncode == 1
        assert "are encrypted with key key-" in alone.stderr
        shutil.rmtree(two.data_dir)
        two.data_dir.mkdir()
        shutil.copytree(one.data_dir / "pki", two.data_dir / "pki")
        two.start()
        at_one, at_two = kubectl_of(one, tmp_path / "h1"), kubectl_of(two, tmp_path / "h2")
        create_secret(at_one, "shared")
        assert password(at_two, "shared") == PLAIN_TEXT
        # The first step makes the key; it is not used before every hub has it.
        begun = rotated(one)
        assert begun.returncode == 1
        assert "added key key-" in begun.stdout
        assert f"is not known to {two.url}; give every hub the file" in begun.stderr
        create_secret(at_one, "meanwhile")
        assert password(at_two, "meanwhile") == PLAIN_TEXT
        name = "pki/encryption.keys"
        shutil.copy(one.data_dir / name, two.data_dir / name)
        assert rotated(two, "status").returncode == 0
        _until_rotated(one)
        create_secret(at_two, "after")
        for secret in ("shared", "meanwhile", "after"):
            assert password(at_one, secret) == PLAIN_TEXT
            assert password(at_two, secret) == PLAIN_TEXT
        dropped = rotated(one, "drop-old-keys")
        assert dropped.returncode == 0, dropped.stderr
        _rotate_authority(one, two, at_two, tmp_path)
        # The other hub still has the old key in its file, and starts; it does not need it.
        assert two.stop() == 0
        two.start()
        assert password(at_two, "shared") == PLAIN_TEXT
    finally:
        one.stop()
        two.stop()


def _rotate_authority(one: ServerProcess, two: ServerProcess, at_two: Kubectl, tmp: Path) -> None:
    """Rotate the authority of two hubs, by commands at the first."""
    before = tmp / "before.kubeconfig"
    shutil.copy(two.kubeconfig, before)
    old = Kubectl(before, tmp / "h3")
    command = ("certificates", "rotate-ca", "--data-dir", str(one.data_dir))
    begun = run_skerry(*command)
    assert begun.returncode == 1
    assert f"is not known to {two.url}" in begun.stderr
    for name in ("ca.crt", "ca.key"):
        shutil.copy(one.data_dir / "pki" / name, two.data_dir / "pki" / name)
    _until("is not known to", *command)
    # Whoever trusts the old authority alone trusts both hubs, and so does whoever has the new.
    assert old("get", "namespace", "default", "-o", "name").out == "namespace/default\n"
    at_two.until("yes", "auth", "can-i", "get", "nodes")
    _until("does not use", *command, "--finish")
    assert "unknown authority" in old("get", "namespaces", fails=1).err
    at_two("get", "namespaces")


def _until(wanted: str, *command: str) -> None:
    """Repeat a command while it ends with the reason *wanted*."""
    for _ in range(40):
        ended = run_skerry(*command)
        if ended.returncode == 0:
            return
        assert wanted in ended.stderr, ended.stderr
    raise AssertionError(ended.stderr)


def _until_rotated(server: ServerProcess) -> None:
    """Rotate as soon as the other hub has reported that it has read its file again."""
    _until("is not known to", "secrets", "rotate", "--data-dir", str(server.data_dir))
