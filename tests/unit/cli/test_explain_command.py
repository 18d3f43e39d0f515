"""How explain and whatif are called, and what they do when they cannot answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from skerry.cli.main import main


def called(*words: str, stdin: str = "") -> Result:
    return CliRunner().invoke(main, words, input=stdin, env={"KUBECONFIG": "", "HOME": "/nowhere"})


@pytest.mark.parametrize("command", [["explain"], ["explain", "placement"], ["whatif"]])
def test_help_shows_examples_and_exit_codes(command: list[str]) -> None:
    printed = called(*command, "--help").output
    assert "Examples:" in printed
    assert "Exit codes:" in printed


def test_a_missing_name_is_a_mistake_of_the_caller() -> None:
    assert called("explain", "placement").exit_code == 2
    assert called("whatif").exit_code == 2


def test_without_a_hub_there_is_no_answer() -> None:
    result = called("explain", "placement", "p")
    assert result.exit_code == 1
    assert result.stderr.startswith("skerry explain: kubeconfig /nowhere/.kube/config: ")


def test_a_context_without_workspace_is_reported(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(
        """
current-context: plain
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {}}]
contexts: [{name: plain, context: {cluster: c, user: u}}]
"""
    )
    result = called("explain", "placement", "p", "--kubeconfig", str(kubeconfig))
    assert result.exit_code == 1
    assert "names no workspace" in result.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there is no object in it"),
        ("a: [", "while parsing"),
        ("just words", "want objects with apiVersion, kind and metadata.name"),
        ("kind: Namespace", "want objects with apiVersion, kind and metadata.name"),
    ],
)
def test_a_file_that_holds_no_objects_is_a_mistake_of_the_caller(text: str, message: str) -> None:
    result = called("whatif", "-f", "-", stdin=text)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_list_stands_for_its_items() -> None:
    result = called(
        "whatif", "-f", "-", stdin="{kind: List, items: [{kind: Namespace, metadata: {}}]}"
    )
    assert result.exit_code == 2
    assert "metadata.name" in result.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "want --problems, or a command: placement"),
        (["--all"], "want --problems"),
        (["--problems", "placement", "p"], "leave NAME out"),
    ],
)
def test_problems_are_asked_for_by_themselves(words: list[str], message: str) -> None:
    result = called("explain", *words)
    assert result.exit_code == 2
    assert message in result.stderr


def test_without_a_hub_there_are_no_problems_to_show() -> None:
    result = called("explain", "--problems")
    assert result.exit_code == 1
    assert result.stderr.startswith("skerry explain: kubeconfig /nowhere/.kube/config: ")
