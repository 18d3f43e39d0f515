"""Where the console of a hub is noted, and why there is none."""

from __future__ import annotations

from pathlib import Path


class ConsoleError(Exception):
    """Why the console cannot be served, in a sentence."""


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
