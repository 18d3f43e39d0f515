"""Folding records gives what the slices held, or says that it cannot be known."""

from __future__ import annotations

from datetime import timedelta

import pytest

from skerry.logic.fleet.history.fold import UnknownThen, folded, state_at, timeline
from skerry.logic.fleet.history.packing import Standing
from skerry.logic.fleet.history.record import (
    Decision,
    Reason,
    Subject,
    checkpoint_of,
    digest,
    order_of,
    records_of,
)
from tests.kit.decisions import MAKER, NOW, SUBJECT, History, destination, random_history
from tests.kit.sim.world import seeds_of

FAR = NOW + timedelta(days=9)
SEEDS = seeds_of(1, least=60)


@pytest.mark.parametrize("seed", SEEDS)
def test_folding_gives_what_the_slices_held_after_every_change(seed: int) -> None:
    history = random_history(seed)
    line = timeline(reversed(history.records))
    for moment, count, held in history.moments:
        assert folded(line, count).standings == held
        assert not line.records or state_at(line, moment, FAR).standings == held


@pytest.mark.parametrize("seed", SEEDS)
def test_writing_a_record_twice_changes_no_state(seed: int) -> None:
    history = random_history(seed)
    twice = [each for obj in history.records for each in (obj, obj)]
    assert folded(timeline(twice), len(twice)).standings == history.present


@pytest.mark.parametrize("seed", SEEDS)
def test_a_checkpoint_stands_for_what_came_before_it(seed: int) -> None:
    history = random_history(seed)
    for moment, count, held in history.moments:
        if not count:
            continue
        last = history.records[count - 1]
        order = order_of(last["metadata"]["name"])
        assert order is not None
        checkpoint = checkpoint_of(
            list(held.values()),
            SUBJECT,
            MAKER,
            after=order,
            time=moment,
            chains={MAKER.controller: digest(last)},
        )
        line = timeline([*history.records[count:], *checkpoint])
        for later, _, after in history.moments:
            if later >= moment:
                assert state_at(line, later, FAR).standings == after
            else:
                with pytest.raises(UnknownThen, match="begins at"):
                    state_at(line, later, FAR)


def test_what_has_not_come_and_what_is_not_kept_is_not_guessed() -> None:
    history = random_history(1)
    with pytest.raises(UnknownThen, match="not come yet"):
        state_at(timeline(history.records), FAR, NOW)
    with pytest.raises(UnknownThen, match="no history is kept"):
        state_at(timeline([]), NOW, FAR)


def test_before_the_first_record_of_a_whole_history_there_was_nothing() -> None:
    line = timeline(random_history(1).records)
    assert state_at(line, NOW - timedelta(days=1), FAR).standings == {}


def test_from_a_corrupt_record_on_the_state_is_unknown_until_a_checkpoint() -> None:
    history = random_history(3)
    bad = len(history.records) // 2
    history.records[bad] = {**history.records[bad], "change": "Held"}
    line = timeline(history.records)
    folded(line, bad)
    with pytest.raises(UnknownThen, match=history.records[bad]["metadata"]["name"]):
        folded(line, bad + 1)
    order = order_of(history.records[-1]["metadata"]["name"])
    assert order is not None
    stands = checkpoint_of(
        list(history.present.values()), SUBJECT, MAKER, after=order, time=history.now, chains={}
    )
    again = timeline([*history.records, *stands])
    assert state_at(again, history.now, FAR).standings == history.present


def test_an_object_that_has_no_name_of_a_record_is_reported_and_changes_nothing() -> None:
    history = random_history(3)
    line = timeline([*history.records, {"metadata": {"name": "mine"}}])
    assert line.strangers
    assert folded(line, len(history.records)).standings == history.present


def test_another_placement_of_the_same_name_begins_with_nothing() -> None:
    first, second = History(), History(Subject("web", "another"), 500)
    first.become({destination(1): Standing(destination(1))})
    second.become({destination(2): Standing(destination(2))})
    line = timeline([*first.records, *second.records])
    assert set(folded(line, 2).standings) == {destination(2)}


@pytest.mark.parametrize("missing", [0, 1])
def test_a_checkpoint_without_all_its_pages_stands_for_nothing(missing: int) -> None:
    history = History()
    many = {destination(number): Standing(destination(number)) for number in range(5_001)}
    history.become(many)
    order = order_of(history.records[-1]["metadata"]["name"])
    assert order is not None
    pages = checkpoint_of(
        list(many.values()), SUBJECT, MAKER, after=order, time=history.now, chains={}
    )
    assert len(pages) == 2
    left = [page for number, page in enumerate(pages) if number != missing]
    line = timeline([*history.records, *left])
    assert folded(line, len(line.records)).standings == many
    # What it was to stand for is gone: then nothing is known, and nothing is guessed.
    alone = timeline(left)
    with pytest.raises(UnknownThen, match="no checkpoint stands for them"):
        folded(alone, 1)
    # Of a whole one the same is known at its last page, and before it nothing.
    both = timeline(pages)
    assert folded(both, 2).standings == many
    with pytest.raises(UnknownThen):
        folded(both, 1)


@pytest.mark.parametrize("missing", [None, 0, 1, 2])
def test_a_checkpoint_that_begins_a_chain_stands_with_all_its_pages(missing: int | None) -> None:
    many = [Standing(destination(number)) for number in range(12_000)]
    begin = Decision("Checkpoint", tuple(many), Reason("HistoryBegins"))
    pages = records_of([begin], SUBJECT, MAKER, follows=5, head=None, now=NOW)
    assert len(pages) == 3
    line = timeline([page for number, page in enumerate(pages) if number != missing])
    if missing is None:
        assert len(folded(line, 3).standings) == 12_000
    else:
        with pytest.raises(UnknownThen):
            folded(line, 2)


def test_checkpoints_of_two_sorts_at_one_place_are_two() -> None:
    many = [Standing(destination(number)) for number in range(5_001)]
    begin = Decision("Checkpoint", tuple(many), Reason("HistoryBegins"))
    chained = records_of([begin], SUBJECT, MAKER, follows=5, head=None, now=NOW)
    order = order_of(chained[-1]["metadata"]["name"])
    assert order is not None
    stands = checkpoint_of(many, SUBJECT, MAKER, after=order, time=NOW, chains={})
    line = timeline([*chained, *stands])
    assert len(folded(line, 4).standings) == 5_001
    torn = timeline([chained[0], stands[1]])
    with pytest.raises(UnknownThen):
        folded(torn, 2)
