"""Names of the edge API, kcp's types and mailboxes are spelled in ``skerry.api`` and nowhere else.

A name that is spelled twice is changed once. What this finds has a constant in ``api.edge``,
``api.edge_identity`` or ``api.kcp.resources``, or deserves one there.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import skerry

SOURCE = Path(skerry.__file__).parent
HOME = SOURCE / "api"
TYPES = ("GroupVersionResource", "GroupResource", "wide")
# A label, annotation or type of Secret; not the group itself, its versions or those of audit.
MARK = re.compile(r"(?<![\w.])edge\.kcp\.io/(?!v1)[a-z]").search
MAILBOX = "-mb-"

# Files that may spell some, each with the reason.
ALLOWED = {
    "logic/fleet/syncing/difference.py": "a message tells the user what to write, verbatim",
}


def spelled(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and text of every name that has its home elsewhere."""
    prose = {id(node) for node in _docstrings(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _called(node) in TYPES and node.args:
            group = node.args[0]
            if isinstance(group, ast.Constant) and str(group.value).endswith("kcp.io"):
                yield node.lineno, f"{_called(node)}({group.value!r}, …)"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            named = MARK(node.value) or MAILBOX in node.value
            if named and id(node) not in prose:
                yield node.lineno, repr(node.value)


def _called(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _docstrings(tree: ast.Module) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


def test_names_have_one_home() -> None:
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        name = str(path.relative_to(SOURCE))
        if not path.is_relative_to(HOME):
            found[name] = list(spelled(ast.parse(path.read_text())))
    offenders = {name: names for name, names in found.items() if names}
    assert {n: names for n, names in offenders.items() if n not in ALLOWED} == {}
    assert sorted(set(ALLOWED) - set(offenders)) == [], "these need their entry no longer"


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ('X = GroupVersionResource("workload.kcp.io", "v1alpha1", "synctargets")', 1),
        ('X = GroupVersionResource("apps", "v1", "deployments")', 0),
        ('X = "edge.kcp.io/projected"', 1),
        ('X = f"{name} edge.kcp.io/projected!=yes"', 1),
        ('X = f"{cluster}-mb-{uid}"', 1),
        ('X = "audit.edge.kcp.io/suppressed-events"', 0),
        ('X = "edge.kcp.io"', 0),
        ('"""Labels copies with edge.kcp.io/projected."""', 0),
    ],
)
def test_what_is_looked_for_is_found(line: str, count: int) -> None:
    assert len(list(spelled(ast.parse(line)))) == count
