"""Waiting for what a command prints."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

PATIENCE_SECONDS = 60.0


def until(shell: Callable[[str], str], command: str, holds: Callable[[Any], bool]) -> Any:
    """Repeat a command that prints JSON until it prints what is wanted."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        found = json.loads(shell(f"{command} 2>/dev/null || echo null"))
        if found is not None and holds(found):
            return found
        assert time.monotonic() < deadline, f"{command}: in the end {found}"
        time.sleep(0.2)
