"""What columns show of fields that may be absent, null or of another form."""

from __future__ import annotations

import pytest

from skerry.logic.machinery.printing.cells import (
    condition,
    is_terminating,
    is_true,
    items,
    labels_text,
    name_of,
    number,
    read,
    selector_text,
    shortened,
    text,
)


@pytest.mark.parametrize("obj", [{}, {"a": None}, {"a": {"b": None}}, {"a": 7}, None, "x"])
def test_what_is_not_there_reads_as_nothing(obj: object) -> None:
    assert read(obj, "a", "b") is None
    assert list(items(obj, "a", "b")) == []
    assert number(obj, "a", "b") == 0
    assert text(obj, "a", "b") == ""


def test_what_is_there_is_shown() -> None:
    obj = {"a": {"b": 7, "c": [1]}, "metadata": {"name": "x", "deletionTimestamp": "now"}}
    assert (number(obj, "a", "b"), text(obj, "a", "b"), list(items(obj, "a", "c"))) == (7, "7", [1])
    assert (name_of(obj), is_terminating(obj)) == ("x", True)


def test_a_condition_holds_only_when_it_is_there_and_true() -> None:
    obj = {
        "status": {
            "conditions": [{"type": "A", "status": "True"}, {"type": "B", "status": "Unknown"}]
        }
    }
    assert is_true(obj, "A")
    assert not is_true(obj, "B")
    assert not is_true(obj, "C")
    assert condition(obj, "B") == {"type": "B", "status": "Unknown"}
    assert condition({"elsewhere": [{"type": "A"}]}, "A", "elsewhere") == {"type": "A"}


@pytest.mark.parametrize(
    ("labels", "shown"),
    [(None, "<none>"), ({}, "<none>"), ({"b": "2", "a": "1"}, "a=1,b=2"), (["x"], "<none>")],
)
def test_labels_are_in_order(labels: object, shown: str) -> None:
    assert labels_text(labels) == shown


def test_a_selector_is_shown_as_the_query_it_means() -> None:
    terms = [
        {"key": "z", "operator": "NotIn", "values": ["2", "1"]},
        {"key": "c", "operator": "Exists"},
        {"key": "d", "operator": "DoesNotExist"},
        {"key": "b", "operator": "In", "values": ["x"]},
    ]
    selector = {"matchLabels": {"a": "1"}, "matchExpressions": terms}
    assert selector_text(selector) == "a=1,b in (x),c,!d,z notin (1,2)"
    assert selector_text({}) == "<none>"
    assert selector_text({"matchExpressions": [{"key": "a", "operator": "Like"}]}) == "<error>"


def test_a_long_list_says_how_much_is_not_shown() -> None:
    assert shortened(["a", "b", "c"], 3) == "a,b,c"
    assert shortened(["a", "b", "c", "d", "e"], 5) == "a,b,c + 2 more..."
