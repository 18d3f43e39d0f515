"""What is known of who changed an object, on hubs that say so and on others."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.edge import CHANGED_BY
from skerry.controllers.edge_scheduler.authors import author_of, unverified
from skerry.logic.fleet.placement.records import lean_location, lean_sync_target

FORGED = '{"user":"boss","auditID":"1"}'


def changed(**metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": "oslo", "annotations": {CHANGED_BY: FORGED}, **metadata}}


def managed(*managers: str) -> list[dict[str, Any]]:
    return [{"manager": name, "time": f"2026-01-0{n}"} for n, name in enumerate(managers, 1)]


@pytest.mark.parametrize("kind", ["EdgePlacement", "Rollout", "Location", "SyncTarget"])
def test_a_hub_that_vouches_for_authors_is_believed(kind: str) -> None:
    assert author_of(kind, changed(managedFields=managed("kubectl")), verified=True) == FORGED


@pytest.mark.parametrize("kind", ["EdgePlacement", "Rollout", "SinglePlacementSlice"])
def test_elsewhere_clients_name_nobody_but_their_tool(kind: str) -> None:
    obj = changed(managedFields=managed("kubectl", "kubectl-label"))
    assert author_of(kind, obj, verified=False) == '{"manager":"kubectl-label"}'
    assert author_of(kind, changed(), verified=False) == ""


@pytest.mark.parametrize(
    ("kind", "lean"), [("Location", lean_location), ("SyncTarget", lean_sync_target)]
)
def test_what_is_cached_of_inventories_says_no_more_either(kind: str, lean: Any) -> None:
    kept = unverified(lean)(changed(managedFields=managed("kubectl")))
    assert author_of(kind, kept, verified=False) == '{"manager":"kubectl"}'
    assert author_of(kind, unverified(lean)(changed()), verified=False) == ""
