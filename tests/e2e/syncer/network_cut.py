"""A hub and an edge in networks of their own, and the way between them cut.

Run as ``unshare -Urn python -m tests.e2e.syncer.network_cut FOLDER SECONDS``. This process is the
router between both networks. While it does not forward, packets vanish in both directions and
nobody notices: no connection is refused or reset. The router itself still reaches everybody.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from skerry.api.edge import HEARTBEAT_LEASE, HEARTBEAT_NAMESPACE
from skerry.logic.fleet.placement.heartbeat import LEASES
from tests.kit.e2e.hubs import Hub
from tests.kit.e2e.places import CONFIG_MAPS, DEPLOYMENTS, Places, begun, page, says, until
from tests.kit.e2e.processes import SKERRY, ServerProcess

_FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")


class Network:
    """A network of one machine behind this router."""

    def __init__(self, number: int) -> None:
        self.address = f"10.81.{number}.2"
        ours, device = f"10.81.{number}.1", f"veth{number}"
        own = os.readlink("/proc/self/ns/net")
        self._holder = subprocess.Popen(["unshare", "-n", "sleep", "infinity"])
        place = f"/proc/{self._holder.pid}/ns/net"
        while os.readlink(place) == own:
            os.sched_yield()
        self.within = ("nsenter", "-n", "-t", str(self._holder.pid), "--")
        _ip("link", "add", device, "type", "veth", "peer", "eth0", "netns", str(self._holder.pid))
        _ip("address", "add", f"{ours}/24", "dev", device)
        _ip("link", "set", device, "up")
        _ip("address", "add", f"{self.address}/24", "dev", "eth0", within=self.within)
        for name in ("lo", "eth0"):
            _ip("link", "set", name, "up", within=self.within)
        _ip("route", "add", "default", "via", ours, within=self.within)

    def close(self) -> None:
        self._holder.kill()
        self._holder.wait()


def _ip(*words: str, within: tuple[str, ...] = ()) -> None:
    subprocess.run([*within, "ip", *words], check=True)


def _forward(wanted: bool) -> None:
    _FORWARDING.write_text("1" if wanted else "0")


async def story(folder: Path, seconds: float) -> None:
    _ip("link", "set", "lo", "up")
    _forward(True)
    hubs, edges = Network(1), Network(2)
    hub = Hub(
        folder / "hub", "--init", "--bind-address", hubs.address, program=(*hubs.within, SKERRY)
    )
    edge = ServerProcess(folder / "edge", "--bind-address", edges.address, within=edges.within)
    try:
        async with Places(folder, hub, edge).running() as places:
            places.syncer = places.new_syncer(
                "--heartbeat-seconds", "1", program=(*edges.within, SKERRY)
            )
            await begun(places)
            await _cut_and_mended(places, seconds)
    finally:
        hubs.close()
        edges.close()


async def _cut_and_mended(places: Places, seconds: float) -> None:
    beating = await places.in_mailbox.get(LEASES, HEARTBEAT_LEASE, HEARTBEAT_NAMESPACE)
    renewed = beating["spec"]["renewTime"]
    _forward(False)
    await places.put(CONFIG_MAPS, "page", page("two"))
    await places.in_mailbox.delete(DEPLOYMENTS, "web", "shop")
    # The edge goes on alone: what it should run is repaired from what it remembers.
    await places.at_edge.delete(CONFIG_MAPS, "page", "shop")
    await says(places, "hello")
    await asyncio.sleep(seconds)  # real time is what this is about
    assert await places.names_at_edge(DEPLOYMENTS) == {"web"}
    silent = await places.in_mailbox.get(LEASES, HEARTBEAT_LEASE, HEARTBEAT_NAMESPACE)
    _forward(True)
    await says(places, "two")
    await places.goes(DEPLOYMENTS, "web")
    await places.condition("Synced", "True")
    await until(
        places.in_mailbox,
        LEASES,
        HEARTBEAT_LEASE,
        HEARTBEAT_NAMESPACE,
        lambda o: o is not None and o["spec"]["renewTime"] > silent["spec"]["renewTime"] >= renewed,
    )
    print("mended")


if __name__ == "__main__":
    asyncio.run(story(Path(sys.argv[1]), float(sys.argv[2])))
