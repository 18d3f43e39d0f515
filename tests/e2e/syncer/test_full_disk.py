"""A disk that is full, at the edge: its API server's and its syncer's."""

from __future__ import annotations

import asyncio
import itertools
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from skerry.api.errors import ApiError
from tests.kit.e2e.hubs import Hub
from tests.kit.e2e.places import CONFIG_MAPS, Places, page, says
from tests.kit.e2e.processes import SKERRY, ServerProcess

# Enough for an edge with little on it; little enough to be filled at once.
_MEGABYTES = 12
_MOUNT = 'mount -t tmpfs -o "size=$1" none "$0" && echo mounted && exec sleep infinity'


class SmallDisk:
    """A file system of a few megabytes over *folder*, for those who enter."""

    def __init__(self, folder: Path, holder: subprocess.Popen[str]) -> None:
        self.within = ("nsenter", "--preserve-credentials", "-U", "-m", "-t", str(holder.pid), "--")
        # The same folder as seen by those who stayed outside.
        self.seen = Path(f"/proc/{holder.pid}/root{folder}")

    def fill(self) -> None:
        """Write until nothing more fits."""
        with (
            (self.seen / "filling").open("wb", buffering=0) as file,
            pytest.raises(OSError, match="No space left"),
        ):
            file.writelines(itertools.repeat(bytes(4096)))

    def clear(self) -> None:
        (self.seen / "filling").unlink()


@contextmanager
def small_disk(folder: Path) -> Iterator[SmallDisk]:
    """Mount a small disk without any rights; skip where the kernel forbids that."""
    folder.mkdir(parents=True)
    holder = subprocess.Popen(
        ["unshare", "-Urm", "sh", "-c", _MOUNT, str(folder), f"{_MEGABYTES}m"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert holder.stdout is not None
        if holder.stdout.readline() != "mounted\n":
            pytest.skip(f"no file system can be mounted here: {holder.communicate()[1].strip()}")
        yield SmallDisk(folder, holder)
    finally:
        holder.kill()
        holder.communicate()


class ServerOnSmallDisk(ServerProcess):
    """An edge's API server that keeps everything on a small disk."""

    def __init__(self, folder: Path, disk: SmallDisk) -> None:
        super().__init__(folder, within=disk.within)
        self._seen = disk.seen

    @property
    def kubeconfig(self) -> Path:
        return self._seen / "data" / "admin.kubeconfig"


async def test_a_full_disk_at_the_edge_is_reported_and_everything_follows_once_there_is_room(
    tmp_path: Path, hub: Hub
) -> None:
    box = tmp_path / "box"
    with small_disk(box) as disk:
        edge = ServerOnSmallDisk(box, disk)
        async with Places(tmp_path, hub, edge).running() as places:
            reach = tmp_path / "edge.kubeconfig"
            reach.write_bytes(edge.kubeconfig.read_bytes())
            places.syncer = places.new_syncer(program=(*disk.within, SKERRY))
            places.syncer.command[places.syncer.command.index("--data-dir") + 1] = str(box / "sy")
            places.syncer.command[places.syncer.command.index("--to-kubeconfig") + 1] = str(reach)
            await places.configure()
            await places.put(CONFIG_MAPS, "page", page("one"))
            await asyncio.to_thread(places.syncer.start)
            await says(places, "one")
            await places.condition("Synced", "True")
            disk.fill()
            # Large enough to need room that is not there.
            await places.put(CONFIG_MAPS, "large", {"data": {"blob": "x" * 500_000}})
            await places.put(CONFIG_MAPS, "page", page("two"))
            reported = await places.condition("configmaps/shop.large", "False")
            assert reported["reason"] == "EdgeFailing"
            await places.condition("DiskFailing", "True")
            # What is there is still served, and nothing of it was lost.
            assert "page" in await places.names_at_edge(CONFIG_MAPS)
            with pytest.raises(ApiError):
                await places.at_edge.create(
                    CONFIG_MAPS, {"metadata": {"name": "x"}, "data": {"b": "y" * 500_000}}, "shop"
                )
            disk.clear()
            await says(places, "two")
            await places.arrives(CONFIG_MAPS, "large")
            await places.condition("DiskFailing", "False")
            await places.condition("Synced", "True")
            # And all of it was remembered: killed and started again, it goes on.
            places.syncer.stop(signal.SIGKILL)
            await places.in_mailbox.delete(CONFIG_MAPS, "large", "shop")
            await asyncio.to_thread(places.syncer.start)
            await places.goes(CONFIG_MAPS, "large")
