from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tests.kit.e2e.hubs import Hub
from tests.kit.e2e.places import ALICE_TOKEN


@pytest.fixture(scope="package")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """One hub for all tests that do not harm it; each has a mailbox of its own. It knows Alice."""
    folder = tmp_path_factory.mktemp("hub")
    people = folder / "people.csv"
    people.write_text(f"{ALICE_TOKEN},alice,alice,\n")
    process = Hub(folder, "--init", "--token-auth-file", str(people)).start()
    yield process
    process.stop(signal.SIGKILL)
