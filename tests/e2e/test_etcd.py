"""The same server over a real etcd, and several of them over one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.e2e.manifests import config_map, definition, deployment
from tests.kit.e2e.processes import Kubectl, ServerProcess, refuse_old_kubectl
from tests.kit.store.etcd_process import EtcdProcess

pytestmark = pytest.mark.etcd


@pytest.fixture(scope="module")
def replicas(
    etcd: EtcdProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[ServerProcess]]:
    """Two servers over one etcd, sharing their keys as replicas do."""
    refuse_old_kubectl()
    folder = tmp_path_factory.mktemp("replicas")
    # A worker may come to this module twice, with other tests between; etcd it starts once.
    prefix = f"/{folder.name}/"
    flags = ("--store", "etcd", "--etcd-servers", etcd.url, "--etcd-prefix", prefix)
    servers = [ServerProcess(folder / "one", *flags), ServerProcess(folder / "two", *flags)]
    servers[0].start()
    # Replicas trust the same authority.
    (folder / "two" / "data").mkdir(parents=True)
    (servers[0].data_dir / "pki").rename(folder / "pki")
    for server in servers:
        (server.data_dir / "pki").symlink_to(folder / "pki")
    servers[1].start()
    yield servers
    for server in servers:
        assert server.stop() == 0


@pytest.fixture
def pair(replicas: list[ServerProcess], tmp_path: Path) -> tuple[Kubectl, Kubectl]:
    one, two = (
        Kubectl(server.kubeconfig, tmp_path / str(number), "default")
        for number, server in enumerate(replicas)
    )
    return one, two


def test_what_one_server_writes_the_other_serves(pair: tuple[Kubectl, Kubectl]) -> None:
    one, two = pair
    one("apply", "-f", "-", stdin=[deployment("web"), config_map("c", a="1")])
    assert two("get", "deployment", "web", "-o", "name").out == "deployment.apps/web\n"
    two("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=config_map("c", a="2"))
    assert one("get", "cm", "c", "-o", "jsonpath={.data.a}").out == "2"
    two("scale", "deployment", "web", "--replicas=7")
    assert one.json("get", "deployment", "web")["spec"]["replicas"] == 7
    two("delete", "deployment", "web")
    assert one("get", "deployment", "web", "--ignore-not-found").out == ""


def test_a_watch_on_one_server_sees_the_writes_of_the_other(pair: tuple[Kubectl, Kubectl]) -> None:
    one, two = pair
    two("create", "secret", "generic", "before")
    watching = one.start("get", "secrets", "-w", "-o", "name")
    assert watching.stdout is not None
    assert watching.stdout.readline() == "secret/before\n"
    two("create", "secret", "generic", "meanwhile")
    assert watching.stdout.readline() == "secret/meanwhile\n"
    watching.terminate()
    watching.communicate()


def test_a_definition_made_at_one_server_is_served_by_the_other(
    pair: tuple[Kubectl, Kubectl],
) -> None:
    one, two = pair
    group = "replicated.example.org"
    one("create", "-f", "-", stdin=definition(group, "tugs", "Tug"))
    one.until("tugs", "api-resources", "--api-group", group, "-o", "name")
    tug = {
        "apiVersion": f"{group}/v1",
        "kind": "Tug",
        "metadata": {"name": "t"},
        "spec": {"size": 1},
    }
    two.until("tugs", "api-resources", "--api-group", group, "-o", "name")
    two("create", "-f", "-", stdin=tug)
    assert one.rows("get", "tugs")[1] == ["t", "1", "red"]
    one("delete", "crd", f"tugs.{group}", "--timeout=60s")
    assert "could not find" in two("get", "--raw", f"/apis/{group}/v1/tugs", fails=1).err


def test_a_namespace_is_emptied_and_owners_take_dependents_along(
    pair: tuple[Kubectl, Kubectl],
) -> None:
    one, two = pair
    one("create", "namespace", "going")
    two.within("going")("create", "configmap", "c")
    one("delete", "namespace", "going", "--timeout=60s")
    assert two("get", "namespace", "going", "--ignore-not-found").out == ""


def test_a_server_outlives_its_etcd(tmp_path: Path) -> None:
    refuse_old_kubectl()
    etcd = EtcdProcess(tmp_path / "etcd")
    etcd.start()
    server = ServerProcess(tmp_path, "--store", "etcd", "--etcd-servers", etcd.url)
    server.start()
    kubectl = Kubectl(server.kubeconfig, tmp_path, "default")
    try:
        kubectl("create", "configmap", "before")
        etcd.kill()
        result = kubectl("create", "configmap", "meanwhile", fails=1).err
        assert "etcd is out of reach" in result
        etcd.start()
        kubectl.again("create", "configmap", "after")
        names = kubectl("get", "cm", "-o", "name").out.split()
        assert {"configmap/before", "configmap/after"} <= set(names)
        # What is written now reaches whoever watches: the server has taken up its watch again.
        kubectl("create", "namespace", "later")
        kubectl.until("later             kube-root-ca.crt", "get", "cm", "--all-namespaces")
    finally:
        server.stop()
        etcd.kill()
