"""Commands beside a container: their exit, the beginning of their output, and their end."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from skerry.edge.agent.commands import run_beside
from skerry.edge.agent.runtime import CannotStart


class Run:
    def __init__(self, argv: list[str], directory: Path) -> None:
        self.argv, self.working_directory = argv, str(directory)
        self.environment = {"GREETING": "hello", "PATH": os.defpath}


class Runtime:
    """Runs commands as they are."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def beside(self, spec: Any, argv: Any) -> Run:
        if argv[0] == "forbidden":
            raise CannotStart("the container is not running")
        return Run(list(argv), self._directory)


async def run(directory: Path, *argv: str, seconds: float = 10) -> tuple[int, str]:
    runtime: Any = Runtime(directory)
    spec: Any = None
    return await run_beside(runtime, spec, argv, seconds)


async def test_output_and_errors_come_together_with_the_exit_code(tmp_path: Path) -> None:
    code, text = await run(tmp_path, "/bin/sh", "-c", 'echo "$GREETING"; pwd; echo no >&2; exit 3')
    assert code == 3
    assert text == f"hello\n{tmp_path}\nno\n"


async def test_of_a_long_output_the_beginning_is_kept(tmp_path: Path) -> None:
    code, text = await run(tmp_path, "/bin/sh", "-c", "printf '%20000s' x")
    assert (code, len(text)) == (0, 10 * 1024)


@pytest.mark.parametrize(
    ("argv", "code", "words"),
    [
        ((), 126, "no command given"),
        (("forbidden",), 126, "the container is not running"),
        (("/no/such/program",), 127, "/no/such/program: No such file or directory"),
    ],
)
async def test_what_cannot_be_run_has_a_code_too(
    tmp_path: Path, argv: tuple[str, ...], code: int, words: str
) -> None:
    assert await run(tmp_path, *argv) == (code, words)


async def test_whatever_it_started_ends_with_its_time(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    with pytest.raises(TimeoutError):
        await run(tmp_path, "/bin/sh", "-c", f"sleep 60 & echo $! > {mark}; wait", seconds=0.3)
    child = int(mark.read_text())
    state = Path(f"/proc/{child}/stat")
    assert not state.exists() or state.read_text().split()[2] in ("Z", "X")
