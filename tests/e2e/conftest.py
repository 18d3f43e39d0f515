from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.e2e.processes import Kubectl, ServerProcess, refuse_old_kubectl
from tests.kit.store.etcd_process import EtcdProcess


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One server for all tests of a worker that do not stop it."""
    process = ServerProcess(tmp_path_factory.mktemp("server"))
    process.start()
    yield process
    assert process.stop() == 0


@pytest.fixture(scope="session")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdProcess]:
    process = EtcdProcess(tmp_path_factory.mktemp("etcd"))
    process.start()
    yield process
    process.kill()


@pytest.fixture(scope="session")
def admin(server: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    """kubectl as the administrator, in no namespace in particular."""
    refuse_old_kubectl()
    return Kubectl(server.kubeconfig, tmp_path_factory.mktemp("home"))


@pytest.fixture
def namespace(request: pytest.FixtureRequest) -> str:
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower())
    return name[:60].strip("-")


@pytest.fixture
def kubectl(admin: Kubectl, namespace: str) -> Kubectl:
    """kubectl as the administrator, in a namespace only this test uses."""
    admin("create", "namespace", namespace)
    return admin.within(namespace)


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[ServerProcess]:
    """A server that a test may stop, kill and start again."""
    process = ServerProcess(tmp_path)
    process.start()
    yield process
    process.kill()
