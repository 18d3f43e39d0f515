"""Answers from the console's tables are those that somebody gets who reads everything anew."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from skerry.api.edge import EDGE_PLACEMENTS, LOCATION_GRANTS
from skerry.api.errors import ApiError, Forbidden
from skerry.api.kcp.resources import LOCATIONS, SYNC_TARGETS
from skerry.api.kinds import GroupVersionResource
from skerry.app.console_feed import run_feed
from skerry.app.explain import Question, explain
from skerry.app.explain_names import Unanswered
from skerry.app.hub_reading import HubReader
from skerry.app.warm_reading import Kept, WarmReader
from skerry.app.what_if import foresee
from skerry.runtime.client import Client
from skerry.runtime.transport import Answer, Transport
from skerry.scheduler.placement import location_chooser
from skerry.web.feed import Feed
from tests.kit.chain import building
from tests.kit.chain.asked_town import Town, location
from tests.kit.chain.summarizer_hub import PROVIDER
from tests.kit.sim.loop import virtual

Raw = dict[str, Any]
_NAMES = ("florin", "guilder", "ducat", "thaler")
_ENVS = ("prod", "dev", "test")


class WarmTown(Town):
    """A town whose console has been opened."""

    @asynccontextmanager
    async def warm(self) -> AsyncIterator[WarmReader]:
        self.feed = Feed(location_chooser)
        async with self.furnished():
            await self.bind("root:imw", "bind-espw", PROVIDER, "edge.kcp.io")
            feeding = asyncio.create_task(run_feed(self.feed, self.client, self.ids))
            await self.feed.ready(answers=True)
            try:
                yield WarmReader(self.client, "root:wmw", self.feed)
            finally:
                feeding.cancel()


async def asked(reader: HubReader, questions: list[Question], edits: list[Raw]) -> list[Any]:
    """Return every answer as people see it, refusals included."""
    found: list[Any] = []
    for question in questions:
        try:
            found.append((await explain(reader, question)).as_json())
        except Unanswered as error:
            found.append(str(error))
    for edit in edits:
        try:
            found.append((await foresee(reader, [edit])).as_json())
        except Unanswered as error:
            found.append(str(error))
    return found


def as_file(obj: Raw) -> Raw:
    """Return an object as a person writes it."""
    return {**obj, "metadata": {"name": obj["metadata"]["name"]}}


QUESTIONS = [
    Question("p"),
    Question("p", "florin", "deploy/shop/web"),
    Question("p", "root:imw/guilder", "cm/bank/loot"),
    Question("p", "nowhere"),
    Question("q", "ducat"),
]
EDITS: list[Raw] = [
    {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "bank", "labels": {"go": "yes"}},
    },
    as_file(building.placement("p", {})),
    as_file(building.placement("q", {}, strategy={"numberOfLocations": 2})),
]


async def _happens(town: Town, chance: random.Random) -> None:
    """Do one thing to the town that may change an answer."""
    inventory, owner = town.at("root:imw"), town.owner
    name, labels = chance.choice(_NAMES), {"env": chance.choice(_ENVS)}
    match chance.randrange(7):
        case 0:
            await inventory.patch(LOCATIONS, name, {"metadata": {"labels": labels}})
        case 1:
            await inventory.delete(LOCATIONS, name)
        case 2:
            await inventory.create(LOCATIONS, location(name, labels))
        case 3:
            spec = {"locationSelectors": [{"matchLabels": labels}]}
            await owner.patch(EDGE_PLACEMENTS, "p", {"spec": spec})
        case 4:
            await town.slice()
        case 5:
            await inventory.delete(LOCATION_GRANTS, "eu-only")
        case _:
            path = chance.choice(("root:other", "root:wmw"))
            grant = as_file(building.grant("eu-only", paths=[path], selector={}))
            await inventory.create(LOCATION_GRANTS, grant)


@pytest.mark.parametrize("seed", range(3))
def test_answers_are_those_of_who_reads_everything_anew(seed: int) -> None:
    @virtual
    async def story() -> None:
        town, chance = WarmTown(seed), random.Random(seed)
        async with town.warm() as warm:
            for _ in range(12):
                try:
                    await _happens(town, chance)
                except ApiError:
                    continue  # it was so already, or is not there
                await town.clock.sleep(1)
                cold = town.reader("root:wmw")
                assert await asked(warm, QUESTIONS, EDITS) == await asked(cold, QUESTIONS, EDITS)

    story()


@virtual
async def test_a_placement_made_a_moment_ago_is_explained_before_the_console_has_seen_it() -> None:
    town = WarmTown()
    async with town.warm() as warm:
        # The loop does not turn between this and the questions but for the questions themselves.
        made = as_file(building.placement("fresh", {"matchLabels": {"env": "dev"}}))
        await town.owner.create(EDGE_PLACEMENTS, made)
        question = Question("fresh", "guilder", "deploy/shop/web")
        warmly = (await explain(warm, question)).as_json()
        assert warmly == (await explain(town.reader("root:wmw"), question)).as_json()
        [place] = warmly["locations"]
        assert place["syncTargets"] == ["guilder"]


class Refusing:
    """A way to the hub on which nobody may read one kind across workspaces, or *anywhere*."""

    def __init__(self, inner: Transport, resource: str, *, anywhere: bool = False) -> None:
        self._inner = inner
        self._resource = resource
        self._where = "/" if anywhere else "/services/apiexport/"
        self.stream, self.close = inner.stream, inner.close

    async def request(self, method: str, path: str, *rest: Any) -> Answer:
        if self._where in path and path.endswith(f"/{self._resource}"):
            raise Forbidden(f"you may not list {self._resource}")
        return await self._inner.request(method, path, *rest)


@pytest.mark.parametrize("kind", [SYNC_TARGETS, LOCATIONS])
@virtual
async def test_who_may_not_list_the_inventory_gets_no_answer(kind: GroupVersionResource) -> None:
    town = WarmTown()
    async with town.warm():
        client = Client(Refusing(town.client.transport, kind.resource), clock=town.clock)
        warm = WarmReader(client, "root:wmw", town.feed)
        with pytest.raises(Forbidden, match=kind.resource):
            await explain(warm, Question("p", "florin"))
        with pytest.raises(Forbidden, match=kind.resource):
            await foresee(warm, EDITS[:1])


@virtual
async def test_an_edit_says_nothing_of_placements_that_may_not_be_seen() -> None:
    town = WarmTown()
    async with town.warm():
        edit = {**location("guilder", {"env": "prod"})}
        for resource, seen in (("none", ["p"]), ("edgeplacements", [])):
            client = Client(Refusing(town.client.transport, resource), clock=town.clock)
            warm = WarmReader(client, "root:imw", town.feed)
            cold = HubReader(client, client, client, "root:imw", clock=town.clock)
            found = (await foresee(warm, [edit])).as_json()
            assert [each["placement"] for each in found["placements"]] == seen
            assert found == (await foresee(cold, [edit])).as_json()


@pytest.mark.parametrize("resource", ["edgeplacements", "singleplacementslices"])
@virtual
async def test_who_may_not_list_a_kind_in_their_own_workspace_gets_no_answer(resource: str) -> None:
    town = WarmTown()
    async with town.warm():
        refusing = Refusing(town.client.transport, resource, anywhere=True)
        client = Client(refusing, clock=town.clock)
        for reader in (
            WarmReader(client, "root:wmw", town.feed),
            HubReader(client, client, client, "root:wmw", clock=town.clock),
        ):
            with pytest.raises(Forbidden, match=resource):
                await foresee(reader, EDITS[:1])


@virtual
async def test_objects_are_kept_by_kind_and_perhaps_for_one_cluster() -> None:
    town = WarmTown()
    async with town.warm():
        kept, here = Kept(town.feed, LOCATIONS), Kept(town.feed, LOCATIONS, town.imw)
        assert {ref.name for ref in here} >= {"florin", "guilder"}
        assert set(here) == set(kept)
        assert len(here) == len(list(kept))
        florin = next(ref for ref in kept if ref.name == "florin")
        assert kept[florin] == await town.at("root:imw").get(LOCATIONS, "florin")
        assert florin not in Kept(town.feed, LOCATIONS, "elsewhere")
        assert florin not in Kept(town.feed, SYNC_TARGETS)
