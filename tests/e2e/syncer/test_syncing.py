"""A real hub, a real edge and a real syncer, killed and replaced in every order."""

from __future__ import annotations

import asyncio
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from skerry.api.edge import SYNCER_CONFIGS
from skerry.logic.fleet.syncing.delivery import is_delivered
from tests.kit.e2e.edges import ForeignEdge
from tests.kit.e2e.hubs import Hub
from tests.kit.e2e.places import CONFIG_MAPS, DEPLOYMENTS, Places, deployment, until

# On our hub one stream carries all watches; any other is used as Kubernetes servers are.
HUBS = pytest.mark.parametrize("flags", [(), ("--ordinary-hub",)], ids=["ours", "ordinary"])
_SKERRY = str(Path(sys.executable).with_name("skerry"))


async def begun(places: Places, *flags: str) -> None:
    places.syncer = places.new_syncer(*flags)
    await places.configure()
    await places.put(CONFIG_MAPS, "page", {"data": {"index.html": "hello"}})
    await places.put(DEPLOYMENTS, "web", deployment())
    await asyncio.to_thread(places.syncer.start)
    await places.arrives(CONFIG_MAPS, "page")
    await places.arrives(DEPLOYMENTS, "web")


@HUBS
async def test_a_workload_goes_down_its_status_comes_up_and_it_goes_again(
    tmp_path: Path, hub: Hub, flags: tuple[str, ...], edge: ForeignEdge
) -> None:
    async with Places(tmp_path, hub, edge).running() as places:
        await begun(places, *flags)
        web = await places.arrives(DEPLOYMENTS, "web")
        assert "edge.kcp.io/projected" not in (web["metadata"].get("labels") or {})
        status = {"status": {"replicas": 1, "observedGeneration": 1}}
        await places.at_edge.patch(DEPLOYMENTS, "web", status, "shop", subresource="status")
        reported = await until(
            places.in_mailbox,
            DEPLOYMENTS,
            "web",
            "shop",
            lambda o: bool(o and (o.get("status") or {}).get("replicas") == 1 and is_delivered(o)),
        )
        assert reported is not None
        await places.condition("Synced", "True")
        await places.at_edge.patch(CONFIG_MAPS, "page", {"data": {"index.html": "x"}}, "shop")
        await places.arrives(
            CONFIG_MAPS, "page", lambda o: bool(o["data"]["index.html"] == "hello")
        )
        await places.in_mailbox.delete(CONFIG_MAPS, "page", "shop")
        await places.goes(CONFIG_MAPS, "page")
        assert places.syncer.stop() == 0


@HUBS
async def test_killing_syncer_hub_and_edge_in_turn_loses_nothing(
    tmp_path: Path, flags: tuple[str, ...]
) -> None:
    async with Places(tmp_path).running() as places:
        await begun(places, *flags)
        places.syncer.stop(signal.SIGKILL)
        await places.put(CONFIG_MAPS, "page", {"data": {"index.html": "two"}})
        await asyncio.to_thread(places.syncer.start)
        await places.arrives(CONFIG_MAPS, "page", lambda o: bool(o["data"]["index.html"] == "two"))
        places.hub.stop(signal.SIGKILL)
        await places.at_edge.delete(CONFIG_MAPS, "page", "shop")
        await places.arrives(CONFIG_MAPS, "page")
        await asyncio.to_thread(places.hub.start)
        await places.put(CONFIG_MAPS, "page", {"data": {"index.html": "three"}})
        await places.arrives(
            CONFIG_MAPS, "page", lambda o: bool(o["data"]["index.html"] == "three")
        )
        places.edge.kill()
        await places.put(CONFIG_MAPS, "page", {"data": {"index.html": "four"}})
        await asyncio.to_thread(places.edge.start)
        await places.arrives(CONFIG_MAPS, "page", lambda o: bool(o["data"]["index.html"] == "four"))


@HUBS
async def test_an_edge_rebooted_without_its_hub_runs_what_it_should(
    tmp_path: Path, flags: tuple[str, ...]
) -> None:
    async with Places(tmp_path).running() as places:
        await begun(places, *flags)
        places.hub.stop(signal.SIGKILL)
        places.syncer.stop(signal.SIGKILL)
        places.edge.kill()
        shutil.rmtree(places.edge.data_dir / "store.db", ignore_errors=True)
        for file in places.edge.data_dir.glob("store.db*"):
            file.unlink()  # wiped, and its hub is away
        await asyncio.to_thread(places.edge.start)
        await asyncio.to_thread(places.syncer.start)
        await places.arrives(CONFIG_MAPS, "page")
        await places.arrives(DEPLOYMENTS, "web")


@HUBS
async def test_a_hub_restored_from_an_old_backup_deletes_nothing_and_says_so(
    tmp_path: Path, flags: tuple[str, ...], edge: ForeignEdge
) -> None:
    async with Places(tmp_path, edge=edge).running() as places:
        places.syncer = places.new_syncer(*flags)
        await places.configure()
        await asyncio.to_thread(places.syncer.start)
        backup = tmp_path / "old.backup"
        data = str(places.hub.data_dir)
        await asyncio.to_thread(
            subprocess.run,
            [_SKERRY, "backup", "--without-keys", "--data-dir", data, str(backup)],
            check=True,
        )
        await places.put(CONFIG_MAPS, "page", {"data": {"index.html": "hello"}})
        await places.arrives(CONFIG_MAPS, "page")
        places.hub.stop(signal.SIGKILL)
        for file in places.hub.data_dir.glob("store.db*"):
            file.unlink()
        await asyncio.to_thread(
            subprocess.run, [_SKERRY, "restore", "--data-dir", data, str(backup)], check=True
        )
        await asyncio.to_thread(places.hub.start)
        reported = await places.condition("HubIdentityChanged", "True")
        assert await places.names_at_edge(CONFIG_MAPS) == {"page"}
        accepted = reported["message"].rpartition("=")[2]
        note = {"metadata": {"annotations": {"edge.kcp.io/accept-store-identity": accepted}}}
        await places.in_mailbox.patch(SYNCER_CONFIGS, "the-one", note)
        await places.goes(CONFIG_MAPS, "page")


async def test_a_second_syncer_on_the_same_data_says_why_it_does_not_start(
    tmp_path: Path, hub: Hub, edge: ForeignEdge
) -> None:
    async with Places(tmp_path, hub, edge).running() as places:
        await asyncio.to_thread(places.syncer.start)
        second = await asyncio.to_thread(
            subprocess.run,
            [
                _SKERRY, "syncer", "--from-kubeconfig", str(places.hub_kubeconfig),
                "--to-kubeconfig", str(places.edge.kubeconfig),
                "--data-dir", str(places.syncer.data_dir),
            ],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert second.returncode == 1
        assert "another syncer uses the data directory" in second.stderr
