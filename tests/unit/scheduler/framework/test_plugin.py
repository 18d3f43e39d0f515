"""Why an item fits nowhere, and which points a plugin extends."""

from __future__ import annotations

from typing import Any

import numpy as np

from skerry.scheduler.framework.plugin import (
    Diagnosis,
    FilterPlugin,
    ScorePlugin,
    extends,
)
from skerry.scheduler.framework.status import Code, Status, unschedulable


def diagnosis(total: int) -> Diagnosis:
    return Diagnosis(total=total, codes=np.zeros(total, np.int32))


def test_reasons_are_counted_and_sorted_as_text() -> None:
    found = diagnosis(13)
    found.set_all(np.arange(10), unschedulable("too full"))
    found.set_all(np.arange(10, 12), unschedulable("too small", "too old"))
    found.set(12, unschedulable("too full"))
    assert found.counts() == {"too full": 11, "too small": 2, "too old": 2}
    assert found.message() == ("0/13 nodes are available: 11 too full, 2 too old, 2 too small.")


def test_what_is_said_last_counts() -> None:
    found = diagnosis(2)
    found.set_all(np.arange(2), unschedulable("first"))
    found.set(0, unschedulable("second"))
    found.set_all(np.arange(0), unschedulable("nobody"))
    assert found.counts() == {"first": 1, "second": 1}
    status = found.status_of(0)
    assert status is not None
    assert status.reasons == ("second",)


def test_targets_nobody_looked_at_are_answered_for() -> None:
    found = diagnosis(3)
    found.absent = unschedulable("not asked")
    found.set(1, unschedulable("full"))
    assert found.counts() == {"full": 1, "not asked": 2}
    assert found.status_of(0) is found.absent
    assert found.status_of(99) is found.absent


def test_messages_before_and_after_filtering() -> None:
    found = diagnosis(2)
    assert found.message() == "0/2 nodes are available:"
    found.pre_filter_message = "no such claim"
    found.post_filter_message = "preemption: none."
    assert found.message() == "0/2 nodes are available: no such claim. preemption: none."


def test_only_those_who_turned_an_item_down_are_blamed() -> None:
    found = diagnosis(0)
    for code, plugin in (
        (Code.UNSCHEDULABLE, "a"),
        (Code.UNRESOLVABLE, "b"),
        (Code.PENDING, "c"),
        (Code.ERROR, "d"),
        (Code.UNSCHEDULABLE, ""),
    ):
        found.blame(Status(code, (), plugin))
    assert (found.rejectors, found.pending) == ({"a", "b"}, {"c"})


class Filters:
    name = "Filters"

    def filter(self, state: Any, item: Any, target: Any) -> None:
        return None


def test_a_plugin_extends_the_points_it_has_methods_for() -> None:
    assert extends(Filters(), FilterPlugin)
    assert not extends(Filters(), ScorePlugin)
    assert extends(Filters(), FilterPlugin) is extends(Filters(), FilterPlugin)
