"""The map of the product names functions that exist, in an order that can be derived."""

from __future__ import annotations

from importlib import import_module

import pytest

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
