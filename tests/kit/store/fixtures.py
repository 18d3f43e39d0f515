"""Fixtures of stores, for the test modules that import them by name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kit.store.etcd_process import EtcdProcess


@pytest.fixture(scope="session")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdProcess]:
    process = EtcdProcess(tmp_path_factory.mktemp("etcd"))
    process.start()
    yield process
    process.kill()
