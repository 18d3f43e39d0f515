"""A hub or a syncer whose clock is wrong: ``python -m tests.e2e.syncer.skewed SECONDS hub …``.

Takes those flags of the real commands that the tests use. Only the clock differs, and what TLS
thinks of the time: that is the machine's on both sides.
"""

from __future__ import annotations

import argparse
import sys
from datetime import datetime, timedelta
from pathlib import Path

from skerry.app.hub import hub_flavor
from skerry.app.settings import ServerSettings, StoreSettings
from skerry.app.standalone import run_server
from skerry.app.syncer import SyncerOptions, run_syncer
from skerry.kit.clock import SystemClock


class SkewedClock(SystemClock):
    """The machine's clock, set wrong."""

    def __init__(self, seconds: int) -> None:
        self._skew = timedelta(seconds=seconds)

    def now(self) -> datetime:
        return super().now() + self._skew


def _say(line: str) -> None:
    print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("seconds", type=int)
    commands = parser.add_subparsers(dest="command", required=True)
    hub = commands.add_parser("hub")
    hub.add_argument("--port", type=int)
    hub.add_argument("--init", action="store_true")
    syncer = commands.add_parser("syncer")
    syncer.add_argument("--from-kubeconfig", type=Path)
    syncer.add_argument("--to-kubeconfig", type=Path)
    syncer.add_argument("--sync-target-name")
    syncer.add_argument("--heartbeat-seconds", type=float, default=30.0)
    for each in (hub, syncer):
        each.add_argument("--data-dir", type=Path)
    flags = vars(parser.parse_args(sys.argv[1:]))
    clock, command = SkewedClock(flags.pop("seconds")), flags.pop("command")
    if command == "syncer":
        run_syncer(SyncerOptions(**flags), _say, clock)
        return
    folder: Path = flags["data_dir"]
    settings = ServerSettings(
        data_dir=folder, port=flags["port"], store=StoreSettings(path=folder / "store.db")
    )
    run_server(settings, hub_flavor(with_edge_provider=flags["init"]), _say, clock)


if __name__ == "__main__":
    main()
