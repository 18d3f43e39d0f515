"""A Rollout is kept and let go on a real hub, while others change what keeps it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from skerry.api.edge import EDGE_PLACEMENTS, ROLLOUT_FINALIZER, ROLLOUTS, edge_placement_ref
from skerry.api.errors import Invalid
from skerry.api.objects import Object
from skerry.controllers.edge_scheduler.observed import ObservedRollout
from skerry.controllers.edge_scheduler.rollout_finalizer import kept, released, without_finalizer
from skerry.logic.fleet.rollout.spec import RolloutSpec
from skerry.logic.fleet.rollout.state import State
from skerry.logic.machinery.patch.json_patch import apply_json_patch
from skerry.logic.machinery.plan import Patch
from tests.kit.chain.building import equal
from tests.kit.chain.rollout_hub import WORKLOAD, RolloutHub
from tests.kit.chain.written import writes
from tests.kit.sim.loop import virtual

KEEP = "example.com/keep"
WEB = edge_placement_ref("c", "web")
NOW = datetime(2025, 6, 6, tzinfo=UTC)
GOING = {"deletionTimestamp": "2025-06-06T00:00:00Z"}


@asynccontextmanager
async def rolling() -> AsyncIterator[RolloutHub]:
    """Run a hub whose placement has its first revision everywhere."""
    hub = RolloutHub()
    async with hub.running("shop", "imw"), hub.controlled("edge-scheduler"):
        await hub.fleet(3)
        await hub.place(WORKLOAD, "web", equal(env="prod"))
        await hub.settle(2)
        await hub.roll_out()
        await hub.settle(2)
        await hub.cut(1)
        await hub.settle(2)
        await hub.judge()
        yield hub


async def put(hub: RolloutHub, *finalizers: str) -> None:
    await hub.shop.patch(ROLLOUTS, "web", {"metadata": {"finalizers": [*finalizers]}})


async def finalizers(hub: RolloutHub) -> list[str]:
    return list((await hub.rollout())["metadata"].get("finalizers") or ())


@virtual
async def test_a_finalizer_that_somebody_adds_meanwhile_stays_beside_ours() -> None:
    hub = RolloutHub()
    async with hub.running("shop", "imw"), hub.standing_by("edge-scheduler") as lead:
        task = lead()
        await hub.fleet(2)
        await hub.place(WORKLOAD, "web", equal(env="prod"))
        await hub.settle(2)
        task.cancel()
        await hub.roll_out()
        await hub.settle(2)
        with hub.faults.behind("rollouts"):
            await put(hub, KEEP)
            lead()
            await hub.settle(5)
            assert await finalizers(hub) == [KEEP], "nothing is written on what was not seen"
        await hub.settle(60)
        assert await finalizers(hub) == [KEEP, ROLLOUT_FINALIZER]
        assert (await hub.rollout())["status"]["conditions"]


@virtual
async def test_a_finalizer_that_somebody_takes_off_meanwhile_does_not_come_back() -> None:
    async with rolling() as hub:
        await put(hub, KEEP, ROLLOUT_FINALIZER)
        await hub.cut(2)
        await hub.settle(2)
        await hub.shop.delete(ROLLOUTS, "web")
        await hub.settle(2)
        with hub.faults.behind("rollouts"):
            await put(hub, ROLLOUT_FINALIZER)
            await hub.remove(WORKLOAD, EDGE_PLACEMENTS, "web")
            await hub.settle(5)
            left = (await hub.shop.list(ROLLOUTS)).items
            assert all(KEEP not in each["metadata"]["finalizers"] for each in left)
        await hub.settle(60)
        assert (await hub.shop.list(ROLLOUTS)).items == []


@virtual
async def test_a_rollout_is_kept_from_its_first_status_to_its_last() -> None:
    async with rolling() as hub:
        await put(hub, KEEP)
        await hub.settle(2)
        assert await finalizers(hub) == [KEEP, ROLLOUT_FINALIZER]
        await hub.cut(2)
        await hub.settle(2)
        await hub.shop.delete(ROLLOUTS, "web")
        await hub.settle(2)
        assert await finalizers(hub) == [KEEP, ROLLOUT_FINALIZER]
        await hub.judge()
        assert await finalizers(hub) == [KEEP]
        assert await hub.phase() == "Completed"
        found = [each.obj for each in await writes(hub.store, ROLLOUTS) if each.obj is not None]
        first = next(each for each in found if each.get("status"))
        assert ROLLOUT_FINALIZER in first["metadata"]["finalizers"]


# -- single decisions ------------------------------------------------------------------------------


def rollout(*finalizers: str, **metadata: Any) -> Object:
    usual = {"name": "web", "uid": "u", "resourceVersion": "7", "finalizers": [*finalizers]}
    return {"metadata": {**usual, **metadata}}


def test_it_is_put_on_behind_others_on_the_object_that_was_seen() -> None:
    (action,) = kept(WEB, rollout(KEEP))
    assert isinstance(action, Patch)
    wanted = {"uid": "u", "resourceVersion": "7", "finalizers": [KEEP, ROLLOUT_FINALIZER]}
    assert action.patch == {"metadata": wanted}
    assert not action.retry_on_conflict
    assert list(kept(WEB, rollout(ROLLOUT_FINALIZER))) == []
    assert list(kept(WEB, rollout(**GOING))) == [], "none can be added to what is being deleted"


def test_it_is_taken_off_where_it_was_seen_and_nothing_else_is_touched() -> None:
    (action,) = without_finalizer(WEB, rollout(KEEP, ROLLOUT_FINALIZER))
    assert isinstance(action, Patch)
    later = rollout(KEEP, ROLLOUT_FINALIZER, "x/y", resourceVersion="9")
    assert apply_json_patch(later, action.patch) == rollout(KEEP, "x/y", resourceVersion="9")
    for other in (rollout(ROLLOUT_FINALIZER), rollout(ROLLOUT_FINALIZER, KEEP), rollout()):
        with pytest.raises(Invalid):
            apply_json_patch(other, action.patch)
    with pytest.raises(Invalid):
        apply_json_patch(rollout(KEEP, ROLLOUT_FINALIZER, uid="another"), action.patch)
    assert list(without_finalizer(WEB, rollout(KEEP))) == []


@pytest.mark.parametrize(
    ("state", "metadata", "goes"),
    [
        (State("Completed", stable=2), GOING, True),
        (State("Completed", stable=2), {}, False),
        (State("Completed", stable=1), GOING, False),
        (State("Progressing", stable=2), GOING, False),
        (State(), GOING, True),
        (State("Progressing", stable=1), {**GOING, "annotations": {"edge.kcp.io/release": "2"}},
         True),
        (State("Progressing", stable=1), {**GOING, "annotations": {"edge.kcp.io/release": "1"}},
         False),
    ],
    ids=["done", "not deleted", "another is live", "under way", "none was ever stable", "released",
         "another was released"],
)  # fmt: skip
def test_it_goes_when_everybody_has_what_the_workspace_has_or_a_person_says_so(
    state: State, metadata: Object, goes: bool
) -> None:
    obj = rollout(ROLLOUT_FINALIZER, **metadata)
    found = ObservedRollout(obj, RolloutSpec(), {}, {}, 2, NOW, 0.0)
    assert bool(list(released(WEB, found, state))) is goes
