"""Load on a hub while something happens to it, and waiting for what comes of it."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable
from typing import Any

from tests.kit.e2e.hubs import Hub
from tests.kit.e2e.manifests import config_map
from tests.kit.e2e.process_groups import Line

PATIENCE_SECONDS = 60.0


class Writer(threading.Thread):
    """Creates ConfigMaps one after another over one connection, and notes what became of each."""

    def __init__(
        self,
        hub: Hub,
        number: int,
        path: str,
        stop: threading.Event,
        *,
        pause_seconds: float = 0.01,
        **data: str,
    ) -> None:
        super().__init__(daemon=True)
        self._line = Line(hub)
        self._number = number
        self._path = path
        self._stopping = stop
        self._pause_seconds = pause_seconds
        self._data = data
        self.acknowledged: list[str] = []
        # Name, status and document of each that was not.
        self.refused: list[tuple[str, int, dict[str, Any]]] = []

    def run(self) -> None:
        with contextlib.closing(self._line):
            for count in itertools.count():
                if self._stopping.wait(self._pause_seconds):
                    return
                name = f"w{self._number}-{count}"
                obj = config_map(name, **self._data)
                status, document = self._line.ask("POST", self._path, obj)
                if status == 201:
                    self.acknowledged.append(name)
                else:
                    self.refused.append((name, status, document))


def eventually(reached: Callable[[], bool]) -> None:
    """Wait until *reached* says so; nothing tells when that is."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.02)
