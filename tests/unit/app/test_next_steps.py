"""Commands to paste: what they need comes first, and what cannot work is left out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from skerry.app.next_steps import next_steps

COMMANDS = ["curl http://localhost:1", "skerry fleet", "kubectl ws root"]


def _having(**programs: str) -> Callable[[str], str | None]:
    return lambda name: programs.get(name.replace("-", "_"))


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    folder = tmp_path / "my programs"
    folder.mkdir()
    (folder / "kubectl-ws").touch()
    return folder


def test_programs_that_are_not_on_the_path_are_put_there(scripts: Path) -> None:
    which = _having(curl="/c", kubectl="/k")
    assert next_steps(Path("/a b/config"), COMMANDS, which, scripts) == [
        f"export PATH='{scripts}':\"$PATH\"",
        "export KUBECONFIG='/a b/config'",
        *COMMANDS,
    ]


def test_the_plugin_of_another_installation_is_not_taken_for_ours(scripts: Path) -> None:
    which = _having(kubectl_ws="/usr/bin/kubectl-ws")
    assert next_steps(Path("/c"), [], which, scripts)[0].startswith("export PATH=")


def test_a_path_that_has_them_is_left_alone(scripts: Path) -> None:
    which = _having(kubectl_ws=str(scripts / "kubectl-ws"))
    assert next_steps(Path("/c"), [], which, scripts) == ["export KUBECONFIG=/c"]


def test_what_this_machine_does_not_have_is_not_suggested(scripts: Path) -> None:
    steps = next_steps(Path("/c"), COMMANDS, _having(), scripts)
    assert steps[-1] == "skerry fleet"
    assert len(steps) == 3
