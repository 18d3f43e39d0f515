"""skerry rollout refuses what it does not understand, before it asks a hub."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from skerry.cli.rollout import rollout


@pytest.mark.parametrize(
    "arguments",
    [
        ["status"],
        ["undo", "web"],
        ["undo", "web", "--to", "0"],
        ["undo", "web", "--to", "3", "--now"],
        ["undo", "web", "--to", "3", "--reason", "x"],
        ["status", "web", "-o", "yaml"],
    ],
)
def test_a_command_that_makes_no_sense_ends_with_2(arguments: list[str]) -> None:
    assert CliRunner().invoke(rollout, arguments).exit_code == 2


@pytest.mark.parametrize("command", ["status", "history", "pause", "abort", "retry", "approve"])
def test_without_a_hub_there_is_a_sentence_and_1(command: str, tmp_path: Path) -> None:
    missing = str(tmp_path / "none")
    result = CliRunner().invoke(rollout, [command, "web", "--kubeconfig", missing])
    assert result.exit_code == 1
    assert "Traceback" not in result.output
