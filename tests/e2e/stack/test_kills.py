"""kill -9 of anything, at any time, in any order, while a workload changes."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from skerry.api.edge import API_VERSION, STATUS_QUERIES, STATUS_SUMMARIES
from skerry.api.errors import ApiError
from skerry.api.kinds import GroupVersionResource
from skerry.app.scenario import Ports, Scenario
from skerry.app.scenario_objects import COMMON
from skerry.app.supervised import Supervised
from skerry.runtime import kubeconfig
from skerry.runtime.client import Client
from skerry.runtime.kubeconfig import Overrides
from skerry.runtime.transport import TransportError
from tests.kit.ports import free_ports

pytestmark = pytest.mark.long

CONFIG_MAPS = GroupVersionResource("", "v1", "configmaps")
# Every part once.
KILLS = int(os.environ.get("SKERRY_KILLS", "6"))
_PATIENCE_SECONDS = 90.0


class World:
    """The example scenario with its common workload, every part supervised."""

    def __init__(self, scenario: Scenario, client: Client) -> None:
        self._scenario = scenario
        self._client = client
        self.workload = client.at("", f"root:my-org:{COMMON.workspace}")

    def victims(self) -> dict[str, Supervised]:
        """Return whatever can be killed; an edge's server and its node's agent are one."""
        s = self._scenario
        hub = s.stack.data_dir
        return {
            "hub": Supervised(hub / "hub.json", hub / "hub.log"),
            "controllers": Supervised(hub / "controllers.json", hub / "controllers.log"),
            "syncer of florin": s.edge("florin").syncer.process,
            "syncer of guilder": s.edge("guilder").syncer.process,
            "edge florin": s.edge("florin").process,
            "edge guilder": s.edge("guilder").process,
        }

    def kill(self, name: str) -> None:
        if pid := self.victims()[name].pid:
            os.kill(pid, signal.SIGKILL)

    async def write(self, text: str) -> None:
        """Change the page; an unanswered change is made again until it is acknowledged."""
        patch = {"data": {"index.html": text}}

        async def written() -> bool:
            await self.workload.patch(CONFIG_MAPS, "httpd-htdocs", patch, COMMON.namespace)
            return True

        await eventually(written)

    async def served(self, text: str) -> None:
        """Wait until both edges serve *text*."""
        ports = self._scenario.ports
        for port in (ports.florin_common, ports.guilder_common):

            async def right(port: int = port) -> bool:
                return await asyncio.to_thread(_fetched, port) == text

            await eventually(right)

    async def summarised(self) -> None:
        """Wait until the hub says that both edges are healthy."""
        name = f"{COMMON.placement}-deployments-{COMMON.deployment}"

        async def healthy() -> bool:
            found = await self.workload.get(STATUS_SUMMARIES, name, COMMON.namespace)
            return bool(found["healthy"] == found["destinations"] == 2)

        await eventually(healthy)

    async def ask(self) -> None:
        """Ask how many edges serve the workload."""
        spec = {
            "from": {"apiGroup": "apps", "resources": ["deployments"]},
            "filter": 'report.healthy == "True"',
            "aggregates": [{"name": "edges", "function": "Count"}],
        }
        metadata = {"name": "serving"}
        obj = {"apiVersion": API_VERSION, "kind": "StatusQuery", "metadata": metadata, "spec": spec}
        await self.workload.create(STATUS_QUERIES, obj)

    async def answered(self) -> None:
        """Wait until the answer is that both do, and that nobody is missing in it."""

        async def right() -> bool:
            status = (await self.workload.get(STATUS_QUERIES, "serving")).get("status") or {}
            found = {each["type"]: each["status"] for each in status.get("conditions") or ()}
            return found.get("Complete") == "True" and status["matched"] == 2

        await eventually(right)


async def eventually(holds: Callable[[], Any]) -> None:
    """Ask until the answer is yes; whoever is asked may be dead just now."""
    async with asyncio.timeout(_PATIENCE_SECONDS):
        while True:
            try:
                if await holds():
                    return
            except (ApiError, TransportError, urllib.error.URLError, OSError):
                pass
            await asyncio.sleep(0.1)


def _fetched(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5) as answer:
        return str(answer.read().decode())


@asynccontextmanager
async def playing(folder: Path) -> AsyncIterator[World]:
    scenario = Scenario(folder, Ports(*free_ports(3)))
    try:
        for _, stop in scenario.stops()[:5]:
            await stop()
        base = kubeconfig.load([scenario.stack.kubeconfig], Overrides(context="base"))
        transport = kubeconfig.connect(base)
        try:
            yield World(scenario, Client(transport))
        finally:
            await transport.close()
    finally:
        await scenario.close()


@pytest.mark.parametrize("seed", [int(os.environ.get("SKERRY_KILL_SEED", "1"))])
async def test_whatever_is_killed_in_whichever_order_every_change_arrives(
    tmp_path: Path, seed: int
) -> None:
    choices = random.Random(seed)
    async with playing(tmp_path) as world:
        await world.write("0")
        await world.ask()
        await world.served("0")
        await world.answered()
        # Everybody once, and some twice, in an order of the seed's.
        order = [*world.victims(), *choices.choices(list(world.victims()), k=KILLS)][:KILLS]
        choices.shuffle(order)
        for number, name in enumerate(order, 1):
            world.kill(name)
            if choices.random() < 0.5:
                await asyncio.sleep(choices.random())
            await world.write(str(number))
        await world.served(str(len(order)))
        await world.summarised()
        await world.answered()
