"""What a placement has is what was written, and a confirmation is used up by its removal."""

from __future__ import annotations

from skerry.api.edge import edge_placement_ref, location_ref
from skerry.controllers.edge_scheduler.running import Running
from skerry.logic.fleet.placement.records import Destination

P = edge_placement_ref("wmw", "p")
A, B = (Destination("imw", name, name, f"uid-{name}") for name in "ab")


def test_a_released_location_is_not_kept() -> None:
    running = Running()
    running.note(P, [A, B])
    running.release(P, location_ref("imw", "a"))
    assert running.destinations(P) == {B}
    assert running.destinations(edge_placement_ref("wmw", "q")) == frozenset()


def test_a_release_survives_a_failed_write_and_ends_with_the_refusal() -> None:
    running = Running()
    running.release(P, location_ref("imw", "a"))
    running.forget(P)
    running.note(P, [A, B])
    running.settle(P, [location_ref("imw", "a"), location_ref("imw", "b")])
    assert running.destinations(P) == {B}
    running.settle(P, [location_ref("imw", "b")])
    assert running.destinations(P) == {A, B}, "it was admitted in between"


def test_a_release_ends_when_what_it_was_about_has_gone() -> None:
    running = Running()
    running.note(P, [A, B])
    running.release(P, location_ref("imw", "a"))
    running.note(P, [B])
    running.note(P, [A, B])
    assert running.destinations(P) == {A, B}
