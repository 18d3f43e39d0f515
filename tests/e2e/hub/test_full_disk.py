"""A hub whose disk is full for a while, under load: a disk of its own, in a namespace of mounts."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.e2e.hubs import Hub
from tests.kit.e2e.manifests import config_map
from tests.kit.e2e.process_groups import Line
from tests.kit.e2e.writing import Writer, eventually

CONFIG_MAPS = "/clusters/root/api/v1/namespaces/default/configmaps"
# The first word after the script is a folder; the rest is the command.
_MOUNT = 'mount -t tmpfs -o size=16m tmpfs "$0"; exec "$@"'


class SmallHub(Hub):
    """A hub with a disk of 16 MB, which others see through its process."""

    def __init__(self, directory: Path) -> None:
        skerry = Path(sys.executable).with_name("skerry")
        disk = directory / "data"
        disk.mkdir(parents=True)
        within = ("unshare", "-Urm", "sh", "-ec", _MOUNT, str(disk), str(skerry))
        super().__init__(directory, "--console-port", "0", program=within)

    @property
    def disk(self) -> Path:
        return Path(f"/proc/{self.pid}/root{self.data_dir}")

    @property
    def kubeconfig(self) -> Path:
        return self.disk / "admin.kubeconfig"


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[SmallHub]:
    if subprocess.run(["unshare", "-Urm", "true"], check=False).returncode:
        pytest.skip("no mount namespaces here")
    hub = SmallHub(tmp_path)
    hub.start()
    yield hub
    assert hub.stop() == 0


def test_a_disk_that_is_full_under_load_stops_writes_only_and_loses_none(hub: SmallHub) -> None:
    stop = threading.Event()
    large = "x" * 20_000
    writers = [
        Writer(hub, number, CONFIG_MAPS, stop, pause_seconds=0.02, text=large)
        for number in range(4)
    ]
    with contextlib.closing(Line(hub)) as line:
        assert line.ask("POST", CONFIG_MAPS, config_map("before"))[0] == 201
        for writer in writers:
            writer.start()
        try:
            eventually(lambda: all(len(writer.acknowledged) > 5 for writer in writers))
            _fill(hub.disk / "fill")
            eventually(lambda: all(len(writer.refused) > 3 for writer in writers))
            # Who must not write to it hears of it; who would start it again does not.
            status, verbose = line.ask("GET", "/readyz?verbose")
            assert (status, "[-]etcd-readiness failed" in verbose["text"]) == (500, True)
            assert "the disk is full" in line.ask("GET", "/readyz/etcd-readiness")[1]["text"]
            assert line.ask("GET", "/livez")[0] == 200
            assert line.ask("GET", f"{CONFIG_MAPS}/before")[0] == 200
            assert line.ask("GET", CONFIG_MAPS)[0] == 200
            (hub.disk / "fill").unlink()
            before = [len(writer.acknowledged) for writer in writers]
            eventually(
                lambda: all(
                    len(w.acknowledged) > n + 3 for w, n in zip(writers, before, strict=True)
                )
            )
        finally:
            stop.set()
        for writer in writers:
            writer.join()
        assert line.ask("GET", "/readyz")[0] == 200
        for _, _, refused in (each for writer in writers for each in writer.refused):
            assert (refused["code"], refused["reason"]) == (503, "ServiceUnavailable")
            assert "the disk is full" in refused["message"]
        _, listed = line.ask("GET", CONFIG_MAPS)
        acknowledged = {name for writer in writers for name in writer.acknowledged}
        assert {item["metadata"]["name"] for item in listed["items"]} >= acknowledged | {"before"}


def _fill(file: Path) -> None:
    """Write until there is no room left."""
    with contextlib.suppress(OSError), file.open("wb", buffering=0) as full:
        while True:
            full.write(bytes(4096))
