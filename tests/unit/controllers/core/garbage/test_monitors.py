"""What is looked at again when new types are served."""

from __future__ import annotations

import asyncio

from skerry.app.core_controllers import embedded_transport
from skerry.controllers.core.garbage.graph import Graph, NodeKey
from skerry.controllers.core.garbage.monitors import Monitors
from skerry.kit.clock import LoopClock
from skerry.kit.ids import SeededIds
from skerry.runtime.client import Client
from skerry.runtime.informer import InformerFactory
from tests.kit.server.harness import serving

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DEFINITION = {
    "metadata": {"name": "cars.ex.io"},
    "spec": {
        "group": "ex.io",
        "names": {"plural": "cars", "singular": "car", "kind": "Car", "listKind": "CarList"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }
        ],
    },
}


async def test_an_owner_of_a_type_that_is_seconds_old_is_looked_at_when_the_type_is_known() -> None:
    added: asyncio.Queue[NodeKey] = asyncio.Queue()
    expected = NodeKey("", "uid")
    async with serving() as server:
        ids = SeededIds(1)
        transport = embedded_transport(server.api)
        client = Client(transport, clock=LoopClock())
        factory = InformerFactory(client, ids=ids)
        monitors = Monitors(client, factory, Graph(), added.put_nowait)
        async with asyncio.TaskGroup() as tasks, asyncio.timeout(20):
            running = [tasks.create_task(monitors.run()), tasks.create_task(factory.run())]
            await monitors.wait_filled()
            monitors.expect_owner(expected)
            # Nodes are looked at again by time after half a minute, long after this gives up.
            await server.create(DEFINITIONS, DEFINITION)
            while await added.get() != expected:
                pass
            for task in running:
                task.cancel()
        await transport.close()
