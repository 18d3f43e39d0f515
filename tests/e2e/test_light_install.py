"""What an edge installs: the base alone, small, able to run a syncer, honest about the rest."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.kit.e2e.light import installed_megabytes, light_environment, pins, pip

MAX_MEGABYTES = 60


@pytest.fixture(scope="module")
def light(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment of the base requirements and the wheel of this source."""
    folder = tmp_path_factory.mktemp("light") / "venv"
    light_environment(folder)
    return folder


def run(environment: Path, *words: str) -> subprocess.CompletedProcess[str]:
    program = environment / "bin" / words[0]
    return subprocess.run(
        [str(program), *words[1:]],
        env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_syncers_installation_is_complete_and_below_60_megabytes(light: Path) -> None:
    pip(light, "check")
    for words in (["skerry", "version"], ["skerry", "syncer", "--help"], ["skerry", "--help"]):
        done = run(light, *words)
        assert (done.returncode, done.stderr) == (0, ""), words
    # The bytecode of everything counts: a running syncer has written it.
    compiled = run(light, "python", "-m", "compileall", "-q", str(light / "lib"))
    assert compiled.returncode == 0, compiled.stdout
    assert installed_megabytes(light) < MAX_MEGABYTES


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (["skerry", "hub"], "hub"),
        (["skerry", "hub", "--help"], "hub"),
        (["skerry", "controllers", "--kubeconfig", "x"], "hub"),
        (["skerry", "explain", "deployment/web", "-n", "shop"], "hub"),
        (["skerry", "scheduler"], "scheduler"),
        (["skerry", "edge", "create", "florin"], "edge"),
        (["skerry", "demo"], "all"),
        (["kubestellar", "start"], "hub"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_a_command_that_lacks_its_packages_says_what_to_install(
    light: Path, words: list[str], extra: str
) -> None:
    done = run(light, *words)
    assert done.returncode == 3
    named = " ".join(words[:3] if words[1] == "edge" else words[:2])
    assert done.stderr == f"{named} needs pip install 'skerry[{extra}]'\n"


def test_every_lock_has_the_versions_of_the_one_of_developers() -> None:
    whole = pins("dev")
    for name in ("base", "hub", "scheduler", "edge", "run", "build"):
        assert pins(name)
        assert pins(name) <= whole, name
    assert pins("run") == set().union(*map(pins, ("base", "hub", "scheduler", "edge")))
