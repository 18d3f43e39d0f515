"""The two bounds of a rollout hold at every step, and every rollout ends."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.logic.workloads.rollout import (
    Limits,
    Set,
    fenceposts,
    limits_of,
    new_set_size,
    proportioned,
    resolved,
    shrunk_old_sets,
)


def test_percentages_of_surge_are_rounded_up_and_of_unavailable_down() -> None:
    assert resolved("25%", 10, round_up=True) == 3
    assert resolved("25%", 10, round_up=False) == 2
    assert resolved(4, 10, round_up=True) == 4
    assert resolved(None, 10, round_up=True) == 0


def test_two_zeros_become_one_unavailable() -> None:
    assert fenceposts("0%", 0, 10) == (0, 1)
    assert fenceposts(1, 0, 10) == (1, 0)


def test_recreate_allows_no_surge_and_needs_everybody() -> None:
    limits = limits_of({"replicas": 3, "strategy": {"type": "Recreate"}})
    assert limits == Limits(3, 0, 0, rolling=False)
    assert new_set_size(limits, 0, 0) == 3


def test_defaults_are_a_quarter_each() -> None:
    assert limits_of({"replicas": 4}) == Limits(4, 1, 1, rolling=True)


bounds = st.builds(
    lambda replicas, surge, missing: limits_of(
        {
            "replicas": replicas,
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": surge, "maxUnavailable": missing},
            },
        }
    ),
    st.integers(0, 20),
    st.one_of(st.integers(0, 5), st.sampled_from(["0%", "25%", "100%"])),
    st.one_of(st.integers(0, 5), st.sampled_from(["0%", "25%", "100%"])),
)


@given(bounds, st.lists(st.integers(0, 10), max_size=4), st.data())
@settings(max_examples=200, deadline=None)
def test_a_step_never_exceeds_the_surge_nor_takes_an_available_pod_it_may_not(
    limits: Limits, sizes: list[int], data: st.DataObject
) -> None:
    old = [Set(f"old-{n}", size, data.draw(st.integers(0, size))) for n, size in enumerate(sizes)]
    new_size = data.draw(st.integers(0, limits.replicas))
    new = Set("new", new_size, data.draw(st.integers(0, new_size)))
    everyone = new.replicas + sum(sizes)

    grown = new_set_size(limits, new.replicas, everyone)
    assert grown >= new.replicas
    assert grown == new.replicas or everyone - new.replicas + grown <= limits.maximum

    shrunk = shrunk_old_sets(limits, new, old)
    left = [Set(s.name, shrunk.get(s.name, s.replicas), s.available) for s in old]
    available = new.available + sum(item.available for item in old)
    # What shrinks loses its unavailable pods first; available ones go only beyond the least.
    remaining = new.available + sum(min(item.available, item.replicas) for item in left)
    assert all(item.replicas >= 0 for item in left)
    assert remaining >= min(available, limits.least_available)


@given(bounds, st.lists(st.integers(0, 6), max_size=3))
@settings(max_examples=100, deadline=None)
def test_every_rollout_ends_with_only_the_new_set(limits: Limits, sizes: list[int]) -> None:
    old = {f"old-{n}": size for n, size in enumerate(sizes)}
    new = 0
    for _ in range(200):
        everyone = new + sum(old.values())
        grown = new_set_size(limits, new, everyone)
        if grown != new:
            new = grown
            continue
        # Every pod is available as soon as it is wanted.
        step = shrunk_old_sets(
            limits, Set("new", new, new), [Set(n, size, size) for n, size in old.items() if size]
        )
        if not step:
            break
        old |= step
    assert new == limits.replicas
    assert sum(old.values()) == 0


@given(bounds, st.lists(st.integers(1, 10), min_size=1, max_size=4))
@settings(max_examples=200, deadline=None)
def test_scaling_in_the_middle_of_a_rollout_reaches_exactly_what_is_allowed(
    limits: Limits, sizes: list[int]
) -> None:
    sets = [Set(f"s-{n}", size, size, sum(sizes)) for n, size in enumerate(sorted(sizes)[::-1])]
    sizes_after = proportioned(limits, sets)
    after = {s.name: sizes_after.get(s.name, s.replicas) for s in sets}
    allowed = limits.maximum if limits.replicas else 0
    assert all(size >= 0 for size in after.values())
    assert sum(after.values()) == allowed
