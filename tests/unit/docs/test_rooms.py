"""The picture of the rooms is what the imports say, and the paths beside it lead somewhere."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[3]
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()


def rooms() -> ModuleType:
    spec = importlib.util.spec_from_file_location("rooms", ROOT / "docs" / "rooms.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_picture_of_the_rooms_is_current() -> None:
    assert rooms().drawn(ARCHITECTURE) == ARCHITECTURE, "run `make docs`"


def test_an_arrow_that_follows_from_others_is_left_out() -> None:
    graph = {"a": {"b", "c"}, "b": {"c"}, "c": set()}
    assert rooms().reduced(graph) == {"a": {"b"}, "b": {"c"}, "c": set()}


def test_every_behaviour_is_where_the_table_says() -> None:
    table = ARCHITECTURE.partition("| behaviour | found in |")[2].partition("\n\n")[0]
    paths = [row.split("|")[2].strip(" `") for row in table.splitlines()[2:]]
    assert len(paths) == 10
    assert [path for path in paths if not (ROOT / "src" / "skerry" / path).exists()] == []


def test_paths_named_in_the_text_exist() -> None:
    named = re.findall(r"`((?:app|server|logic|runtime|edge|docs|tests)/[\w/.]+)`", ARCHITECTURE)
    places = (ROOT / "src" / "skerry", ROOT)
    missing = [
        path
        for path in named
        if not any((place / path).exists() for place in places) and not _is_member(path)
    ]
    assert missing == []


def _is_member(path: str) -> bool:
    """Tell whether a path names a member of a module, as in ``resource.Resource``."""
    module = path.rpartition(".")[0]
    return (ROOT / "src" / "skerry" / f"{module}.py").exists()
