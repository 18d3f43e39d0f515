from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.kit.e2e.processes import refuse_old_kubectl
from tests.kit.e2e.walkthrough import Background, Terminal

ROOT = Path(__file__).parents[3]


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """A terminal in a folder laid out as the repository's root, as far as documents use it."""
    refuse_old_kubectl()
    folder = tmp_path / "checkout"
    terminal = Terminal(folder)
    shutil.copytree(ROOT / "config", folder / "config")
    yield terminal
    terminal.close()


@pytest.fixture
def start_hub(terminal: Terminal) -> Callable[[], Background]:
    """Return what does ``kcp start`` and points ``$KUBECONFIG`` at the result."""

    def start() -> Background:
        # The port is the only liberty: several hubs are tested on one machine at a time.
        hub = terminal.background("skerry hub --data-dir .kcp --port 0")
        hub.until(r"skerry hub ready at https://")
        terminal.export(KUBECONFIG=".kcp/admin.kubeconfig")
        return hub

    return start
