from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from skerry.store.restoring import RestorableStore
from tests.contract.store.backends import KINDS, Backend
from tests.contract.store.etcd_process import EtcdProcess


@pytest.fixture(scope="session")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdProcess]:
    process = EtcdProcess(tmp_path_factory.mktemp("etcd"))
    process.start()
    yield process
    process.kill()


@pytest.fixture(
    params=[pytest.param(k, marks=pytest.mark.etcd) if k == "etcd" else k for k in KINDS]
)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Backend:
    etcd = request.getfixturevalue("etcd") if request.param == "etcd" else None
    return Backend(request.param, tmp_path, etcd)


@pytest.fixture
async def store(backend: Backend) -> AsyncIterator[RestorableStore]:
    opened = await backend.open()
    yield opened
    await opened.close()
