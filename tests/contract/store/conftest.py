from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from skerry.store.restoring import RestorableStore
from tests.kit.store.backends import KINDS, Backend
from tests.kit.store.fixtures import etcd

__all__ = ["etcd"]  # the fixture, found by its name

_PARAMS = [pytest.param(k, marks=pytest.mark.etcd) if k == "etcd" else k for k in KINDS]


def _backend(request: pytest.FixtureRequest, folder: Path) -> Backend:
    process = request.getfixturevalue("etcd") if request.param == "etcd" else None
    return Backend(request.param, folder, process)


@pytest.fixture(params=_PARAMS)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Backend:
    return _backend(request, tmp_path)


@pytest.fixture(params=[each for each in _PARAMS if each != "memory"])
def durable_backend(request: pytest.FixtureRequest, tmp_path: Path) -> Backend:
    """A backend whose data outlives the object that opened it."""
    return _backend(request, tmp_path)


@pytest.fixture
async def store(backend: Backend) -> AsyncIterator[RestorableStore]:
    opened = await backend.open()
    yield opened
    await opened.close()
