"""The map of the product names functions that exist, in an order that can be derived."""

from __future__ import annotations

import ast
import inspect
from importlib import import_module
from importlib.util import find_spec

import pytest

from skerry.logic.fleet.tables import chain
from skerry.logic.fleet.tables.chain import AT_EDGE, CHAIN, ChainTable

DERIVED = [table for table in (*CHAIN, *AT_EDGE) if table.kind == "derived"]


def test_the_tables_come_in_the_order_of_the_chain() -> None:
    derived = [table.name for table in CHAIN if table.kind == "derived"]

    assert derived == [
        "destination",
        "selected",
        "manifest",
        "route",
        "desired",
        "difference",
        "report",
        "tally",
        "standing",
    ]


def test_no_table_is_listed_twice() -> None:
    for tables in (CHAIN, AT_EDGE):
        names = [table.name for table in tables]
        assert len(names) == len(set(names))


@pytest.mark.parametrize("table", DERIVED, ids=lambda table: f"{table.owner} {table.name}")
def test_the_derivation_and_its_twin_exist(table: ChainTable) -> None:
    for text in (table.derived_by, table.reference):
        module, _, name = text.partition(":")
        assert callable(getattr(import_module(module), name)), text


@pytest.mark.parametrize("table", DERIVED, ids=lambda table: f"{table.owner} {table.name}")
def test_a_derivation_lives_in_the_module_named_like_its_table(table: ChainTable) -> None:
    module = table.derived_by.partition(":")[0]

    assert module.rpartition(".")[2] == table.name


def test_a_table_without_a_derivation_is_watched_and_says_what() -> None:
    for table in (*CHAIN, *AT_EDGE):
        if table.kind == "watched":
            assert table.source, table.name
            assert not table.derived_by, table.name


def _drawn(text: str) -> tuple[list[str], list[str]]:
    """Return the watched and the derived tables of a drawing in the module's text."""
    watched, _, derived = text.partition("derived")
    names = watched.replace("watched", " ").split()
    lines = (line.split() for line in ("derived" + derived).splitlines() if line.strip())
    rows = [line[1] if line[0] == "derived" else line[0] for line in lines]
    return names, rows


def test_the_drawing_of_the_chain_has_its_tables_and_no_others() -> None:
    drawing = (chain.__doc__ or "").split("::\n")[1].split("\n\nBetween")[0]

    watched, derived = _drawn(drawing)

    assert sorted(watched) == sorted(each.name for each in CHAIN if each.kind == "watched")
    assert derived == [each.name for each in CHAIN if each.kind == "derived"]


def test_the_drawing_of_the_edge_has_its_tables_in_their_order() -> None:
    drawing = (chain.__doc__ or "").split("::\n")[2].split("\n\nEach of these")[0]

    rows = [line.removeprefix("    watched").removeprefix("    derived").split()[0]
            for line in drawing.splitlines() if line.strip()]  # fmt: skip

    assert sorted(rows) == sorted(each.name for each in AT_EDGE)
    assert [row for row in rows if row != "recorded"] == [
        each.name for each in AT_EDGE if each.kind == "derived"
    ]


def test_what_a_syncer_derives_is_a_function_of_one_item_and_its_own_twin() -> None:
    for table in AT_EDGE:
        assert table.key == "item", table.name
        assert table.derived_by == table.reference, table.name


@pytest.mark.parametrize(
    "table", [*CHAIN, *AT_EDGE], ids=lambda table: f"{table.owner} {table.name}"
)
def test_whoever_keeps_a_table_is_a_controller_or_the_syncer(table: ChainTable) -> None:
    for owner in table.owner.split(", "):
        package = "edge" if owner == "syncer" else "controllers"
        assert find_spec(f"skerry.{package}.{owner.replace(' ', '_')}") is not None, owner


def test_a_derived_table_is_kept_by_one_owner_and_read_from_no_objects() -> None:
    for table in DERIVED:
        assert "," not in table.owner, table.name
        assert not table.source, table.name


def test_the_map_imports_nothing_that_it_names() -> None:
    """So whoever derives a table may read the map."""
    named = {
        text.partition(":")[0] for each in DERIVED for text in (each.derived_by, each.reference)
    }
    tree = ast.parse(inspect.getsource(chain))
    imported = {
        found
        for node in ast.walk(tree)
        for found in (
            [each.name for each in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert not named & imported
    assert not any(each.startswith("skerry") for each in imported)
