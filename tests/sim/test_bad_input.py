"""What people may ask for and not get, where only a hub with its controllers can say so."""

from __future__ import annotations

import pytest

from skerry.api.edge import EDGE_PLACEMENTS, HISTORY_RETENTION, STATUS_QUERIES
from skerry.api.errors import Forbidden
from skerry.api.kinds import GroupVersionResource
from skerry.app.explain_names import Unanswered
from skerry.app.history import history_of
from skerry.app.hub_reading import HubReader
from tests.kit.chain.building import equal
from tests.kit.chain.rollout_chain import CHAIN, NAMESPACES, ChainHub
from tests.kit.chain.rollout_hub import WORKLOAD, RolloutHub
from tests.kit.sim.loop import virtual

QUOTAS = GroupVersionResource("", "v1", "resourcequotas")


@virtual
async def test_of_a_placement_whose_history_is_not_kept_nothing_is_guessed() -> None:
    hub = RolloutHub()
    async with hub.running("shop", "imw"), hub.controlled("edge-scheduler"):
        await hub.place(WORKLOAD, "web", equal(env="prod"))
        note = {"metadata": {"annotations": {HISTORY_RETENTION: "0"}}}
        await hub.shop.patch(EDGE_PLACEMENTS, "web", note)
        await hub.fleet(2)
        await hub.settle(10)
        assert len(await hub.entries()) == 2
        reader = HubReader(hub.client, hub.client, hub.client, WORKLOAD, clock=hub.clock)
        with pytest.raises(Unanswered, match=r"no history is kept of EdgePlacement web: .* says 0"):
            await history_of(reader, "web")
        with pytest.raises(Unanswered, match="there is no EdgePlacement 'nobody' in root:shop"):
            await history_of(reader, "nobody")


@virtual
async def test_how_many_queries_a_workspace_may_have_is_an_ordinary_quota() -> None:
    hub = RolloutHub()
    async with hub.running("shop"):
        shop = hub.ann.at("", WORKLOAD)
        await shop.create(NAMESPACES, {"metadata": {"name": "admin"}})
        notes = {"experimental.quota.kcp.io/cluster-scoped": "true"}
        hard = {"count/statusqueries.edge.kcp.io": "2"}
        quota = {"metadata": {"name": "few", "annotations": notes}, "spec": {"hard": hard}}
        await shop.create(QUOTAS, quota, "admin")
        # As the controller of quotas finds it.
        counted = {"hard": hard, "used": dict.fromkeys(hard, "0")}
        await hub.shop.patch(QUOTAS, "few", {"status": counted}, "admin", subresource="status")
        count = {"name": "edges", "function": "Count"}
        asked = {
            "apiVersion": "edge.kcp.io/v1alpha1",
            "kind": "StatusQuery",
            "spec": {"from": {"rows": "Destinations"}, "aggregates": [count]},
        }
        for number in range(2):
            await shop.create(STATUS_QUERIES, {**asked, "metadata": {"name": f"q{number}"}})
        with pytest.raises(Forbidden, match="exceeded quota: few"):
            await shop.create(STATUS_QUERIES, {**asked, "metadata": {"name": "q2"}})


@virtual
async def test_an_expression_that_fails_at_an_edge_is_counted_and_bad_at_the_deadline() -> None:
    hub = ChainHub()
    async with hub.running("shop", "imw"), hub.synced(), hub.controlled(*CHAIN):
        await hub.fleet(2)
        await hub.write("one")
        await hub.place(WORKLOAD, "web", equal(env="prod"), namespaceSelector=equal(goes="out"))
        settle = {"quiet": "2s", "longest": "10s"}
        await hub.roll_out(settle=settle, judge={"minReady": "2s", "deadline": "1m"})
        await hub.settle(30)
        judge = {"minReady": "2s", "deadline": "1m", "failWhen": "reports[7].restarts > 5"}
        await hub.edit(judge=judge)
        await hub.write("two")
        await hub.settle(30)
        status = (await hub.rollout())["status"]
        assert (status["phase"], status["counts"]["waiting"]) == ("Progressing", 2)
        assert status["verdicts"]["errors"] == 2
        await hub.settle(90)
        status = (await hub.rollout())["status"]
        assert (status["phase"], status["failure"]["reason"]) == ("RolledBack", "DeadlineExceeded")
        assert {ran[-1] for ran in hub.ran.values()} == {"one"}
