"""skerry query refuses what it does not understand, before it asks a hub."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from skerry.cli.query import query


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "name a resource"),
        (["deployments", "--agg", "median:x"], "--agg 'median:x': want"),
        (["deployments", "--top", "x"], "--top 'x': want"),
        (["deployments", "--select", "a", "--by", "b"], "leave --by out"),
        (["deployments", "--limit", "1001"], "1001"),
        (["deployments", "-o", "yaml"], "yaml"),
        (["--file", "/nothing.yaml"], "does not exist"),
    ],
)
def test_a_wrong_call_is_refused_with_a_sentence(arguments: list[str], sentence: str) -> None:
    result = CliRunner().invoke(query, arguments)
    assert result.exit_code == 2
    assert sentence in result.output


@pytest.mark.parametrize("text", ["[]", "kind: StatusQuery", "a: [", ""])
def test_a_file_without_a_query_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "q.yaml"
    path.write_text(text)
    result = CliRunner().invoke(query, ["--file", str(path)])
    assert result.exit_code == 2
    assert "--file" in result.output


def test_a_file_is_the_whole_question(tmp_path: Path) -> None:
    path = tmp_path / "q.yaml"
    path.write_text("spec: {from: {rows: Copies}, aggregates: [{name: n, function: Count}]}")
    result = CliRunner().invoke(query, ["--file", str(path), "--by", "a", "--limit", "3"])
    assert result.exit_code == 2
    assert "leave --by, --limit out" in " ".join(result.output.split())


def test_without_a_hub_there_is_no_answer(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    result = CliRunner().invoke(query, ["deployments", "--kubeconfig", str(path)])
    assert result.exit_code == 1
