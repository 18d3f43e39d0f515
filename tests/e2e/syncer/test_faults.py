"""What edges live through, with real processes. Kills are in ``test_syncing``."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from skerry.api.edge import SYNCER_CONFIGS
from skerry.api.kcp.resources import SYNC_TARGETS
from skerry.api.kinds import GroupVersionResource
from skerry.logic.fleet.syncing.delivery import is_delivered
from tests.kit.e2e.edges import ForeignEdge
from tests.kit.e2e.hubs import Hub
from tests.kit.e2e.places import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    IMW,
    NAMESPACES,
    SPEC,
    Places,
    begun,
    page,
    says,
    until,
)

LEASES = GroupVersionResource("coordination.k8s.io", "v1", "leases")
QUOTAS = GroupVersionResource("", "v1", "resourcequotas")
SECRETS = GroupVersionResource("", "v1", "secrets")
_SKERRY = str(Path(sys.executable).with_name("skerry"))
_SKEWED = (sys.executable, "-m", "tests.e2e.syncer.skewed")
DAY = 24 * 3600


def wipe(folder: Path) -> None:
    """Remove a server's store; its certificates stay."""
    for file in folder.glob("store.db*"):
        file.unlink()


async def test_an_edge_wiped_while_its_syncer_runs_gets_everything_again(
    tmp_path: Path, hub: Hub
) -> None:
    async with Places(tmp_path, hub).running() as places:
        places.syncer = places.new_syncer("--heartbeat-seconds", "1")
        await begun(places)
        places.edge.kill()
        wipe(places.edge.data_dir)
        await asyncio.to_thread(places.edge.start)
        await places.arrives(CONFIG_MAPS, "page")
        await places.arrives(DEPLOYMENTS, "web")
        await places.put(CONFIG_MAPS, "page", page("after"))
        await says(places, "after")
        await places.condition("Synced", "True")


async def test_a_hub_replaced_by_an_empty_one_deletes_nothing_until_a_person_agrees(
    tmp_path: Path, edge: ForeignEdge
) -> None:
    async with Places(tmp_path, edge=edge).running() as places:
        await begun(places)
        places.hub.stop(signal.SIGKILL)
        wipe(places.hub.data_dir)
        await asyncio.to_thread(places.hub.start)
        # It knows neither the mailbox nor who we are: the edge goes on, and repairs.
        await places.at_edge.delete(CONFIG_MAPS, "page", "shop")
        await places.arrives(CONFIG_MAPS, "page")
        # Somebody makes the edge known again; its mailbox is empty.
        await places.join()
        await places.configure()
        places.syncer.stop()
        await asyncio.to_thread(places.syncer.start)
        reported = await places.condition("HubIdentityChanged", "True")
        assert await places.names_at_edge(CONFIG_MAPS) == {"page"}
        await places.put(CONFIG_MAPS, "other", page("new"))
        await places.arrives(CONFIG_MAPS, "other")
        accepted = reported["message"].rpartition("=")[2]
        note = {"metadata": {"annotations": {"edge.kcp.io/accept-store-identity": accepted}}}
        await places.in_mailbox.patch(SYNCER_CONFIGS, "the-one", note)
        await places.goes(CONFIG_MAPS, "page")
        assert await places.names_at_edge(CONFIG_MAPS) == {"other"}


async def test_of_two_syncers_with_data_of_their_own_one_works_and_the_other_takes_over(
    tmp_path: Path, hub: Hub, edge: ForeignEdge
) -> None:
    async with Places(tmp_path, hub, edge).running() as places:
        await begun(places)
        (tmp_path / "second").mkdir()
        await places.bootstrap()  # one credential is for one key
        first, second = places.syncer, places.new_syncer()
        second.data_dir = tmp_path / "second" / "syncer"
        second.log_file = tmp_path / "second" / "syncer.log"
        second.command[second.command.index("--data-dir") + 1] = str(second.data_dir)
        await asyncio.to_thread(second.start)
        try:
            lease = await places.at_edge.get(LEASES, "skerry-syncer-florin", "default")
            holder = lease["spec"]["holderIdentity"]
            assert holder == (first.data_dir / "identity").read_text()
            await places.put(CONFIG_MAPS, "page", page("two"))
            await says(places, "two")
            assert first.stop() == 0
            await places.put(CONFIG_MAPS, "page", page("three"))
            await says(places, "three")
            # What the other one placed is recognised, and goes when it is no longer wanted.
            await places.condition("Synced", "True")
            await places.in_mailbox.delete(CONFIG_MAPS, "page", "shop")
            await places.goes(CONFIG_MAPS, "page")
        finally:
            second.stop(signal.SIGKILL)


async def test_an_object_the_edge_rejects_for_ever_is_named_and_holds_nothing_up(
    tmp_path: Path, hub: Hub, edge: ForeignEdge
) -> None:
    async with Places(tmp_path, hub, edge).running() as places:
        quota = {"metadata": {"name": "none"}, "spec": {"hard": {"count/secrets": "0"}}}
        await places.at_edge.create(NAMESPACES, {"metadata": {"name": "shop"}})
        await places.at_edge.create(QUOTAS, quota, "shop")
        scope = SPEC["namespaceScope"]
        secrets = {"group": "", "resource": "secrets", "apiVersion": "v1"}
        await begun(places)
        wider = {"namespaceScope": {**scope, "resources": [*scope["resources"], secrets]}}
        await places.configure(wider)
        await places.put(SECRETS, "key", {"data": {}})
        reported = await places.condition("secrets/shop.key", "False")
        assert reported["reason"] == "Rejected"
        assert "quota" in reported["message"]
        for text in ("two", "three"):
            await places.put(CONFIG_MAPS, "page", page(text))
            await says(places, text)
        # Once the edge thinks better of it, it arrives.
        await places.at_edge.delete(QUOTAS, "none", "shop")
        await places.arrives(SECRETS, "key")
        await places.condition("Synced", "True")


async def test_ten_megabytes_of_objects_arrive_and_come_back_without_the_hub(
    tmp_path: Path,
) -> None:
    async with Places(tmp_path).running() as places:
        await places.configure()
        large = {"data": {"blob": "0123456789abcdef" * 57_600}}  # 900 kB
        names = {f"large-{number:02}" for number in range(11)}
        for name in sorted(names):
            await places.put(CONFIG_MAPS, name, large)
        await asyncio.to_thread(places.syncer.start)
        for name in sorted(names):
            await places.arrives(CONFIG_MAPS, name, lambda o: bool(o["data"] == large["data"]))
        await places.condition("Synced", "True")
        places.syncer.stop(signal.SIGKILL)
        places.hub.stop(signal.SIGKILL)
        places.edge.kill()
        wipe(places.edge.data_dir)
        await asyncio.to_thread(places.edge.start)
        await asyncio.to_thread(places.syncer.start)
        for name in sorted(names):
            await places.arrives(CONFIG_MAPS, name, lambda o: bool(o["data"] == large["data"]))


async def test_a_while_without_the_hub_changes_nothing_and_the_rest_follows(
    tmp_path: Path, edge: ForeignEdge
) -> None:
    # An hour of it, in virtual time: ``tests/sim/test_syncer_faults.py``.
    async with Places(tmp_path, edge=edge).running() as places:
        await begun(places)
        places.hub.stop(signal.SIGKILL)
        for _ in range(3):
            await asyncio.sleep(4)  # real time is what this is about
            await places.at_edge.patch(CONFIG_MAPS, "page", page("drifted"), "shop")
            await says(places, "hello")
            assert await places.names_at_edge(DEPLOYMENTS) == {"web"}
        await asyncio.to_thread(places.hub.start)
        await places.put(CONFIG_MAPS, "page", page("after"))
        await places.in_mailbox.delete(DEPLOYMENTS, "web", "shop")
        await says(places, "after")
        await places.goes(DEPLOYMENTS, "web")
        await places.condition("Synced", "True")


@contextmanager
def mailbox_controller(hub: Hub, folder: Path) -> Iterator[None]:
    """Have heartbeats passed on, as ``skerry controllers`` does."""
    with (folder / "controllers.log").open("w") as log:
        process = subprocess.Popen(
            [_SKERRY, "controllers", "--kubeconfig", str(hub.kubeconfig),
             "--only", "mailbox", "--espw-path", "root:espw"],
            stdout=log, stderr=log,
        )  # fmt: skip
        try:
            yield
        finally:
            process.kill()
            process.wait()


@pytest.mark.parametrize("skew", [-DAY, DAY], ids=["behind", "ahead"])
async def test_a_hub_whose_clock_is_a_day_off_is_served_and_knows_who_lives(
    tmp_path: Path, skew: int, edge: ForeignEdge
) -> None:
    hub = Hub(tmp_path / "hub", "--init", program=(*_SKEWED, str(skew)))
    async with Places(tmp_path, hub, edge).running() as places:
        places.syncer = places.new_syncer("--heartbeat-seconds", "1")
        with mailbox_controller(hub, tmp_path):
            await begun(places)
            status = {"status": {"replicas": 1, "observedGeneration": 1}}
            await places.at_edge.patch(DEPLOYMENTS, "web", status, "shop", subresource="status")
            await until(
                places.in_mailbox,
                DEPLOYMENTS,
                "web",
                "shop",
                lambda o: bool(o and (o.get("status") or {}).get("replicas") and is_delivered(o)),
            )
            inventory = places.access.at(IMW)
            await until(inventory, SYNC_TARGETS, places.name, "", lambda o: ready(o, "True"))
            places.syncer.stop(signal.SIGKILL)
            await until(inventory, SYNC_TARGETS, places.name, "", lambda o: ready(o, "False"))
            await asyncio.to_thread(places.syncer.start)
            await until(inventory, SYNC_TARGETS, places.name, "", lambda o: ready(o, "True"))
            await places.put(CONFIG_MAPS, "page", page("after"))
            await says(places, "after")


async def test_a_syncer_whose_clock_is_a_day_off_works_and_is_known_to_live(
    tmp_path: Path, hub: Hub, edge: ForeignEdge
) -> None:
    async with Places(tmp_path, hub, edge).running() as places:
        program = (*_SKEWED, str(DAY))
        places.syncer = places.new_syncer("--heartbeat-seconds", "1", program=program)
        with mailbox_controller(hub, tmp_path):
            await begun(places)
            inventory = places.access.at(IMW)
            await until(inventory, SYNC_TARGETS, places.name, "", lambda o: ready(o, "True"))
            places.syncer.stop(signal.SIGKILL)
            await until(inventory, SYNC_TARGETS, places.name, "", lambda o: ready(o, "False"))


def ready(target: dict[str, object] | None, status: str) -> bool:
    """Tell whether a SyncTarget's Ready condition has a status."""
    reported = (target or {}).get("status") or {}
    assert isinstance(reported, dict)
    return any(
        c["type"] == "Ready" and c["status"] == status for c in reported.get("conditions", ())
    )
