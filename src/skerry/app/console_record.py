"""Where the console of a hub is noted, and why there is none."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skerry.app.settings import ServerSettings


class ConsoleError(Exception):
    """Why the console cannot be served, in a sentence."""


def no_console(settings: ServerSettings, error: OSError) -> str:
    """Return why the console's port cannot be had."""
    where = f"{settings.bind_address}:{settings.console_port}"
    problem = f"cannot listen on {where} for the console: {error.strerror or error}"
    if error.errno == errno.EADDRINUSE:
        problem += "; --console-port names another, 0 takes any"
    return problem


def console_url(host: str, port: int) -> str:
    """Return the address of the console of the hub that is called *host*."""
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


def console_record(data_dir: Path) -> Path:
    """Return where it is noted at which address the hub of a folder serves its console."""
    return data_dir / "console.url"


def note_console(data_dir: Path, url: str) -> None:
    """Write down where the console is, for whoever asks how this hub runs."""
    record = console_record(data_dir)
    if url:
        record.write_text(f"{url}\n")
    else:
        record.unlink(missing_ok=True)
