"""Hubs of one etcd agree about edges: what one issues or revokes counts at the others."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from skerry.store.open import StoreSettings
from tests.kit.server.edges import CONFIGS, Edge, EdgeHub, ended, new_key, revoke, running_edge_hub
from tests.kit.store.etcd_process import EtcdProcess

pytestmark = pytest.mark.etcd


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[StoreSettings]:
    process = EtcdProcess(tmp_path / "etcd")
    process.start()
    yield StoreSettings(kind="etcd", etcd_servers=(process.url,))
    process.kill()


async def follows(edge: Edge, hub: EdgeHub) -> None:
    """Wait until *hub* knows what was written through another."""
    store, dispatcher = hub.running.api.store, hub.running.api.dispatcher
    async with asyncio.timeout(60):
        await dispatcher.reached(await store.revision())
    edge.hub = hub


async def test_an_edge_is_the_same_at_every_hub_and_revoked_at_all(
    tmp_path: Path, etcd: StoreSettings
) -> None:
    async with running_edge_hub(tmp_path / "one", etcd) as one:
        shutil.copytree(tmp_path / "one" / "pki", tmp_path / "two" / "pki")
        async with running_edge_hub(tmp_path / "two", etcd) as two:
            edge = await one.edge()
            token = await edge.credential()
            await follows(edge, two)
            asked = await edge.request(token)
            assert asked.status == 201, asked.body
            edge.take(asked.body)
            await follows(edge, one)
            assert (await edge.request(token, key=new_key())).status == 403, "it is redeemed"
            assert (await edge.ask("GET", CONFIGS)).status == 200
            at_one = await edge.watch(f"{CONFIGS}?watch=true")
            edge.hub = two
            at_two = await edge.watch(f"{CONFIGS}?watch=true")
            await revoke(one, edge)
            await ended(at_one)
            await ended(at_two)
            await follows(edge, two)
            assert (await edge.ask("GET", CONFIGS)).status == 401
            assert (await edge.request(key=new_key())).status == 401
