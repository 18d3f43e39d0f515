"""What the tables promise, whatever the inputs, the batches and how they are cut."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.kit.invariant import InvariantError
from skerry.logic.fleet.tables.flow import Dataflow
from tests.kit.chain.table_model import Model, Write, batches, reference, writes

# A loaded machine is no bug; a few dozen histories of forty writes find what there is to find.
unhurried = settings(deadline=None, max_examples=60)


@unhurried
@given(batches)
def test_every_derived_table_equals_its_reference_after_every_batch(
    history: list[list[Write]],
) -> None:
    model = Model()

    for batch in history:
        model.settle(batch)

        assert model.rows() == reference(model.given())


@unhurried
@given(batches)
def test_the_changes_of_a_batch_lead_from_the_rows_before_to_the_rows_after(
    history: list[list[Write]],
) -> None:
    model = Model()
    copies: dict[str, dict[Any, Any]] = {name: {} for name in model.derived}

    for batch in history:
        settled = model.settle(batch)

        for name, table in model.derived.items():
            changes = settled.changes(table)
            assert [change.key for change in changes] == sorted(c.key for c in changes)
            for key, old, new in changes:
                assert copies[name].get(key) == old
                assert old != new
                if new is None:
                    del copies[name][key]
                else:
                    copies[name][key] = new
            assert copies[name] == dict(table.items())


@unhurried
@given(batches)
def test_the_keys_of_a_product_are_exactly_those_whose_rows_differ(
    history: list[list[Write]],
) -> None:
    model = Model()

    for batch in history:
        before = model.rows()["product"]
        settled = model.settle(batch)
        after = model.rows()["product"]

        keys = list(settled.keys(model.product))
        differing = {
            key for key in before.keys() | after.keys() if before.get(key) != after.get(key)
        }
        assert len(keys) == len(set(keys))
        assert differing <= set(keys)
        assert set(keys) <= before.keys() | after.keys()


@unhurried
@given(batches)
def test_every_group_that_comes_to_something_else_is_said_to_be_touched(
    history: list[list[Write]],
) -> None:
    model = Model()

    for batch in history:
        before = model.rows()["sums_of_products"]
        settled = model.settle(batch)
        after = model.rows()["sums_of_products"]

        differing = {
            key for key in before.keys() | after.keys() if before.get(key) != after.get(key)
        }
        assert differing <= set(settled.groups(model.folded))


@unhurried
@given(batches, st.lists(writes, max_size=8))
def test_how_a_batch_is_split_makes_no_difference_in_the_end(
    history: list[list[Write]], batch: list[Write]
) -> None:
    whole, split = Model(), Model()
    for each in history:
        whole.settle(each)
        split.settle(each)

    whole.settle(batch)
    for write in batch:
        split.settle([write])

    assert whole.rows() == split.rows()


@unhurried
@given(
    batches,
    st.lists(writes, max_size=8, unique_by=lambda write: (write[0], write[1])).flatmap(
        lambda batch: st.tuples(st.just(batch), st.permutations(batch))
    ),
)
def test_how_a_batch_is_ordered_makes_no_difference_at_all(
    history: list[list[Write]], orders: tuple[list[Write], list[Write]]
) -> None:
    one, other = Model(), Model()
    for each in history:
        one.settle(each)
        other.settle(each)

    first, second = one.settle(orders[0]), other.settle(orders[1])

    for name, table in one.derived.items():
        assert first.changes(table) == second.changes(other.derived[name])
    assert list(first.keys(one.product)) == list(second.keys(other.product))
    assert first.groups(one.folded) == second.groups(other.folded)


def test_a_settled_batch_is_not_read_after_a_later_write() -> None:
    model = Model()
    settled = model.settle([("left", "a", 1)])
    model.left.put("a", 2)

    with pytest.raises(InvariantError, match="later write"):
        settled.changes(model.left)


def test_a_settled_batch_is_not_read_after_a_later_settling() -> None:
    model = Model()
    settled = model.settle([("left", "a", 1)])
    model.flow.settle()

    with pytest.raises(InvariantError, match="later write"):
        list(settled.keys(model.product))


def test_a_batch_in_which_nothing_was_written_is_empty() -> None:
    model = Model()

    assert not model.settle([])
    assert model.settle([("left", "a", 1)])
    assert not model.settle([("left", "a", 1)])


def test_a_row_that_comes_back_to_what_it_was_is_no_change() -> None:
    model = Model()
    model.settle([("left", "a", 1)])

    settled = model.settle([("left", "a", 2), ("left", "a", 1)])

    assert settled.changes(model.left) == []
    assert settled.changes(model.derived["mapped"]) == []


def test_a_cell_changes_its_fold_though_its_place_was_taken_away_and_given_back() -> None:
    model = Model()
    model.settle([("left", "a", 1), ("right", "a", 1), ("where", ("a", "b"), 1)])

    model.settle([("where", ("a", "b"), None), ("where", ("a", "b"), 1), ("cells", ("a", "b"), 3)])

    assert model.sums_of_products.get(("a", "a")) == (1, 14)


def test_nothing_derives_from_a_table_that_has_rows_already() -> None:
    flow = Dataflow()
    table = flow.table("late")
    table.put("a", 1)

    with pytest.raises(InvariantError, match="late has rows"):
        flow.map("mapped", table, lambda _, row: row)


# -- costs, in rows touched ------------------------------------------------------------------


def _fleet(items: int, edges: int) -> Model:
    """Return placement ``a`` with so many items and destinations."""
    model = Model()
    model.settle(
        [
            ("left", "a", 1),
            *(("right", f"item-{n:04}", 1 + 4 * n) for n in range(items)),
            *(("where", ("a", f"edge-{n:04}"), 1) for n in range(edges)),
        ]
    )
    return model


def _cost(model: Model, batch: list[Write]) -> int:
    before = model.flow.touched
    model.settle(batch)
    return model.flow.touched - before


@pytest.mark.parametrize("edges", [10, 100])
def test_a_report_costs_the_same_whatever_the_size_of_the_fleet(edges: int) -> None:
    model = _fleet(items=20, edges=edges)

    assert _cost(model, [("cells", ("item-0003", "edge-0004"), 5)]) == 3


def test_a_destination_costs_one_row_for_each_item() -> None:
    few, many = _fleet(items=20, edges=10), _fleet(items=20, edges=100)
    batch: list[Write] = [("where", ("a", "edge-0999"), 1)]

    # Twenty folds, the rows they come to, and what is attached to the destination.
    assert _cost(few, batch) == _cost(many, batch) == 41


def test_a_fact_of_a_destination_costs_one_row_for_each_item() -> None:
    few, many = _fleet(items=20, edges=10), _fleet(items=20, edges=100)
    batch: list[Write] = [("facts", "edge-0004", 3)]

    assert _cost(few, batch) == _cost(many, batch) == 41


def test_an_item_costs_one_row_for_each_destination_and_none_of_other_items() -> None:
    few, many = _fleet(items=5, edges=50), _fleet(items=50, edges=50)
    batch: list[Write] = [("right", "item-0999", 1)]

    assert _cost(few, batch) == _cost(many, batch) <= 50 + 10


def test_the_keys_of_a_product_are_made_as_they_are_asked_for() -> None:
    model = _fleet(items=3, edges=100)
    settled = model.settle([("right", "item-0999", 1)])

    keys = settled.keys(model.product)

    assert next(keys) == ("a", "item-0999", "edge-0000")
    assert sum(1 for _ in keys) == 99


def test_a_row_that_goes_costs_what_it_takes_along() -> None:
    model = _fleet(items=30, edges=0)

    assert _cost(model, [("right", "item-0003", None)]) <= 6


def test_a_batch_without_a_change_costs_nothing() -> None:
    model = _fleet(items=5, edges=5)

    assert _cost(model, [("left", "a", 1), ("cells", ("x", "y"), None)]) == 0
