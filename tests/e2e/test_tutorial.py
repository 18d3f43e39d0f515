"""The tutorials' own commands, run as a reader would run them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.kit.ports import free_ports

pytestmark = pytest.mark.long

_PAGES = Path(__file__).parents[2] / "docs" / "tutorial"
# A page that fails half-way leaves no syncer behind.
_ENDING = "trap 'jobs -p | xargs -r kill 2>/dev/null || true' EXIT"
_SHELL = re.compile(r"^```shell\n(.*?)^```", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"^```(shell|text)\n(.*?)^```", re.MULTILINE | re.DOTALL)
# Between the outputs of two blocks.
_END_OF_BLOCK = "=== end of block"
# A page waits for what it shows; what never comes is reported with what came before it.
_PATIENCE_SECONDS = 400
_NAMES = ("north", "south", "west")

Run = Callable[[str], str]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Run a script in a folder that is also its home; what it left running is ended."""
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "KUBECONFIG": str(tmp_path / "edges.kubeconfig"),
    }

    def run(script: str) -> str:
        # Jobs are named by number in the last block, which an interactive shell allows.
        said = tmp_path / "said"
        with said.open("w") as output:
            ended = subprocess.run(
                ["timeout", str(_PATIENCE_SECONDS), "bash", "-eumo", "pipefail", "-c",
                 f"{_ENDING}\n{script}"],
                cwd=tmp_path, stdout=output, stderr=output, check=False, env=environment,
            )  # fmt: skip
        assert ended.returncode == 0, said.read_text()[-6000:]
        return said.read_text()

    yield run
    skerry = [sys.executable, "-m", "skerry.cli"]
    for command in (["down", "--data-dir", "hub"], *(["edge", "delete", n] for n in _NAMES)):
        subprocess.run(
            [*skerry, *command], cwd=tmp_path, env=environment, check=False, capture_output=True
        )


def test_the_tutorial_works_as_printed(run: Run) -> None:
    script = "\n".join(_SHELL.findall((_PAGES / "two-edges.md").read_text()))
    for printed, free in zip(("18091", "18092"), map(str, free_ports(2)), strict=True):
        script = script.replace(printed, free)
    printed = run(script)
    assert "Hello from the north!" in printed
    assert "Hello from the south!" in printed


@pytest.mark.timeout(600)
def test_when_things_go_wrong_the_fleet_is_shown_as_it_is(run: Run) -> None:
    _assert_as_printed(run, "when-things-go-wrong.md")


@pytest.mark.timeout(600)
def test_a_bad_image_stays_with_the_canary_and_everything_returns(run: Run) -> None:
    _assert_as_printed(run, "break-a-canary.md")


def _assert_as_printed(run: Run, page: str) -> None:
    """Run the commands of a page, and look for what it shows in what they print."""
    blocks = _BLOCK.findall((_PAGES / page).read_text())
    commands = [block for kind, block in blocks if kind == "shell"]
    parts = run("".join(f"{each}echo '{_END_OF_BLOCK}'\n" for each in commands)).split(
        _END_OF_BLOCK
    )
    number, missing = -1, list[str]()
    for kind, block in blocks:
        if kind == "shell":
            number += 1
            continue
        wanted = [line for line in block.splitlines() if not _shown(line, parts[number])]
        missing += [f"want {line!r} in what was printed:\n{parts[number]}" for line in wanted]
    assert not missing, "\n".join(missing)


def _shown(line: str, seen: str) -> bool:
    """Tell whether a line was printed; ``…`` stands for anything."""
    pattern = r"[^\n]*".join(re.escape(part) for part in line.split("…"))
    return re.search(rf"^{pattern}\s*$", seen, re.MULTILINE) is not None
