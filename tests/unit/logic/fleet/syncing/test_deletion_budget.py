"""How much may be deleted before a person is asked."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.fleet.syncing.deletion_budget import (
    ALLOWED,
    STEPS,
    Budget,
    PlacedWindow,
    Verdict,
    Waiting,
    identity_digest,
    question,
    verdict,
)

SECONDS = 600.0
STEP = SECONDS / STEPS

# Seconds since the sample before, and how many objects there were then.
histories = st.lists(st.tuples(st.floats(0, 200), st.integers(0, 50)), max_size=60)
digests = st.integers(0, (1 << 128) - 1)


def window_of(history: list[tuple[float, int]]) -> tuple[PlacedWindow, list[tuple[float, int]]]:
    """Return the window after *history*, and the history with times since its beginning."""
    window, now, dated = PlacedWindow(SECONDS), 0.0, []
    for passed, placed in history:
        now += passed
        window = window.noted(now, placed)
        dated.append((now, placed))
    return window, dated


@given(histories, st.floats(0, 700), st.integers(0, 50))
def test_the_peak_is_the_most_within_the_window_or_up_to_one_step_longer(
    history: list[tuple[float, int]], passed: float, placed: int
) -> None:
    window, dated = window_of(history)
    now = (dated[-1][0] if dated else 0.0) + passed
    within = [number for time, number in dated if time >= now - SECONDS]
    longer = [number for time, number in dated if time >= now - SECONDS - STEP]
    found = window.peak(now, placed)
    assert max([placed, *within]) <= found <= max([placed, *longer])


@given(histories)
def test_a_window_takes_bounded_room_and_repetition_is_no_news(
    history: list[tuple[float, int]],
) -> None:
    window, dated = window_of(history)
    assert len(window.samples) <= STEPS + 2
    assert [s.placed for s in window.samples] == sorted(
        {s.placed for s in window.samples}, reverse=True
    )
    if dated:
        assert window.noted(*dated[-1]) is window


@given(histories, st.floats(-1e6, 1e6), st.floats(0, 700))
def test_a_window_that_was_stored_remembers_the_same(
    history: list[tuple[float, int]], shift: float, passed: float
) -> None:
    window, dated = window_of(history)
    now = (dated[-1][0] if dated else 0.0) + passed
    restored = PlacedWindow.decode(SECONDS, window.encode(shift), shift, now)
    assert restored.peak(now, 0) >= window.peak(now, 0)
    # Times are rounded up once more, and an addition of floats is not exact.
    assert restored.peak(now + 2 * STEP, 0) <= window.peak(now, 0)


def test_a_clock_that_was_put_back_makes_the_window_longer_and_not_eternal() -> None:
    window = PlacedWindow(SECONDS).noted(5000.0, 80)
    restored = PlacedWindow.decode(SECONDS, window.encode(0.0), 0.0, 1000.0)
    assert restored.peak(1000.0 + SECONDS, 10) == 80
    assert restored.peak(1000.0 + SECONDS + STEP, 10) == 10


@given(histories, st.integers(0, 60))
def test_what_is_excused_was_never_there(history: list[tuple[float, int]], count: int) -> None:
    window, dated = window_of(history)
    now = dated[-1][0] if dated else 0.0
    assert window.excused(count).peak(now, 0) == max(0, window.peak(now, 0) - count)


@given(st.lists(digests, unique=True, max_size=20))
def test_a_name_stands_for_a_set_whatever_the_order_and_the_way_there(
    members: list[int],
) -> None:
    one = other = Waiting()
    for digest in members:
        one = one.plus(digest)
    for digest in [*reversed(members), *members]:
        other = other.plus(digest)
    for digest in members:
        other = other.minus(digest)
    assert one == other
    assert one.name == other.name
    if members:
        assert one.minus(members[0]).name != one.name


def test_an_object_and_a_later_one_of_its_name_are_not_the_same() -> None:
    assert identity_digest("configmaps/shop/page", "u1") != identity_digest(
        "configmaps/shop/page", "u2"
    )


def waiting(count: int) -> Waiting:
    found = Waiting()
    for number in range(count):
        found = found.plus(identity_digest(f"configmaps/shop/{number}", "u"))
    return found


@given(st.integers(0, 300), st.integers(0, 300), st.integers(0, 300))
def test_more_than_the_limit_is_held_and_nothing_else(peak: int, fewer: int, count: int) -> None:
    budget = Budget(count=20, percent=25)
    remaining = max(0, peak - fewer)
    judged = verdict(budget, waiting(count), peak=peak, remaining=remaining)
    assert judged.allowed == (count == 0 or peak - remaining <= max(20, peak // 4))


def test_what_is_held_is_asked_about_with_the_command_to_run() -> None:
    budget = Budget(count=2, percent=10)
    held = verdict(budget, waiting(5), peak=20, remaining=13)
    assert held == Verdict(False, waiting(5).name, 5, 20, 13, 2)
    said = question(budget, held, "florin")
    assert said.startswith("5 deletions are held: 13 of 20 objects")
    assert "skerry edge approve-deletions florin" in said
    assert f"edge.kcp.io/approve-deletions={held.name}" in said
    assert question(budget, ALLOWED, "florin") == ""
