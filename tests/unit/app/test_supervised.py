"""What is recorded of a command by the time that somebody hears that it was started."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from skerry.app import supervisor
from skerry.app.supervised import Supervised

_SLEEP = [sys.executable, "-c", "import signal; signal.pause()"]


def test_the_first_record_names_the_process_that_runs(tmp_path: Path) -> None:
    """Of one that does not run yet the pid would be 0: one's own process group, to ``kill``."""
    record = tmp_path / "process.json"
    # Whoever writes the record waits here until it is read: nothing is missed in between.
    os.mkfifo(f"{record}.new")
    heard, teller = os.pipe()
    words = [sys.executable, "-I", "-S", str(supervisor.__file__), str(record), str(teller)]
    with subprocess.Popen([*words, *_SLEEP], pass_fds=(teller,)) as running:
        os.close(teller)
        try:
            server, start = json.loads(Path(f"{record}.new").read_text())["server"]
            assert server > 0
            assert supervisor.start_time(server) == start
            assert os.read(heard, 100) == b"started\n"
            assert os.read(heard, 100) == b"", "the command has no end of the pipe"
        finally:
            os.close(heard)
            running.terminate()


def test_a_command_runs_by_the_time_that_its_start_returns(tmp_path: Path) -> None:
    command = Supervised(tmp_path / "process.json", tmp_path / "process.log")
    try:
        assert command.start(["http.server", "--bind", "127.0.0.1", "0"])
        assert command.running
        assert command.supervised
    finally:
        command.stop()
    assert not command.running
