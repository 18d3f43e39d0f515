"""Times of reports are counted, and keys are kept apart by type."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.fleet.query.fold import Ages, order_of

times = st.integers(0, 59).map(lambda second: f"2030-01-01T00:00:{second:02}Z")


@given(st.lists(times), st.lists(times), times)
def test_how_many_reports_are_older_than_a_time(
    there: list[str], gone: list[str], cutoff: str
) -> None:
    ages = Ages()
    for time in (*there, *gone):
        ages.add(time)
    for time in gone:
        ages.remove(time)
    assert ages.before(cutoff) == sum(time < cutoff for time in there)
    assert ages.first_from(cutoff) == min((t for t in there if t >= cutoff), default="")
    assert ages.ends() == (min(there, default=""), max(there, default=""))
    assert bool(ages) == bool(there)


def test_true_and_one_are_different_groups() -> None:
    assert order_of((True,)) != order_of((1,))
    assert order_of((1,)) == order_of((1.0,))
