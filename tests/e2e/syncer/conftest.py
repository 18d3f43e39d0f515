from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tests.kit.e2e.edges import ForeignEdge, named_edge
from tests.kit.e2e.hubs import Hub
from tests.kit.e2e.places import ALICE_TOKEN
from tests.kit.e2e.processes import ServerProcess


@pytest.fixture(scope="package")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """One hub for all tests that do not harm it; each has a mailbox of its own. It knows Alice."""
    folder = tmp_path_factory.mktemp("hub")
    people = folder / "people.csv"
    people.write_text(f"{ALICE_TOKEN},alice,alice,\n")
    process = Hub(folder, "--init", "--token-auth-file", str(people)).start()
    yield process
    process.stop(signal.SIGKILL)


@pytest.fixture(scope="package")
def edge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForeignEdge]:
    """One edge for all tests that neither kill nor wipe it; what a test brings goes with it."""
    if (named := named_edge()) is not None:
        yield named
        return
    process = ServerProcess(tmp_path_factory.mktemp("edge"))
    process.start()
    yield ForeignEdge(process.kubeconfig)
    process.kill()
