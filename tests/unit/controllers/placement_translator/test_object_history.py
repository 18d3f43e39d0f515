"""What becomes of single objects is recorded, on a real hub, whoever translates."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.edge import DECISION_RECORDS, EDGE_PLACEMENTS, HISTORY_RETENTION, ROLLOUTS
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.controllers.placement_translator.object_history import ObjectHistorySettings
from skerry.controllers.placement_translator.settings import TranslatorSettings
from skerry.logic.fleet.history.chain import verify
from skerry.logic.fleet.history.record import in_order
from skerry.runtime.transport import Answer
from tests.kit.chain.translator_hub import CONFIG_MAPS, Hub, config_map
from tests.kit.sim.loop import virtual

ROLES = GroupVersionResource("rbac.authorization.k8s.io", "v1", "roles")
WITHHOLDING = TranslatorSettings(withhold_denatured=True)
ROLE: Object = {"metadata": {"name": "reader"}, "rules": []}


class RecordingHub(Hub):
    history = ObjectHistorySettings(version="1")


async def story(hub: Hub) -> list[tuple[Any, ...]]:
    """Return what was recorded: change, object, how many, why; and check the chain."""
    records = in_order((await hub.at("root:wmw").list(DECISION_RECORDS)).items)
    assert verify(records) == []
    return [
        (
            each["change"],
            each["object"]["name"],
            each["destinations"]["count"],
            each["reason"]["code"],
        )
        for each in records
    ]


async def placed(hub: Hub) -> None:
    await hub.namespace("shop")
    await hub.put(CONFIG_MAPS, config_map("page", {"k": "1"}), "shop")
    await hub.place("web", "florin", "guilder")


@virtual
async def test_changes_of_what_is_sent_are_recorded_once_with_both_digests() -> None:
    hub = RecordingHub()
    async with hub.running(["florin", "guilder"]), hub.translating():
        await placed(hub)
        await hub.settle(30)
        before = await story(hub)
        await hub.put(CONFIG_MAPS, config_map("page", {"k": "2"}), "shop")
        await hub.put(CONFIG_MAPS, config_map("page", {"k": "3"}), "shop")
        await hub.settle(30)
        assert (await story(hub))[len(before) :] == [("Revised", "page", 2, "ContentChanged")]
        last = in_order((await hub.at("root:wmw").list(DECISION_RECORDS)).items)[-1]
        assert len(last["object"]["from"]) == len(last["object"]["to"]) == 32
        assert last["destinations"]["all"]
        assert last["cause"]["manager"]
        assert "user" not in last["cause"]
        await hub.remove(CONFIG_MAPS, "page", "shop")
        await hub.settle(30)
        assert (await story(hub))[-1] == ("Revised", "page", 2, "ObjectRemoved")


@virtual
async def test_with_a_rollout_there_are_revisions_and_no_record_of_each_object() -> None:
    hub = RecordingHub()
    async with hub.running(["florin"]), hub.translating():
        body = {"apiVersion": "edge.kcp.io/v1alpha1", "kind": "Rollout", "spec": {}}
        await hub.at("root:wmw").create(ROLLOUTS, {**body, "metadata": {"name": "web"}})
        await hub.settle(5)
        await hub.namespace("shop")
        await hub.place("web", "florin")
        await hub.settle(30)
        await hub.put(CONFIG_MAPS, config_map("page", {"k": "2"}), "shop")
        await hub.settle(30)
        assert await story(hub) == []


@virtual
async def test_what_is_withheld_is_recorded_and_what_is_no_more_by_whoever_comes_next() -> None:
    hub = RecordingHub()
    async with hub.running(["florin", "guilder"]):
        await placed(hub)
        await hub.put(ROLES, ROLE, "shop")
        async with hub.translating(WITHHOLDING):
            await hub.settle(30)
            assert await story(hub) == [("Withheld", "reader", 2, "KindWithheld")]
        # Nothing is recorded again, and what was recorded by another is known.
        async with hub.translating(WITHHOLDING):
            await hub.settle(30)
            assert len(await story(hub)) == 1
        async with hub.translating():
            await hub.settle(30)
            assert (await story(hub))[1:] == [("Released", "reader", 2, "Released")]


@virtual
async def test_after_a_record_that_was_refused_the_chain_goes_on_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hub = RecordingHub()
    ask, refused = hub.faults.request, []

    async def refusing(method: str, path: str, *more: Any, **named: Any) -> Answer:
        if method == "POST" and path.endswith("/decisionrecords"):
            refused.append(path)
            return Answer(403, {}, b'{"kind":"Status","code":403,"reason":"Forbidden"}')
        return await ask(method, path, *more, **named)

    async with hub.running(["florin", "guilder"]), hub.translating():
        await placed(hub)
        await hub.settle(30)
        monkeypatch.setattr(hub.faults, "request", refusing)
        await hub.put(CONFIG_MAPS, config_map("page", {"k": "2"}), "shop")
        await hub.settle(30)
        known = await story(hub)
        assert len(refused) == 1, "it is not tried again and again"
        monkeypatch.undo()
        await hub.put(CONFIG_MAPS, config_map("page", {"k": "3"}), "shop")
        await hub.settle(30)
        assert (await story(hub))[len(known) :] == [("Revised", "page", 2, "ContentChanged")]


@virtual
async def test_a_placement_that_keeps_no_history_gets_none() -> None:
    hub = RecordingHub()
    async with hub.running(["florin", "guilder"]), hub.translating(WITHHOLDING):
        await placed(hub)
        notes = {"metadata": {"annotations": {HISTORY_RETENTION: "0"}}}
        await hub.at("root:wmw").patch(EDGE_PLACEMENTS, "web", notes)
        await hub.settle(5)
        known = await story(hub)
        await hub.put(ROLES, ROLE, "shop")
        await hub.put(CONFIG_MAPS, config_map("page", {"k": "2"}), "shop")
        await hub.settle(30)
        assert await story(hub) == known
