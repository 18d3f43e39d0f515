"""What skerry edge join refuses before it makes anything, and what it waits for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from skerry.cli.edge_join import _last_beat
from skerry.cli.main import main
from skerry.runtime.client import Client
from skerry.runtime.transport import Answer
from tests.kit.answering import AnswersBy

HUB = """
current-context: here
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1/clusters/root:imw"}}]
users: [{name: u, user: {}}]
contexts: [{name: here, context: {cluster: c, user: u}}]
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "hub").write_text(HUB)
    return tmp_path


def called(home: Path, *words: str) -> Result:
    environment = {"KUBECONFIG": str(home / "hub"), "HOME": str(home), "SKERRY_HOME": ""}
    return CliRunner().invoke(main, ["edge", "join", *words], env=environment)


def test_a_name_that_cannot_be_is_refused(home: Path) -> None:
    result = called(home, "Bad_Name", "env=prod")
    assert result.exit_code == 1
    assert "'Bad_Name' must be a lower-case DNS name" in result.stderr


@pytest.mark.parametrize("word", ["env", "=prod", "env=a b", "id=7"])
def test_a_word_that_is_no_label_is_refused(home: Path, word: str) -> None:
    result = called(home, "berlin", word)
    assert result.exit_code == 1
    assert "label" in result.stderr


def test_no_edge_is_made_while_the_hub_does_not_answer(home: Path) -> None:
    result = called(home, "berlin", "env=prod")
    assert result.exit_code == 1
    assert result.stderr.startswith("skerry edge join: ")
    assert "Traceback" not in result.output
    assert not (home / ".skerry").exists()


def test_the_edges_own_part_takes_no_labels(home: Path) -> None:
    result = called(home, "berlin", "env=prod", "--from-kubeconfig", str(home / "hub"))
    assert result.exit_code == 2
    assert "it takes no labels" in result.stderr


@pytest.mark.parametrize(("code", "reason"), [(404, "NotFound"), (403, "Forbidden")])
async def test_of_a_mailbox_that_is_still_being_made_no_heartbeat_is_known(
    code: int, reason: str
) -> None:
    refusal = Answer(code, {}, json.dumps({"kind": "Status", "reason": reason}).encode())
    assert await _last_beat(Client(AnswersBy(lambda _, __: refusal))) == ""
