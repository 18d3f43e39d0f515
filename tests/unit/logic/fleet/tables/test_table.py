from __future__ import annotations

import pytest

from skerry.kit.invariant import InvariantError
from skerry.logic.fleet.tables.flow import Dataflow
from skerry.logic.fleet.tables.table import Change, Table


@pytest.fixture
def table() -> Table[str, int]:
    found: Table[str, int] = Dataflow().table("numbers")
    return found


def test_a_row_is_read_as_soon_as_it_is_written(table: Table[str, int]) -> None:
    table.put("a", 1)

    assert table.get("a") == 1
    assert "a" in table
    assert len(table) == 1


def test_rows_come_in_the_order_of_their_keys(table: Table[str, int]) -> None:
    for key in ("b", "c", "a"):
        table.put(key, 1)

    assert list(table) == ["a", "b", "c"]
    assert table.items() == [("a", 1), ("b", 1), ("c", 1)]


def test_dropping_what_is_not_there_is_no_change(table: Table[str, int]) -> None:
    table.drop("a")

    assert table.changes() == []


def test_writes_to_one_key_consolidate(table: Table[str, int]) -> None:
    table.put("a", 1)
    table.put("a", 2)
    table.put("b", 1)
    table.drop("b")

    assert table.changes() == [Change("a", None, 2)]


def test_a_derived_table_is_written_by_its_operator_alone() -> None:
    flow = Dataflow()
    source: Table[str, int] = flow.table("numbers")
    doubled = flow.map("doubled", source, lambda _, row: row * 2)

    with pytest.raises(InvariantError, match="doubled is derived"):
        doubled.put("a", 1)
    with pytest.raises(InvariantError, match="doubled is derived"):
        doubled.drop("a")


def test_a_table_shows_its_name_and_size(table: Table[str, int]) -> None:
    assert repr(table) == "<Table numbers: 0 rows>"
