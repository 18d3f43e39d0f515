"""Who is in a wave, and in which order they go."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from skerry.logic.fleet.rollout.spec import LAST, Portion, Wave, read_spec
from skerry.logic.fleet.rollout.waves import Place, has_passed, opened, ordered

NOBODY = BitMap()


def places(count: int, regions: int = 3) -> list[Place]:
    return [Place(n, f"uid-{n}", {"region": f"r{n % regions}"}) for n in range(1, count + 1)]


def test_waves_are_cumulative() -> None:
    everybody = places(10)
    first = opened(Wave("a", until=Portion(2)), "t", everybody, NOBODY, NOBODY, NOBODY)
    second = opened(Wave("b", until=Portion(50, True)), "t", everybody, first.slots, NOBODY, NOBODY)
    last = opened(LAST, "t", everybody, second.slots, NOBODY, NOBODY)
    assert (len(first.slots), len(second.slots), len(last.slots)) == (2, 5, 10)
    assert first.slots < second.slots < last.slots


def test_the_values_of_spread_by_take_turns() -> None:
    order = ordered("t", places(30), ["region"])
    for start in range(0, 30, 3):
        assert len({place.labels["region"] for place in order[start : start + 3]}) == 3


def test_not_the_same_edges_always_go_first() -> None:
    first = Counter(ordered(f"t{n}", places(5), [])[0].uid for n in range(100))
    assert len(first) == 5


def test_silent_edges_are_passed_over_where_there_are_others() -> None:
    everybody = places(5)
    silent = BitMap([1, 2, 3])
    found = opened(Wave("a", until=Portion(3)), "t", everybody, NOBODY, silent, NOBODY)
    assert {4, 5} < set(found.slots)
    assert len(found.slots) == 3


def test_those_that_had_the_superseded_revision_go_first() -> None:
    ahead = BitMap([7, 9])
    found = opened(Wave("a", until=Portion(2)), "t", places(10), NOBODY, NOBODY, ahead)
    assert found.slots == ahead


@given(st.integers(0, 40), st.integers(1, 100), st.text(max_size=5))
def test_a_percentage_takes_as_many_as_it_says(count: int, percent: int, target: str) -> None:
    wave = Wave("a", until=Portion(percent, percent=True), spread_by=("region",))
    found = opened(wave, target, places(count), NOBODY, NOBODY, NOBODY)
    assert len(found.slots) == Portion(percent, percent=True).of(count)


def test_a_newcomer_belongs_to_a_passed_wave_that_takes_everybody_it_selects() -> None:
    spec = read_spec(
        {
            "waves": [
                {"name": "a", "selector": {"matchLabels": {"region": "r1"}}},
                {"name": "b", "until": "50%"},
            ]
        }
    )
    north, south = places(2)
    assert has_passed(spec, 1, north)
    assert not has_passed(spec, 2, south)
    assert has_passed(spec, 3, south)
