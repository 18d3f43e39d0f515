"""A chain verifies, or its first break is named."""

from __future__ import annotations

import pytest

from skerry.logic.fleet.history.chain import verify
from skerry.logic.fleet.history.record import checkpoint_of, digest, order_of
from tests.kit.decisions import MAKER, SUBJECT, random_history


@pytest.mark.parametrize("seed", range(20))
def test_a_chain_that_nobody_touched_verifies(seed: int) -> None:
    assert verify(random_history(seed).records) == []


@pytest.mark.parametrize("seed", range(20))
def test_a_record_that_is_missing_is_a_break_at_the_one_that_follows_it(seed: int) -> None:
    records = random_history(seed).records
    for gone in range(len(records) - 1):
        [found] = verify([*records[:gone], *records[gone + 1 :]])
        assert found.name == records[gone + 1]["metadata"]["name"]
        assert digest(records[gone])[:8] in found.text


def test_a_record_that_was_edited_is_a_break() -> None:
    records = random_history(2).records
    records[1] = {**records[1], "reason": {"code": "Other"}}
    assert [each.name for each in verify(records)] == [records[2]["metadata"]["name"]]
    records[1] = {**records[1], "change": "Held"}
    assert verify(records)[0].name == records[1]["metadata"]["name"]


def test_what_a_checkpoint_stands_for_is_no_gap() -> None:
    history = random_history(4)
    middle = len(history.records) // 2
    last = history.records[middle - 1]
    order = order_of(last["metadata"]["name"])
    assert order is not None
    stands = checkpoint_of(
        [], SUBJECT, MAKER, after=order, time=history.now, chains={MAKER.controller: digest(last)}
    )
    assert verify([*stands, *history.records[middle:]]) == []
    assert verify([*history.records[:middle], *stands, *history.records[middle:]]) == []
    assert verify(history.records[middle:]) != []


def test_two_writers_that_did_not_know_of_each_other_are_a_break() -> None:
    one, two = random_history(2).records, random_history(4).records
    assert verify(sorted([*one, *two], key=lambda each: each["metadata"]["name"])) != []
