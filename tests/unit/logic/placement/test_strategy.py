"""Choosing some of the Locations that match."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.placement.strategy import (
    Candidate,
    Spread,
    Strategy,
    Taint,
    Toleration,
    choose,
    strategy_of,
    taints_of,
)

NOBODY: frozenset[tuple[str, str]] = frozenset()


def candidate(name: str, *, available: bool = True, taints: str = "", **labels: str) -> Candidate:
    return Candidate(("c", name), labels, available, taints_of(taints))


def names(chosen: set[tuple[str, str]]) -> list[str]:
    return sorted(name for _, name in chosen)


_candidates = st.lists(
    st.builds(
        lambda name, available, region, taints: candidate(
            name, available=available, taints=taints, **({"region": region} if region else {})
        ),
        st.sampled_from([f"l{n}" for n in range(12)]),
        st.booleans(),
        st.sampled_from(["", "north", "south", "west"]),
        st.sampled_from(["", "k=v:NoSchedule", "k:NoExecute", "k:PreferNoSchedule"]),
    ),
    unique_by=lambda each: each.place,
)
_strategies = st.builds(
    Strategy,
    st.one_of(st.none(), st.integers(1, 8)),
    st.sampled_from([(), (Spread("region", 1),), (Spread("region", 2),)]),
    st.sampled_from([(), (Toleration("", "Exists", "", ""),)]),
    st.booleans(),
)


@given(_strategies, _candidates)
def test_no_more_are_chosen_than_asked_for_and_only_candidates(
    strategy: Strategy, candidates: list[Candidate]
) -> None:
    chosen = choose(strategy, candidates, NOBODY)
    assert chosen <= {each.place for each in candidates}
    if strategy.number is not None:
        assert len(chosen) <= strategy.number
    if strategy.only_ready:
        assert all(each.available for each in candidates if each.place in chosen)


@given(_strategies, _candidates, st.randoms())
def test_the_choice_depends_on_the_facts_only(
    strategy: Strategy, candidates: list[Candidate], shuffling: Any
) -> None:
    chosen = choose(strategy, candidates, NOBODY)
    shuffled = list(candidates)
    shuffling.shuffle(shuffled)
    assert choose(strategy, shuffled, NOBODY) == chosen


@given(_strategies, _candidates)
def test_who_was_chosen_and_still_qualifies_stays(
    strategy: Strategy, candidates: list[Candidate]
) -> None:
    chosen = choose(strategy, candidates, NOBODY)
    assert choose(strategy, candidates, chosen) == chosen
    more = [*candidates, candidate("a-newcomer", region="north")]
    assert chosen <= choose(strategy, more, chosen)


@given(st.integers(1, 9))
def test_newcomers_are_spread_evenly_over_domains(number: int) -> None:
    candidates = [
        candidate(f"l{n}", region=region)
        for n, region in enumerate(["north"] * 5 + ["south"] * 5 + ["west"] * 5)
    ]
    chosen = choose(Strategy(number, (Spread("region", 1),)), candidates, NOBODY)
    counts = Counter(each.labels["region"] for each in candidates if each.place in chosen)
    assert len(chosen) == number
    assert max(counts.values()) - min(counts[r] for r in ("north", "south", "west")) <= 1


def test_a_domain_without_candidates_left_holds_no_other_back() -> None:
    candidates = [candidate("a", region="north")]
    candidates += [candidate(f"b{n}", region="south") for n in range(5)]
    chosen = choose(Strategy(4, (Spread("region", 1),)), candidates, NOBODY)
    assert names(chosen) == ["a", "b0", "b1", "b2"]


def test_who_lacks_the_spread_label_is_passed_over() -> None:
    candidates = [candidate("a"), candidate("b", region="x"), candidate("c", region="x")]
    assert names(choose(Strategy(2, (Spread("region", 1),)), candidates, NOBODY)) == ["b", "c"]


def test_ready_newcomers_come_before_others_and_soft_taints_last() -> None:
    candidates = [
        candidate("a", available=False),
        candidate("b", taints="x:PreferNoSchedule"),
        candidate("c"),
        candidate("d"),
    ]
    assert names(choose(Strategy(3), candidates, NOBODY)) == ["a", "c", "d"]


def test_no_schedule_keeps_newcomers_away_and_no_execute_everybody() -> None:
    kept = candidate("a", taints="k=v:NoSchedule")
    driven = candidate("b", taints="k=v:NoExecute")
    present = {kept.place, driven.place}
    assert names(choose(Strategy(), [kept, driven], present)) == ["a"]
    assert names(choose(Strategy(), [kept, driven], NOBODY)) == []


@pytest.mark.parametrize(
    ("toleration", "borne"),
    [
        (Toleration("k", "Equal", "v", ""), True),
        (Toleration("k", "Equal", "w", ""), False),
        (Toleration("k", "Exists", "", ""), True),
        (Toleration("", "Exists", "", ""), True),
        (Toleration("", "Equal", "v", ""), False),
        (Toleration("other", "Exists", "", ""), False),
        (Toleration("k", "Exists", "", "NoExecute"), False),
    ],
)
def test_tolerations_bear_what_kubernetes_tolerations_do(
    toleration: Toleration, borne: bool
) -> None:
    assert toleration.bears(Taint("k", "v", "NoSchedule")) is borne


def test_fewer_wanted_keeps_the_first_by_name() -> None:
    candidates = [candidate(name) for name in "dbca"]
    present = {each.place for each in candidates}
    assert names(choose(Strategy(2), candidates, present)) == ["a", "b"]


def test_a_strategy_is_read_with_its_defaults() -> None:
    assert strategy_of(None) is None
    assert strategy_of({}) is None
    read = strategy_of(
        {
            "numberOfLocations": 3,
            "spread": [{"topologyKey": "region"}],
            "tolerations": [{"key": "k", "value": "v"}],
            "onlyReady": True,
        }
    )
    expected = Strategy(3, (Spread("region", 1),), (Toleration("k", "Equal", "v", ""),), True)
    assert read == expected


def test_what_is_no_taint_is_passed_over() -> None:
    text = "a=b:NoSchedule, c:NoExecute,nonsense,:NoSchedule,d=e:Unknown,"
    assert taints_of(text) == (Taint("a", "b", "NoSchedule"), Taint("c", "", "NoExecute"))
