"""Answers are shown as tables and CSV, and what is missing is said."""

from __future__ import annotations

from skerry.api.objects import Object
from skerry.logic.fleet.query.text import as_csv, notes, table

STATUS: Object = {
    "columns": [
        {"name": "region", "type": "string"},
        {"name": "p99", "type": "double", "approximate": True},
        {"name": "worst", "type": "list"},
    ],
    "rows": [
        {"values": ["=1+1", 1240.5, [{"value": 9, "show": "shop-17"}]]},
        {"values": ["a\x1b[31m", None, []]},
        {"values": [True, 2, [{"value": 1, "show": None}]]},
    ],
    "rowsOmitted": 3,
    "sources": {"destinations": 10, "reporting": 8, "stale": 1, "absent": 2},
    "errors": {
        "rows": 1,
        "excluded": 0,
        "samples": [{"location": "oslo", "object": "s/w", "column": "p99", "message": "no key"}],
    },
}


def test_a_table_has_a_head_and_one_cell_for_each_value() -> None:
    assert table(STATUS) == [
        ["REGION", "P99", "WORST"],
        ["=1+1", "1240.5", "shop-17=9"],
        ["a?[31m", "-", "-"],
        ["true", "2", "-=1"],
    ]


def test_no_cell_of_csv_is_a_formula() -> None:
    first, second, *_ = as_csv(STATUS).splitlines()
    assert first == "region,p99,worst"
    assert second.startswith("'=1+1,1240.5,")


def test_what_a_reader_should_know_is_said() -> None:
    assert list(notes(STATUS)) == [
        "2 of 10 rows have no copy yet",
        "1 reports are stale",
        "3 more rows are not shown",
        "within 1 %: p99",
        "1 rows have errors, 0 are left out for that",
        "  oslo s/w: p99: no key",
    ]
    assert list(notes({})) == []


def test_a_note_is_one_line_of_text_whatever_an_edge_has_written() -> None:
    sample = {
        "location": "os\x1blo",
        "object": "s/w",
        "column": "p99",
        "message": "no such key: \x1b[2Jevil\nall is well",
    }
    status = {"errors": {"rows": 1, "excluded": 0, "samples": [sample]}}
    assert list(notes(status))[1] == "  os?lo s/w: p99: no such key: ?[2Jevil all is well"
