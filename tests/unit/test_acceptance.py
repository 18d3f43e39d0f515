"""The table of the console's acceptance tests names tests that there are, for each of them."""

from __future__ import annotations

import re
from pathlib import Path

BROWSER = Path(__file__).parents[1] / "browser"
_ROW = re.compile(r"^\| (\d+) \| [^|]+ \| (.+) \|$", re.M)


def test_every_acceptance_test_of_the_console_is_one_that_runs() -> None:
    rows = _ROW.findall((BROWSER / "__init__.py").read_text())
    assert [int(number) for number, _ in rows] == list(range(1, 26))
    source = "".join(path.read_text() for path in BROWSER.glob("test_*.py"))
    there = set(re.findall(r"^def (test_\w+)\(", source, re.M))
    for number, shown in rows:
        named = set(re.findall(r"test_\w+", shown))
        assert named or "``signed_in``" in shown, number
        assert named <= there, f"{number}: {named - there}"
