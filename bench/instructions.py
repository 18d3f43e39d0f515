"""Instructions that a process executes, counted by valgrind's callgrind.

Processor time swings with the neighbours, by a third on a busy machine. The instructions of a
request are the same however busy it is, but for what the server does by the clock meanwhile. They
leave out the kernel, and what memory costs. A server runs some fifty times as long like that, so
counting begins only when it is asked for.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

_TOTAL = re.compile(r"^(?:totals|summary): (\d+)", re.MULTILINE)


class Callgrind:
    """Counts for one process, which must be started ``under`` it."""

    def __init__(self) -> None:
        if shutil.which("valgrind") is None:
            raise RuntimeError("instructions are counted by valgrind, which is not installed")
        self._folder = tempfile.TemporaryDirectory(prefix="skerry-callgrind-")
        self._out = Path(self._folder.name) / "out"
        self._dumps = 0

    @property
    def under(self) -> list[str]:
        """The command that goes before that of the process."""
        options = ("--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={self._out}")
        return ["valgrind", "--quiet", *options]

    def begin(self, pid: int) -> None:
        """Count from now on."""
        self._send(pid, "instrumentation on")

    def taken(self, pid: int) -> int:
        """Return the instructions since the last time, or since counting began."""
        self._send(pid, "dump")
        self._dumps += 1
        found = _TOTAL.search(self._out.with_name(f"out.{self._dumps}").read_text())
        if found is None:
            raise RuntimeError("callgrind wrote no total")
        return int(found[1])

    def close(self) -> None:
        """Delete what was counted."""
        self._folder.cleanup()

    def _send(self, pid: int, what: str) -> None:
        subprocess.run(["vgdb", f"--pid={pid}", what], check=True, capture_output=True)
