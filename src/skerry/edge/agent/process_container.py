"""A container by its records on disk: the shim and the program below it, ours or found again."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from skerry.edge.agent.processes import Process, alive, end_group, signal_group, wait_gone
from skerry.edge.agent.runtime import Exit

RECORD = "record.json"
EXIT = "exit.json"
LOG = "log"
# The reason of an end that nobody saw.
LOST = "ContainerStatusUnknown"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ProcessContainer:
    """A shim and the program below it, ours or found again."""

    def __init__(self, directory: Path, record: Mapping[str, Any]) -> None:
        self._directory = directory
        self._shim = Process(record["shim"], record["shim_start"])
        self._program = Process(record.get("pid", 0), record.get("pid_start", 0))
        self._entered = bool(record.get("namespaces"))
        self.began = _moment(record["began_ns"])

    @property
    def identity(self) -> str:
        # The directory is the pod's uid, the container's name and the attempt.
        text = "/".join(self._directory.parts[-4:])
        return f"skerry://{hashlib.sha256(text.encode()).hexdigest()}"

    @property
    def processes(self) -> str:
        if self._entered:
            return f"/proc/{self._shim.pid}/ns/pid_for_children"
        # An image's first process, or that of an agent before this one, may be looked at.
        return f"/proc/{self._program.pid}/ns/pid"

    async def wait(self) -> Exit:
        await wait_gone(self._shim)
        # Reap it when it is our child; a found one is init's.
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._shim.pid, os.WNOHANG)  # noqa: ASYNC222 - does not wait
        found = read_json(self._directory / EXIT)
        if found is not None:
            failure = str(found.get("failure") or "")
            return Exit(
                found["code"],
                _moment(found["began_ns"]),
                _moment(found["ended_ns"]),
                found["signal"],
                "StartError" if failure else LOST if found.get("lost") else "",
                failure or (_LOST_TEXT if found.get("lost") else ""),
            )
        # The shim was killed, or the machine went down; the program must not go on unwatched.
        end_group(self._program)
        await wait_gone(self._program)
        ended = self._last_sign()
        self._record_loss(ended)
        return Exit(137, self.began, ended, signal.SIGKILL, LOST, _LOST_TEXT)

    def _last_sign(self) -> datetime:
        """Return the last time anything is known of the container."""
        try:
            seconds = (self._directory / LOG).stat().st_mtime
        except OSError:
            return self.began
        return max(self.began, _EPOCH + timedelta(seconds=int(seconds)))

    def _record_loss(self, ended: datetime) -> None:
        """Write what the shim could not, for whoever asks later."""
        began_ns, ended_ns = (int((m - _EPOCH).total_seconds() * 1e9) for m in (self.began, ended))
        lost = {"code": 137, "signal": 9, "failure": "", "lost": True}
        found = {**lost, "began_ns": began_ns, "ended_ns": ended_ns}
        with contextlib.suppress(OSError):
            (self._directory / EXIT).write_text(json.dumps(found))

    def signal(self, number: int) -> None:
        signal_group(self._program, number)


_LOST_TEXT = "The container could not be located when the pod was terminated"


def end_recorded(directory: Path) -> bool:
    """Kill what is recorded in a container's directory, shim and program; True when it ran."""
    record = read_json(directory / RECORD)
    if record is None:
        return False
    program = Process(record.get("pid", 0), record.get("pid_start", 0))
    shim = Process(record["shim"], record["shim_start"])
    ran = alive(program)
    end_group(program)
    end_group(shim)
    return ran


def read_json(path: Path) -> dict[str, Any] | None:
    """Return what a record says; None when there is none, or only half of one."""
    try:
        found: dict[str, Any] = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return None
    return found


def _moment(nanoseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=nanoseconds // 1000)
