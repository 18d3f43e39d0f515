"""Forcing a revision that is not there is refused on our hub, and said in a condition elsewhere."""

from __future__ import annotations

import pytest

from skerry.api.edge import PLACEMENT_REVISIONS
from skerry.api.errors import Invalid
from tests.kit.chain.building import equal
from tests.kit.chain.rollout_hub import WORKLOAD, RolloutHub
from tests.kit.sim.loop import virtual


@virtual
async def test_forcing_a_revision_that_is_not_there_is_refused_with_its_field() -> None:
    hub = RolloutHub()
    async with hub.running("shop", "imw"), hub.controlled("edge-scheduler"):
        await hub.fleet(2)
        await hub.place(WORKLOAD, "web", equal(env="prod"))
        await hub.roll_out()
        await hub.cut(1)
        await hub.settle(2)
        with pytest.raises(Invalid) as caught:
            await hub.edit(force={"revision": 40, "reason": "INC-77"})
        assert "spec.force.revision" in caught.value.message
        assert "there is no revision 40 of EdgePlacement web" in caught.value.message
        await hub.edit(force={"revision": 1, "reason": "INC-77"})
        await hub.settle(2)
        await hub.shop.delete(PLACEMENT_REVISIONS, "web-1")
        # What was forced before is not asked again; the condition says what is wrong.
        await hub.edit(paused=True)
        await hub.settle(2)
        assert (await hub.conditions())["Valid"] == ("False", "UnknownRevision")
        assert set((await hub.revisions()).values()) == {1}
