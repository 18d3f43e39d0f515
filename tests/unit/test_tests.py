"""How the tests are built: what they share is in ``tests.kit``, and nowhere else."""

from __future__ import annotations

import ast
from pathlib import Path

TESTS = Path(__file__).parents[1]


def imported(source: str) -> set[str]:
    """Return the modules of ``tests`` that *source* imports, as far as its text tells."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if name.split(".")[0] == "tests"}


def test_test_modules_import_nothing_of_the_tests_but_the_kit() -> None:
    wrong = {
        str(path.relative_to(TESTS)): sorted(other)
        for path in sorted(TESTS.rglob("*.py"))
        if (other := {n for n in imported(path.read_text()) if not n.startswith("tests.kit.")})
    }
    assert not wrong, "move what is shared to tests/kit"


def test_imports_of_other_test_modules_are_seen_in_every_form() -> None:
    assert imported("import tests.unit.a") == {"tests.unit.a"}
    assert imported("from tests.sim import loop") == {"tests.sim.loop"}
    assert imported("def f():\n    from tests.e2e.b import c") == {"tests.e2e.b.c"}
    assert imported("from skerry.kit import log\nimport pytest") == set()
