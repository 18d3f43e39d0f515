"""Which packages belong to which command, and that an edge's installation needs few of them."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from skerry.cli.extras import (
    EXTRAS_OF_COMMANDS,
    described_distributions,
    normalized,
    packages_of,
)
from skerry.cli.main import main

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
# As the metadata of an installation has them.
REQUIREMENTS = [
    *PROJECT["dependencies"],
    *(f"{text}; extra == '{extra}'" for extra, texts in EXTRAS.items() for text in texts),
]
# Distributions whose modules have other names.
MODULES = {"google-re2": "re2", "grpcio": "grpc", "pyjwt": "jwt"}

# Runs one command in an interpreter for which the modules named first do not exist.
WITHOUT = """
import importlib.abc, importlib.util, sys
absent, sys.argv = set(sys.argv[1].split(",")), ["skerry", *sys.argv[2:]]
class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in absent:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
from skerry.cli.main import main
main()
"""


def heavy_modules() -> set[str]:
    return {MODULES.get(name, name.replace("-", "_")) for name in packages_of("all", REQUIREMENTS)}


def names(texts: list[str]) -> set[str]:
    return {text.partition("=")[0].partition(">")[0].partition("<")[0] for text in texts}


def test_the_whole_is_the_union_of_the_extras() -> None:
    single = [names(texts) for extra, texts in EXTRAS.items() if extra != "all"]
    assert set(packages_of("all", REQUIREMENTS)) == set.union(*single)


def test_no_extra_repeats_what_every_installation_has() -> None:
    assert not set(packages_of("all", REQUIREMENTS)) & names(PROJECT["dependencies"])


def test_extras_agree_on_what_they_ask_of_a_package() -> None:
    texts = {text for extra, texts in EXTRAS.items() if extra != "all" for text in texts}
    assert len(names(sorted(texts))) == len(texts)


def test_requirements_without_an_extra_belong_to_none() -> None:
    assert list(packages_of("hub", ["numpy>=2.0", "rich>=13; extra == 'edge'"])) == []
    assert list(packages_of("hub", ['numpy>=2.0; extra == "hub"'])) == ["numpy"]


def test_only_commands_and_extras_that_exist_are_named() -> None:
    assert set(EXTRAS_OF_COMMANDS) <= set(_COMMANDS)
    assert {extra for extras in EXTRAS_OF_COMMANDS.values() for extra in extras} <= set(EXTRAS)


_COMMANDS = main.list_commands(main.make_context("skerry", ["x"]))
_JOINING = ("join", "bootstrap", "manifest", "approve", "revoke")


@pytest.mark.parametrize(
    "words",
    [
        *([name] for name in _COMMANDS if name not in EXTRAS_OF_COMMANDS),
        *(["edge", name] for name in _JOINING),
    ],
    ids=" ".join,
)
def test_a_command_of_the_base_installation_loads_nothing_of_a_hub(words: list[str]) -> None:
    command = [sys.executable, "-c", WITHOUT, ",".join(sorted(heavy_modules())), *words, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Usage: skerry")


def test_what_is_installed_is_found_by_looking(tmp_path: Path) -> None:
    described = described_distributions(sys.path)
    assert {normalized(name) for name in packages_of("all", REQUIREMENTS)} <= described.keys()
    place = tmp_path / "site-packages"
    (place / "Some_Thing-1.0.dist-info").mkdir(parents=True)
    (place / "other").mkdir()
    assert described_distributions([str(place), "", "/nonexistent/site-packages"]) == {
        "some-thing": place / "Some_Thing-1.0.dist-info"
    }


def test_a_small_command_loads_neither_metadata_nor_what_joins_edges() -> None:
    """Both take longer to load than the command to run."""
    for words in (["edge", "list"], ["up", "--help"]):
        unwanted = "importlib.metadata,skerry.app.edge_join,skerry.app.edge_holds"
        program = f"import sys; sys.argv = ['skerry', *{words!r}]; unwanted = {unwanted!r}; "
        program += "from skerry.cli.main import main; main(standalone_mode=False); "
        program += "print('loaded', *(m for m in unwanted.split(',') if m in sys.modules))"
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        )
        assert done.stdout.splitlines()[-1] == "loaded"
