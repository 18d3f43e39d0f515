"""What people ask of Rollouts, on a real hub with the real edge scheduler."""

from __future__ import annotations

import pytest

from skerry.api.edge import ROLLOUT_APPROVALS
from skerry.app.explain_names import Unanswered
from skerry.app.rollout import Rollouts
from tests.kit.chain.building import equal
from tests.kit.chain.rollout_hub import WORKLOAD, RolloutHub
from tests.kit.sim.loop import virtual

CANARY = [{"name": "canary", "selector": equal(ring="canary"), "soak": "24h", "approval": True}]


@virtual
async def test_the_commands_steer_a_rollout_from_beginning_to_end() -> None:
    hub = RolloutHub()
    async with hub.running("shop", "imw"), hub.controlled("edge-scheduler"):
        asked = Rollouts(hub.shop, WORKLOAD, hub.clock)
        with pytest.raises(Unanswered, match="no Rollout web"):
            await asked.get("web")
        await hub.fleet(3)
        await hub.place(WORKLOAD, "web", equal(env="prod"))
        await hub.roll_out(waves=CANARY, onFailure="Pause")
        await hub.cut(1)
        await hub.settle(2)
        await hub.judge()
        for refused in (asked.abort("web"), asked.promote("web"), asked.approve("web", "", "", "")):
            with pytest.raises(Unanswered, match="nothing is under way"):
                await refused
        with pytest.raises(Unanswered, match="has not failed"):
            await asked.retry("web")
        await hub.cut(2)
        await hub.settle(2)
        with pytest.raises(Unanswered, match="asks for no approval"):
            await asked.approve("web", "", "", "")
        await hub.judge(bad={"e1"})
        assert await hub.phase() == "Paused"
        assert "1 bad" in await asked.set_paused("web", paused=False)
        await hub.settle(2)
        assert await hub.phase() == "Progressing"
        await asked.abort("web")
        await hub.settle(2)
        await hub.judge()
        assert await hub.phase() == "RolledBack"
        assert await asked.retry("web") == "revision 2 is tried again"
        await hub.settle(2)
        await hub.judge()
        await asked.promote("web")
        await hub.settle(2)
        await hub.judge()
        assert await hub.phase() == "Completed"
        with pytest.raises(Unanswered, match="there are: 1, 2"):
            await asked.undo("web", 7, "")
        await asked.undo("web", 1, "")
        await hub.settle(2)
        assert (await hub.revisions())["e1"] == 1
        # Given up, and asked for all the same.
        await asked.abort("web")
        await hub.settle(2)
        await hub.judge()
        assert (await hub.revisions())["e1"] == 2
        await asked.undo("web", 1, "")
        await hub.settle(2)
        assert (await hub.revisions())["e1"] == 1
        await asked.undo("web", 1, "INC-77")
        await hub.settle(2)
        assert set((await hub.revisions()).values()) == {1}


@virtual
async def test_an_approval_names_who_and_why() -> None:
    hub = RolloutHub()
    async with hub.running("shop", "imw"), hub.controlled("edge-scheduler"):
        asked = Rollouts(hub.shop, WORKLOAD, hub.clock)
        await hub.fleet(2)
        await hub.place(WORKLOAD, "web", equal(env="prod"))
        await hub.roll_out(waves=[{**CANARY[0], "soak": "0s"}])
        await hub.cut(1)
        await hub.settle(2)
        await hub.judge()
        await hub.cut(2)
        await hub.settle(2)
        await hub.judge()
        assert await asked.approve("web", "", "fine", "bob") == "web-2-canary is approved"
        found = (await hub.shop.get(ROLLOUT_APPROVALS, "web-2-canary"))["status"]
        assert (found["approved"], found["by"], found["message"]) == (True, "bob", "fine")
        await hub.settle(2)
        assert (await hub.revisions())["e2"] == 2
