"""What was acknowledged survives kill -9 of the server, whatever keeps it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from skerry.api.errors import AlreadyExists
from skerry.api.kinds import GroupVersionResource
from skerry.runtime.client import Client, Selection
from skerry.runtime.kubeconfig import connect, load
from skerry.runtime.transport import TransportError
from tests.kit.e2e.processes import ServerProcess
from tests.kit.store.etcd_process import EtcdProcess

CONFIG_MAPS = GroupVersionResource("", "v1", "configmaps")
KILLS = 5
WRITERS = 8


class Load:
    """Writers that create as fast as they are answered, and remember what was acknowledged."""

    def __init__(self) -> None:
        self.acknowledged: dict[str, str] = {}
        self.wanted = 0
        self.enough = asyncio.Event()
        self.killed = False
        self._count = 0

    async def write(self, client: Client) -> None:
        """Create until the server is killed; a connection lost before that is an error."""
        while True:
            self._count += 1
            name = f"c{self._count:06}"
            obj = {"metadata": {"name": name}, "data": {"value": name * 20}}
            try:
                made = await client.create(CONFIG_MAPS, obj, "default")
            except (TransportError, OSError):
                if not self.killed:
                    raise
                # Nobody said whether this one was stored; it may be either.
                return
            except AlreadyExists:
                continue
            self.acknowledged[name] = made["metadata"]["uid"]
            if len(self.acknowledged) >= self.wanted:
                self.enough.set()


async def killed_under_load(server: ServerProcess, client: Client, load: Load) -> None:
    """Let writers write, and kill the server while they do."""
    load.wanted = len(load.acknowledged) + 200
    load.enough.clear()
    load.killed = False
    async with asyncio.TaskGroup() as tasks:
        for _ in range(WRITERS):
            tasks.create_task(load.write(client))
        await load.enough.wait()
        load.killed = True
        server.kill()


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("etcd", marks=pytest.mark.etcd)])
async def test_every_acknowledged_create_is_there_after_kill_9(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    flags: tuple[str, ...] = ()
    if kind == "etcd":
        etcd: EtcdProcess = request.getfixturevalue("etcd")
        flags = ("--store", "etcd", "--etcd-servers", etcd.url, "--etcd-prefix", "/crash/")
    server = ServerProcess(tmp_path, *flags)
    server.start()
    try:
        seen = 0
        work = Load()
        for _ in range(KILLS):
            async with connected(server) as client:
                await killed_under_load(server, client, work)
            server.start()
            async with connected(server) as client:
                listed = await client.list(CONFIG_MAPS, Selection(namespace="default"))
            found = {item["metadata"]["name"]: item["metadata"]["uid"] for item in listed.items}
            assert work.acknowledged.items() <= found.items()
            assert int(listed.resource_version) > seen, "a revision was used twice"
            seen = int(listed.resource_version)
    finally:
        server.kill()


@asynccontextmanager
async def connected(server: ServerProcess) -> AsyncIterator[Client]:
    """A client whose connections are all to the process that runs now."""
    transport = connect(load([server.kubeconfig]))
    try:
        yield Client(transport)
    finally:
        await transport.close()
