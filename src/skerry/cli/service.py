"""What a command that runs until it is stopped owes to a service manager."""

from __future__ import annotations

import os
from collections.abc import Callable

from skerry.kit.service_manager import READY, notify

Announce = Callable[[str], None]


def notify_ready(status: str = "") -> None:
    """Notify whoever manages this process as a service that it is ready; nobody may."""
    address = os.environ.get("NOTIFY_SOCKET", "")  # noqa: TID251 - how systemd names it
    notify(address, READY, *([f"STATUS={status}"] if status else []))


def notifying(announce: Announce) -> Announce:
    """Return *announce* for the line that says ready, which the service manager learns too."""

    def announced(line: str) -> None:
        announce(line)
        notify_ready(line)

    return announced
