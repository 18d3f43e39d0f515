"""What a person decides by is printed line by line, whatever an edge or a tenant calls things."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from skerry.cli.main import main
from tests.kit.canned_hub import canned_hub

INVENTORY = "/clusters/root:imw/apis/edge.kcp.io/v1alpha1"
TARGET = "/clusters/root:imw/apis/workload.kcp.io/v1alpha1/synctargets/florin"
CONFIG = "/clusters/root:espw:1-mb-u1/apis/edge.kcp.io/v1alpha1/syncerconfigs/the-one"
CONSENT = f"{INVENTORY}/locationconsents/default"
RECORDS = f"{INVENTORY}/decisionrecords"
# Lines of another answer, which clears what came before it, and one that only looks like a line.
FORGED = "pod a\n  and nothing else\r\nedge y holds 1 deletions (id ok):\x1b[2J\x9b2J\u202e\u2028c"
PADDED = f"pod b{' ' * 200}\u00a0\u200bedge y holds no deletions"


def called(folder: Path, answers: Mapping[str, Any], *words: str) -> Result:
    with canned_hub(folder, "root:imw", answers) as kubeconfig:
        environment = {"KUBECONFIG": str(kubeconfig), "HOME": str(folder), "SKERRY_HOME": ""}
        return CliRunner().invoke(main, words, env=environment, input="n\n")


def lines_of(result: Result, text: str) -> list[str]:
    """Return the lines of one output, all of which are only read."""
    lines = text.split("\n")
    assert lines.pop() == ""
    assert all(line.isprintable() for line in lines), result.output
    return lines


def edge_reporting(status: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {"name": "florin", "uid": "u1", "annotations": {"kcp.io/cluster": "1"}}
    return {TARGET: {"metadata": metadata}, CONFIG: {"metadata": {}, "status": status}}


@pytest.mark.parametrize("output", ["text", "json"])
@pytest.mark.parametrize("name", [FORGED, PADDED], ids=["forged", "padded"])
def test_held_deletions_are_a_line_each(tmp_path: Path, name: str, output: str) -> None:
    held = {"count": 5, "approve": name, "names": [name, "pod web", name]}
    words = ("edge", "approve-deletions", "florin", "--imw", "root:imw", "-o", output, "--yes")
    result = called(tmp_path, edge_reporting({"heldDeletions": held}), *words)
    assert result.exit_code == 0
    lines = lines_of(result, result.stdout if output == "text" else result.stderr)
    if output == "text":
        assert lines.pop() == "edge florin: 5 deletions approved"
    assert len(lines) == 1 + len(held["names"]) + 1  # type: ignore[arg-type]
    assert lines[0].startswith("edge florin holds 5 deletions (id pod ")
    assert lines[1].startswith("  pod ")
    assert lines[2:] == ["  pod web", lines[1], "  and 2 more"]
    assert "  " not in "".join(line.lstrip() for line in lines), "nothing breaks a line by itself"


@pytest.mark.parametrize("yes", [True, False])
def test_what_an_edge_says_of_a_store_is_one_line(tmp_path: Path, yes: bool) -> None:
    message = (
        f"another store\n{FORGED}; annotate with edge.kcp.io/accept-store-identity=b\n{FORGED}"
    )
    condition = {"type": "HubIdentityChanged", "status": "True", "message": message}
    words = ["edge", "accept-store", "florin", "--imw", "root:imw", *(["--yes"] if yes else [])]
    result = called(tmp_path, edge_reporting({"conditions": [condition]}), *words)
    shown, *after = lines_of(result, result.stdout)
    assert shown.startswith("edge florin: another store pod a and nothing else edge y holds")
    assert len(after) == int(yes)
    assert all(line.startswith("edge florin: store b pod a") for line in after)
    asked = "skerry edge accept-store: not done; add --yes to do it\n"
    assert result.stderr == ("" if yes else asked)


def test_what_is_confirmed_of_grants_is_a_line_each(tmp_path: Path) -> None:
    held = [
        {"id": f"d-{n}", "workspace": FORGED, "count": 1, "names": [FORGED], "reason": FORGED}
        for n in range(2)
    ]
    answers = {CONSENT: {"metadata": {"resourceVersion": "1"}, "destinations": {"held": held}}}
    result = called(tmp_path, answers, "grants", "confirm", "--all")
    assert result.exit_code == 1
    first, second, question, *_ = lines_of(result, result.stdout)
    assert (first[:4], second[:4]) == ("d-0 ", "d-1 ")
    assert question.startswith("Confirm? [y/N]: n")


def test_breaks_of_a_history_are_a_line_each(tmp_path: Path) -> None:
    record = {
        "metadata": {"name": FORGED, "uid": "u", "resourceVersion": "1"},
        "placement": {"name": f"web\n{FORGED}", "uid": "u"},
        "change": FORGED,
    }
    result = called(tmp_path, {RECORDS: {"metadata": {}, "items": [record]}}, "history", "verify")
    assert result.exit_code == 3
    (line,) = lines_of(result, result.stdout)
    assert line.startswith("web pod a   and nothing else")


def test_an_error_of_a_server_is_one_line(tmp_path: Path) -> None:
    error = {"kind": "Status", "code": 400, "reason": "BadRequest", "message": f"no\n{FORGED}"}
    for words in (
        ("edge", "approve-deletions", "florin", "--imw", "root:imw"),
        ("grants", "confirm", "--all"),
        ("history", "verify"),
    ):
        result = called(tmp_path, dict.fromkeys((TARGET, CONSENT, RECORDS), error), *words)
        assert result.exit_code == 1
        (line,) = lines_of(result, result.stderr)
        assert ": no pod a" in line
