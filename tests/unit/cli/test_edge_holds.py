"""What the commands of held edges say when nothing can be done."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from skerry.cli.main import main

HUB = """
current-context: here
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1/clusters/root:imw"}}]
users: [{name: u, user: {}}]
contexts: [{name: here, context: {cluster: c, user: u}}]
"""
COMMANDS = (
    ["approve-deletions", "florin", "--yes"],
    ["accept-store", "florin", "--yes"],
    ["adopt", "florin", "configmaps/page", "-n", "shop"],
)


def called(home: Path, *words: str) -> Result:
    (home / "hub").write_text(HUB)
    environment = {"KUBECONFIG": str(home / "hub"), "HOME": str(home), "SKERRY_HOME": ""}
    return CliRunner().invoke(main, ["edge", *words], env=environment)


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_a_hub_that_does_not_answer_is_a_sentence(tmp_path: Path, words: list[str]) -> None:
    result = called(tmp_path, *words)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"skerry edge {words[0]}: ")
    assert "Traceback" not in result.output


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_help_has_examples_and_exit_codes(tmp_path: Path, words: list[str]) -> None:
    result = called(tmp_path, words[0], "--help")
    assert result.exit_code == 0
    assert f"skerry edge {words[0]} florin" in result.output
    assert "Exit code 6" in result.output.replace("\n", " ")


def test_an_edge_and_an_object_have_to_be_named(tmp_path: Path) -> None:
    for words in (["approve-deletions"], ["accept-store"], ["adopt", "florin"]):
        assert called(tmp_path, *words).exit_code == 2
