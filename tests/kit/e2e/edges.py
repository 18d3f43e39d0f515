"""The edges of these tests: a server of ours, or any cluster somebody names.

``SKERRY_E2E_EDGE=KUBECONFIG pytest tests/e2e/syncer`` runs the suite against that cluster, as the
user of its current context. Tests that must kill or wipe their edge are skipped then. The
namespace ``shop``, the syncers' Leases and what manifests brought are removed after each test.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import pytest

from skerry.api.errors import NotFound
from skerry.api.kinds import GroupVersionResource
from skerry.runtime.client import Client, Selection
from skerry.runtime.kubeconfig import connect, load
from tests.kit.e2e.processes import ServerProcess

_NAMESPACES = GroupVersionResource("", "v1", "namespaces")
_LEASES = GroupVersionResource("coordination.k8s.io", "v1", "leases")
_ROLES = GroupVersionResource("rbac.authorization.k8s.io", "v1", "clusterroles")
_BINDINGS = GroupVersionResource("rbac.authorization.k8s.io", "v1", "clusterrolebindings")
_GOING_SECONDS = 60.0


class Edge(Protocol):
    """An edge cluster as the tests use one."""

    data_dir: Path

    @property
    def kubeconfig(self) -> Path:
        """The way to it, as its administrator."""

    def start(self) -> None: ...

    def kill(self) -> None: ...


class ForeignEdge:
    """A cluster that was there before us and stays."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        self.data_dir = kubeconfig.parent

    def start(self) -> None:
        """It runs already."""

    def kill(self) -> None:
        pytest.skip("this edge is not ours to kill")

    async def clean(self) -> None:
        """Remove what a test has left."""
        client = Client(connect(load([self.kubeconfig])))
        for gvr, namespace, ours in (
            (_LEASES, "default", "skerry-syncer-"),
            (_NAMESPACES, "", "kubestellar-syncer-"),
            (_ROLES, "", "kubestellar-syncer-"),
            (_BINDINGS, "", "kubestellar-syncer-"),
        ):
            for item in (await client.list(gvr, Selection(namespace=namespace))).items:
                if item["metadata"]["name"].startswith(ours):
                    await client.delete(gvr, item["metadata"]["name"], namespace)
        with suppress(NotFound):
            async with asyncio.timeout(_GOING_SECONDS):
                await client.delete(_NAMESPACES, "shop")
                while await client.get(_NAMESPACES, "shop"):
                    await asyncio.sleep(0.2)
        await client.transport.close()


def named_edge() -> ForeignEdge | None:
    """Return the cluster that somebody names, if any."""
    named = os.environ.get("SKERRY_E2E_EDGE", "")
    return ForeignEdge(Path(named)) if named else None


def new_edge(folder: Path) -> ServerProcess | ForeignEdge:
    """Return the edge for one test alone."""
    return named_edge() or ServerProcess(folder)
