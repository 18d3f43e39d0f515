"""A cut is due when what a placement sends is quiet; of others nothing is kept."""

from __future__ import annotations

from skerry.api.edge import edge_placement_ref
from skerry.api.refs import ObjectRef
from skerry.controllers.placement_translator.activity import Activities
from skerry.logic.fleet.revision.cut import Settle

WEB, OTHER = edge_placement_ref("c", "web"), edge_placement_ref("c", "other")


class Clock:
    def __init__(self) -> None:
        self.now = 0.0
        self.due: list[tuple[ObjectRef, float]] = []
        self.found = Activities(lambda: self.now, lambda *each: self.due.append(each))


def test_a_placement_without_a_rollout_is_never_busy() -> None:
    clock = Clock()
    clock.found.touch([OTHER])
    assert not clock.found
    clock.found.put(WEB, Settle())
    clock.due.clear()
    clock.found.touch([OTHER])
    assert (clock.due, clock.found.wait(OTHER), list(clock.found)) == ([], 0.0, [WEB])


def test_every_change_waits_anew_but_not_for_ever() -> None:
    clock = Clock()
    clock.found.put(WEB, Settle(10, 25))
    for now, wait in ((0, 10), (8, 10), (16, 9), (24, 1)):
        clock.now = now
        clock.found.touch([WEB])
        assert (clock.found.wait(WEB), clock.due[-1]) == (wait, (WEB, wait))
    clock.now = 25
    assert clock.found.wait(WEB) == 0
    clock.found.quiet(WEB)
    clock.found.touch([WEB])
    assert clock.found.wait(WEB) == 10


def test_a_rollout_that_asks_for_a_cut_is_looked_at_at_once() -> None:
    clock = Clock()
    clock.found.put(WEB, Settle(manual=True))
    clock.due.clear()
    clock.found.put(WEB, Settle(manual=True))
    assert clock.due == []
    clock.found.put(WEB, Settle(manual=True, asked="now"))
    assert (WEB, 0.0) in clock.due
    clock.found.put(WEB, None)
    assert (clock.found.settle(WEB), bool(clock.found)) == (None, False)
