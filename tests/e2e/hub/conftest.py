from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.kit.e2e.hubs import Hub, Shell
from tests.kit.e2e.processes import refuse_old_kubectl

ROOT = Path(__file__).parents[3]


@pytest.fixture
def fresh_hub(tmp_path: Path) -> Iterator[Hub]:
    """A hub with nothing in it but what every hub begins with."""
    refuse_old_kubectl()
    hub = Hub(tmp_path / "hub").start()
    yield hub
    assert hub.stop() == 0, hub.log


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """A hub with an edge provider, shared by the tests of a module."""
    refuse_old_kubectl()
    hub = Hub(tmp_path_factory.mktemp("hub"), "--init").start()
    yield hub
    assert hub.stop() == 0, hub.log


@pytest.fixture
def shell_at(tmp_path: Path) -> Callable[[Hub], Shell]:
    """Return what makes shells in the repository's root, with a home of their own."""

    def make(hub: Hub, folder: Path = ROOT) -> Shell:
        home = tmp_path / "home"
        home.mkdir(exist_ok=True)
        return Shell(hub.kubeconfig, home, folder)

    return make
