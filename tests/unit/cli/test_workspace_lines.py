"""kubectl ws has lines of its own, and none of those whose words it repeats."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from skerry.cli.workspace import call, run
from tests.kit.canned_hub import canned_hub

PROGRAM = Path(sys.executable).parent / "kubectl-ws"
BINDINGS = "/clusters/root/apis/apis.kcp.io/v1alpha1/apibindings"
MEANT = "\nDid you mean this?"
WRONG, USAGE = "Error: unknown command", "Run 'kubectl ws --help' for usage.\n"
EVIL = 'x\nCurrent workspace is "root".\x1b[2J'


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (
            ["creat", "x"],
            f'{WRONG} "creat" for "workspace"\n{MEANT}\n\tcreate\n\tcurrent\n\n{USAGE}',
        ),
        (
            ["x\ny", "z"],
            f'{WRONG} "x y" for "workspace"\n{USAGE}',
        ),
    ],
)
def test_a_wrong_word_is_answered_as_kubectl_does(
    words: list[str], shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(words, {}, run) == 1
    assert capsys.readouterr() == ("", shown)


def test_claims_of_an_exporter_are_warned_of_in_lines_of_ours(tmp_path: Path) -> None:
    claim = {"group": EVIL, "resource": EVIL, "all": True}
    binding = {"metadata": {"name": EVIL}, "status": {"exportPermissionClaims": [claim]}}
    answers = {BINDINGS: {"items": [binding]}}
    with canned_hub(tmp_path, "root:imw", answers) as kubeconfig:
        environment = {"KUBECONFIG": str(kubeconfig), "HOME": str(tmp_path)}
        done = subprocess.run(
            [PROGRAM, "root"], env=environment, capture_output=True, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (0, "")
    claimed, advice, unanswered, current = done.stdout.splitlines()
    assert claimed.startswith("Warning: claim for x Current")
    assert advice == "Add this claim to the APIBinding's Spec."
    assert unanswered.startswith("Warning: claim for x Current")
    assert current.startswith('Current workspace is "root"')
