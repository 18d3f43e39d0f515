"""What a placement has is what was written, and a confirmation is used up by its removal."""

from __future__ import annotations

from skerry.controllers.edge_scheduler.running import Running
from skerry.logic.fleet.placement.records import Destination, Place

P = Place("wmw", "p")
A, B = (Destination("imw", name, name, f"uid-{name}") for name in "ab")


def test_a_released_location_is_not_kept() -> None:
    running = Running()
    running.note(P, [A, B])
    running.release(P, Place("imw", "a"))
    assert running.destinations(P) == {B}
    assert running.destinations(Place("wmw", "q")) == frozenset()


def test_a_release_survives_a_failed_write_and_ends_with_the_refusal() -> None:
    running = Running()
    running.release(P, Place("imw", "a"))
    running.forget(P)
    running.note(P, [A, B])
    running.settle(P, [Place("imw", "a"), Place("imw", "b")])
    assert running.destinations(P) == {B}
    running.settle(P, [Place("imw", "b")])
    assert running.destinations(P) == {A, B}, "it was admitted in between"


def test_a_release_ends_when_what_it_was_about_has_gone() -> None:
    running = Running()
    running.note(P, [A, B])
    running.release(P, Place("imw", "a"))
    running.note(P, [B])
    running.note(P, [A, B])
    assert running.destinations(P) == {A, B}
