"""What is taken from an edge's own words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.fleet.syncing.conditions import HeldDeletions, Objects, Standing, report
from skerry.logic.fleet.syncing.outcome import SyncOutcome
from skerry.logic.fleet.syncing.reported import (
    Reason,
    held_clusters,
    hold_of,
    lean_status,
    reported,
)
from skerry.logic.machinery.plan import Patch
from tests.kit.chain.syncer_place import PAGE


def config(standing: Standing) -> dict[str, Any]:
    """Return a SyncerConfig as a syncer leaves it."""
    [patch] = report({"metadata": {"name": "the-one"}}, standing, "t1", beat=True)
    assert isinstance(patch, Patch)
    return {"metadata": {"name": "the-one"}, **patch.patch}


def test_a_syncer_that_said_nothing_reports_nothing() -> None:
    assert reported({"metadata": {}, "spec": {}}) is None
    assert hold_of({"metadata": {}, "spec": {}}) is None


def test_numbers_version_and_nothing_held_are_read() -> None:
    found = reported(config(Standing(objects=Objects(5, 4, 1, 2))))
    assert found is not None
    assert (found.hold, found.refusal) == (None, None)
    assert found.objects == {
        "wanted": 5,
        "applied": 4,
        "refused": 1,
        "unhealthy": 2,
        "held": 0,
    }
    assert found.version


def test_what_is_held_and_refused_is_read_and_an_unknown_store_is_the_graver() -> None:
    standing = Standing(
        edge="florin",
        troubled={PAGE: SyncOutcome("Failed", "NotOurs", "theirs")},
        deletions_held="60 deletions are held",
        held=HeldDeletions(60, "abc", ("configmaps/shop/a",)),
    )
    found = reported(config(standing))
    assert found is not None
    assert found.hold == Reason("DeletionsHeld", "60 deletions are held")
    assert found.refusal is not None
    assert found.refusal.reason == "NotOurs"
    assert "skerry edge adopt florin configmaps/page -n shop" in found.refusal.message
    assert found.objects["held"] == 60
    both = Standing(deletions_held="60", identity_changed="another store")
    assert hold_of(config(both)) == Reason("StoreIdentityChanged", "another store")


def test_held_deletions_are_those_of_the_clusters_the_edge_knows_of() -> None:
    held = HeldDeletions(60, "abc", ("configmaps/shop/a",), ("tenant-0", "tenant-1"))
    standing = Standing(deletions_held="60 deletions are held", held=held)
    assert held_clusters(config(standing)) == ("tenant-0", "tenant-1")
    assert held_clusters(config(Standing())) == ()
    # Another store concerns everybody.
    assert held_clusters(config(replace(standing, identity_changed="another store"))) == ()


def test_what_is_kept_of_a_status_reports_the_same() -> None:
    standing = Standing(
        troubled={PAGE: SyncOutcome("Failed", "Rejected", "no")},
        deletions_held="60 deletions are held",
        held=HeldDeletions(60, "abc", ("configmaps/shop/a",)),
    )
    whole = config(standing)
    assert reported({"status": lean_status(whole)}) == reported(whole)


@given(st.text(), st.integers(), st.text())
def test_an_edge_can_say_only_a_bounded_line_and_known_words(
    message: str, count: int, reason: str
) -> None:
    conditions = [
        {"type": kind, "status": "True", "reason": reason, "message": message * 100}
        for kind in ("DeletionsHeld", "ObjectsRefused")
    ]
    status = {"conditions": conditions, "objects": {"wanted": count}, "syncerVersion": message}
    found = reported({"status": status})
    assert found is not None
    assert found.hold is not None
    assert found.refusal is not None
    assert found.refusal.reason in ("NotOurs", "Forbidden", "Invalid")
    assert len(found.hold.message) <= 1024
    assert found.hold.message.isprintable()
    assert 0 <= found.objects["wanted"] < 2**31
    assert len(found.version) <= 64
