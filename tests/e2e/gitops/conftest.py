from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.e2e.hubs import Hub
from tests.kit.gitops.asking import Server
from tests.kit.gitops.objects import DEFINITIONS, definition
from tests.kit.gitops.workspaces import OFFERED, bind, create, make_workspace, offer


@pytest.fixture(scope="session")
def kube() -> Any:
    """The shapes of a kube-apiserver's answers, as they were recorded."""
    return json.loads((Path(__file__).parent / "kube-apiserver-1.32.json").read_text())


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    hub = Hub(tmp_path_factory.mktemp("hub"), "--init").start()
    yield hub
    assert hub.stop() == 0, hub.log


@pytest.fixture(scope="module")
def workspace(hub: Hub) -> Server:
    """A workspace with some forty bound kinds and fifty definitions of its own."""
    offer(make_workspace(hub, "provider"), "offered.example", OFFERED)
    server = make_workspace(hub, "shop")
    bind(server, "kubernetes", "root:compute", "kubernetes")
    bind(server, "edge", "root:espw", "edge.kcp.io")
    bind(server, "offered", "root:provider", "offered.example")
    for number in range(50):
        create(server, DEFINITIONS, definition("defined.example", f"defined{number:02}s"))
    return server
