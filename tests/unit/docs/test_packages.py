"""A package of the edge chain says what each of its modules is for.

Whoever opens a folder reads ``__init__.py`` first; a module that is not named there is found by
chance, and one that is named there and gone sends people looking.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from skerry.logic.fleet.tables.chain import AT_EDGE, CHAIN

_SOURCE = Path(__file__).parents[3] / "src" / "skerry"
_CHAIN = (
    "logic/fleet",
    "controllers/edge_scheduler",
    "controllers/mailbox",
    "controllers/placement_translator",
    "controllers/status_queries",
    "controllers/summarizer",
    "edge/syncer",
)
_PACKAGES = sorted(
    file.parent.relative_to(_SOURCE).as_posix()
    for top in _CHAIN
    for file in (_SOURCE / top).rglob("__init__.py")
    # The console's package grows with its views.
    if file.parent.name != "console"
)


@pytest.mark.parametrize("package", _PACKAGES)
def test_a_package_names_its_modules_and_packages(package: str) -> None:
    folder = _SOURCE / package
    docstring = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
    named = set(re.findall(r"``([a-z_]+)``", docstring))
    modules = {file.stem for file in folder.glob("*.py")} - {"__init__"}
    packages = {file.parent.name for file in folder.glob("*/__init__.py")}
    assert not sorted((modules | packages) - named), f"say in {package} what they are for"
    listed = set(re.findall(r"^\* ``([a-z_]+)``", docstring, re.M))
    # The syncer's tables are listed by their names.
    tables = {table.name for table in (*CHAIN, *AT_EDGE)}
    assert not sorted(listed - modules - packages - tables), f"{package} names what is not there"
