"""A person at a terminal: one folder, one home, commands in the foreground and the background.

Blocks of commands run as they are printed, without pauses in between. What runs in the background
is heard line by line as it speaks, so that a test waits for what it says and for nothing else.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

_BIN = Path(sys.executable).parent
# Generous: a busy machine is slow, and only a failing test waits this long.
_PATIENCE_SECONDS = 120


class Background:
    """A command that runs until ``^C``; standard output and errors are heard as one."""

    def __init__(self, words: Sequence[str], folder: Path, environment: dict[str, str]) -> None:
        self._words = words
        self._lines: list[str] = []
        self._ended = False
        self._news = threading.Condition()
        self._process = subprocess.Popen(
            words,
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._listener = threading.Thread(target=self._listen)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._news:
                self._lines.append(line.rstrip("\n"))
                self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()

    @property
    def lines(self) -> list[str]:
        """What was said so far."""
        with self._news:
            return list(self._lines)

    def until(self, pattern: str, *, times: int = 1, since: int = 0) -> list[str]:
        """Wait until so many lines from *since* on hold the pattern; return them."""
        wanted = re.compile(pattern)

        def found() -> list[str]:
            return [line for line in self._lines[since:] if wanted.search(line)]

        with self._news:
            self._news.wait_for(
                lambda: self._ended or len(found()) >= times, timeout=_PATIENCE_SECONDS
            )
            heard = found()
            printed = "\n".join(self._lines)
        assert len(heard) >= times, (
            f"{self._words} did not say {pattern!r} {times} times: {printed}"
        )
        return heard

    def until_said(self, missing: Callable[[list[str]], list[str]], since: int = 0) -> None:
        """Wait until nothing is *missing* any more in the lines from *since* on."""
        with self._news:
            self._news.wait_for(
                lambda: self._ended or not missing(self._lines[since:]), timeout=_PATIENCE_SECONDS
            )
            lines = self._lines[since:]
        assert missing(lines) == [], "\n".join(lines)

    def interrupt(self) -> None:
        """Press ``^C``, if that was not done before; ending so is ending well, and quietly."""
        if self._process.returncode is not None:
            return
        self._process.send_signal(signal.SIGINT)
        try:
            code = self._process.wait(_PATIENCE_SECONDS)
        finally:
            self._process.kill()
            self._process.wait()
            self._heard_out()
        printed = "\n".join(self._lines)
        assert code == 0, f"{self._words} ended with {code}: {printed}"
        assert "Traceback" not in printed, printed

    def _heard_out(self) -> None:
        self._listener.join()
        assert self._process.stdout is not None
        self._process.stdout.close()


class Terminal:
    """Commands with kubectl, its plugins and ``skerry`` on the path, all in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.home.mkdir(parents=True)
        self.environment = {
            "PATH": f"{_BIN}:{os.environ['PATH']}",
            "HOME": str(self.home),
            "SKERRY_HOME": str(self.home / ".skerry"),
        }
        self._cleanup = ExitStack()

    def export(self, **variables: str) -> None:
        """Set variables for the commands that follow."""
        self.environment.update(variables)

    @contextmanager
    def without(self, variable: str) -> Iterator[None]:
        """Have a variable unset for a while."""
        value = self.environment.pop(variable)
        yield
        self.environment[variable] = value

    def __call__(self, block: str) -> str:
        """Run a block of commands; return what it printed, errors included."""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_PATIENCE_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{block}\nexit code {done.returncode}\n{done.stdout}"
        return done.stdout

    def play(self, blocks: Sequence[str]) -> list[str]:
        """Run blocks back to back; return what each printed."""
        return [self(block) for block in blocks]

    def background(self, command: str) -> Background:
        """Start a command; it is interrupted when the terminal is closed, if not before."""
        words = shlex.split(command)
        words[0] = str(_BIN / words[0])
        started = Background(words, self.folder, self.environment)
        self._cleanup.callback(started.interrupt)
        return started

    def afterwards(self, command: str) -> None:
        """Have a command run when the terminal is closed, before what was asked for earlier."""
        self._cleanup.callback(self, command)

    def close(self) -> None:
        self._cleanup.close()
