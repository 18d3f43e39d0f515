from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tests.e2e.hub.hubs import Hub


@pytest.fixture(scope="package")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """One hub for all tests that do not harm it; each has a mailbox of its own."""
    process = Hub(tmp_path_factory.mktemp("hub"), "--init").start()
    yield process
    process.stop(signal.SIGKILL)
