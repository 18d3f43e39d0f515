"""SyncTarget and Location of an edge are made, labelled and removed, over a real hub engine."""

from __future__ import annotations

import pytest

from skerry.api.kcp.resources import LOCATIONS, SYNC_TARGETS
from skerry.app.edge_identity import HubAccess
from skerry.app.inventory import (
    CommandFailed,
    checked_labels,
    checked_name,
    ensure_location,
    remove_location,
)
from skerry.runtime.kubeconfig import ClientConfig
from tests.kit.chain.summarizer_hub import Hub
from tests.kit.sim.loop import virtual


@pytest.mark.parametrize("name", ["Bad_Name", "", "-a", "default"])
def test_a_name_that_no_location_can_have_is_refused(name: str) -> None:
    with pytest.raises(CommandFailed, match="location name"):
        checked_name(name)


@pytest.mark.parametrize("words", [[], ["env"], ["=x"], ["a b=c"], ["env=a b"], ["id=florin"]])
def test_words_that_are_no_labels_are_refused(words: list[str]) -> None:
    with pytest.raises(CommandFailed, match="label"):
        checked_labels(words)


def test_labels_may_have_prefixes_and_empty_values() -> None:
    assert checked_labels(["example.org/env=prod", "old="]) == {
        "example.org/env": "prod",
        "old": "",
    }


@virtual
async def test_a_location_is_made_once_labelled_anew_and_removed() -> None:
    town = Hub()
    async with town.running([]):
        await town.workspace("root", "imw")
        access = HubAccess(town.client, ClientConfig(server="https://hub"), "https://hub", "")
        made = await ensure_location(access, "root:imw", "florin", {"env": "prod"})
        assert made[:2] == [
            "synctarget.workload.kcp.io/florin created",
            "location.scheduling.kcp.io/florin created",
        ]
        assert await ensure_location(access, "root:imw", "florin", {"env": "prod"}) == []
        inventory = town.at("root:imw")
        location = await inventory.get(LOCATIONS, "florin")
        assert location["spec"]["instanceSelector"] == {"matchLabels": {"id": "florin"}}
        target = await inventory.get(SYNC_TARGETS, "florin")
        labels = target["metadata"]["labels"]
        assert (labels["id"], labels["env"]) == ("florin", "prod")

        assert await ensure_location(access, "root:imw", "florin", {"env": "dev"}) == [
            "synctarget.workload.kcp.io/florin labeled",
            "location.scheduling.kcp.io/florin labeled",
        ]
        assert len(await remove_location(access, "root:imw", "florin")) == 2
        assert await remove_location(access, "root:imw", "florin") == []
