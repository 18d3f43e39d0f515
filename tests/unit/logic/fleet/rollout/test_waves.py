"""Who is in a wave, and in which order they go."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from skerry.logic.fleet.rollout.spec import LAST, Portion, Wave, read_spec
from skerry.logic.fleet.rollout.waves import WaveMember, has_passed, opened, ordered

NOBODY = BitMap()


def places(count: int, regions: int = 3) -> list[WaveMember]:
    return [WaveMember(n, f"uid-{n}", {"region": f"r{n % regions}"}) for n in range(1, count + 1)]


def test_waves_are_cumulative() -> None:
    everybody = places(10)
    first = opened(Wave("a", until=Portion(2)), "t", everybody, NOBODY, NOBODY, NOBODY)
    second = opened(Wave("b", until=Portion(50, True)), "t", everybody, first, NOBODY, NOBODY)
    last = opened(LAST, "t", everybody, second, NOBODY, NOBODY)
    assert (len(first), len(second), len(last)) == (2, 5, 10)
    assert first < second < last


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
    assert {4, 5} < set(found)
    assert len(found) == 3


def test_those_that_had_the_superseded_revision_go_first() -> None:
    ahead = BitMap([7, 9])
    found = opened(Wave("a", until=Portion(2)), "t", places(10), NOBODY, NOBODY, ahead)
    assert found == ahead


@given(st.integers(0, 40), st.integers(1, 100), st.text(max_size=5))
def test_a_percentage_takes_as_many_as_it_says(count: int, percent: int, target: str) -> None:
    wave = Wave("a", until=Portion(percent, percent=True), spread_by=("region",))
    found = opened(wave, target, places(count), NOBODY, NOBODY, NOBODY)
    assert len(found) == Portion(percent, percent=True).of(count)


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


LABELS = st.fixed_dictionaries(
    {}, optional={"region": st.sampled_from("abc"), "ring": st.sampled_from("xy")}
)
FLEET = st.lists(LABELS, max_size=20).map(
    lambda found: [WaveMember(n, f"uid-{n}", labels) for n, labels in enumerate(found, 1)]
)


@given(FLEET, st.text(max_size=3))
def test_nobody_goes_twice_before_another_value_goes_once(
    fleet: list[WaveMember], target: str
) -> None:
    order = ordered(target, fleet, ["region"])
    assert sorted(order, key=lambda place: place.slot) == fleet
    left = Counter(place.labels.get("region", "") for place in fleet)
    gone: Counter[str] = Counter()
    for place in order:
        value = place.labels.get("region", "")
        # Whoever has fewer turns behind it, and somebody left to send, would have been first.
        assert all(gone[other] >= gone[value] for other in left if gone[other] < left[other])
        gone[value] += 1


@given(
    FLEET,
    st.one_of(st.none(), st.builds(Portion, st.integers(1, 100), st.booleans())),
    st.sets(st.integers(1, 20)),
    st.sets(st.integers(1, 20)),
    st.sets(st.integers(1, 20)),
)
def test_a_wave_takes_as_many_more_as_it_selects_and_the_right_ones(
    fleet: list[WaveMember],
    until: Portion | None,
    before: set[int],
    absent: set[int],
    first: set[int],
) -> None:
    everybody = {place.slot for place in fleet}
    held = before & everybody
    spec = read_spec({"waves": [{"name": "w", "selector": {"matchLabels": {"ring": "x"}}}]})
    wave = Wave("w", spec.wave(1).selector, until)
    found = opened(wave, "t", fleet, BitMap(held), BitMap(absent), BitMap(first))
    selected = {place.slot for place in fleet if place.labels.get("ring") == "x"}
    assert held <= set(found) <= everybody
    added = set(found) - held
    assert added <= selected
    wanted = len(selected) if until is None else min(until.of(len(selected)), len(selected))
    assert len(selected & set(found)) == max(wanted, len(selected & held))
    passed_over = selected - set(found)
    # Silent ones only where nobody else is left, and those of the rollout before first of all.
    assert not (added & absent and passed_over - absent)
    assert not (added - absent - first and (passed_over & first) - absent)
