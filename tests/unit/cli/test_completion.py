"""What shells are offered."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from skerry.cli.main import main
from skerry.cli.plugin_completion import completed


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_script_for_every_common_shell(shell: str) -> None:
    done = CliRunner().invoke(main, ["completion", shell])
    assert done.exit_code == 0
    assert f"_SKERRY_COMPLETE={shell}_complete" in done.output
    if program := shutil.which(shell):
        subprocess.run([program, "-n"], input=done.output, text=True, check=True)


def offered(words: str, number: int) -> list[str]:
    """Return what bash would be given for the word of that number."""
    environment = {
        "_SKERRY_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(number),
    }
    done = CliRunner().invoke(main, [], prog_name="skerry", env=environment)
    return [line.partition(",")[2] for line in done.output.splitlines()]


def test_commands_subcommands_flags_and_values_are_offered() -> None:
    assert offered("skerry d", 1) == ["demo", "diff", "docs", "down"]
    assert "bootstrap" in offered("skerry edge ", 2)
    assert "--data-dir" in offered("skerry hub --", 2)
    assert offered("skerry hub --store ", 3) == ["sqlite", "memory", "etcd"]


def test_edges_are_offered_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("florin", "guilder"):
        folder = tmp_path / "edges" / name
        folder.mkdir(parents=True)
        (folder / "edge.json").touch()
    monkeypatch.setenv("SKERRY_HOME", str(tmp_path))
    assert offered("skerry edge stop ", 3) == ["florin", "guilder"]
    assert offered("skerry edge stop g", 3) == ["guilder"]


@pytest.mark.parametrize(
    ("plugin", "words", "lines"),
    [
        ("kubestellar", [""], ["ensure", "remove", "prep-for-cluster", "prep-for-syncer", ":4"]),
        ("kubestellar", ["ensure", "w"], ["wmw", ":4"]),
        ("kubestellar", ["ensure", "wmw", "name", ""], [":4"]),
        ("kubestellar", ["prep-for-syncer", "-o", ""], [":0"]),
        ("kubestellar", ["remove", "wmw", "--kubec"], ["--kubeconfig", ":4"]),
        ("kcp", ["bind", ""], ["apiexport", "compute", ":4"]),
        ("kcp", ["ws", "tree", "--f"], ["--full", ":4"]),
        ("ws", ["create", "--e"], ["--enter", ":4"]),
        # Without a hub there are only words to offer, and no error.
        ("ws", ["t"], ["tree", ":4"]),
        ("workspaces", ["use", ""], [":4"]),
    ],
)
def test_kubectl_is_offered_what_its_plugins_take(
    plugin: str, words: list[str], lines: list[str]
) -> None:
    assert completed(plugin, words, {"HOME": "/nonexistent"}) == lines
