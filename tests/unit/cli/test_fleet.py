"""How skerry fleet is called, and what it does when it cannot answer."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner, Result

from skerry.cli.main import main


def called(*words: str) -> Result:
    return CliRunner().invoke(main, ["fleet", *words], env={"KUBECONFIG": "", "HOME": "/nowhere"})


def test_help_shows_examples_and_exit_codes() -> None:
    printed = called("--help").output
    assert "Examples:" in printed
    assert "Exit codes:" in printed


def test_without_a_hub_there_is_no_answer() -> None:
    result = called()
    assert result.exit_code == 1
    assert result.stderr.startswith("skerry fleet: kubeconfig /nowhere/.kube/config: ")


def test_a_hub_that_does_not_answer_is_reported_in_one_line(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(
        """
current-context: here
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {}}]
contexts: [{name: here, context: {cluster: c, user: u}}]
"""
    )
    result = called("--kubeconfig", str(kubeconfig))
    assert result.exit_code == 1
    assert result.stderr.startswith("skerry fleet: cannot connect to 127.0.0.1:1: ")
    assert result.stderr.count("\n") == 1


def test_watching_needs_a_terminal() -> None:
    for words in (["--watch"], ["--watch", "-o", "json"]):
        result = called(*words)
        assert result.exit_code == 2
        assert "--watch draws on a terminal" in result.stderr


def test_a_negative_limit_is_a_mistake_of_the_caller() -> None:
    assert called("--limit", "-1").exit_code == 2
