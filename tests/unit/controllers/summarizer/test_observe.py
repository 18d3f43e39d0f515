"""What one summary is compared with."""

from __future__ import annotations

from skerry.api.edge import edge_placement_ref
from skerry.controllers.summarizer.observe import ObservedPlacement
from skerry.controllers.summarizer.watches import EVERY_KIND, Parked
from skerry.logic.fleet.summary.standing import Standing
from skerry.logic.fleet.tables.completeness import Scope
from skerry.runtime.index import Key
from tests.kit.chain.summarizer_world import DEPLOYMENTS, WEB, P, World, thing


async def test_a_summary_with_a_cause_is_compared_with_its_tally() -> None:
    world = World()
    world.report({"replicas": 2})

    found = await world.observer.observe(WEB)

    assert found is not None
    assert found.desired is not None
    assert found.desired.placement == P
    assert found.desired.owner_uid == "uid-p"
    assert found.desired.subject == ("apps", "v1", "deployments", "Deployment", "shop", "web")
    assert (found.desired.totals.destinations, found.desired.totals.reported) == (1, 1)
    assert (found.existing, found.missing) == (None, None)


async def test_a_summary_that_is_neither_there_nor_desired_is_not_compared() -> None:
    assert await World().observer.observe(Key("wmw", "shop", "unknown")) is None


async def test_a_summary_without_cause_is_compared_with_nothing() -> None:
    world = World()
    for held, key in (
        (world.summaries, Key("wmw", "shop", "old")),
        (world.cluster_summaries, Key("wmw", "", "old")),
    ):
        obj = thing("wmw", "old", key.namespace)
        held.put(key, obj)

        found = await world.observer.observe(key)

        assert found is not None
        assert (found.existing, found.desired) == (obj, None)


async def test_a_summary_waits_until_its_kind_was_read() -> None:
    world = World(read=False)

    found = await world.observer.observe(WEB)

    assert found is not None
    assert found.missing == Scope("wmw", DEPLOYMENTS.group_resource)
    world.watches._complete(found.missing)
    assert world.enqueued == [Parked("summaries", WEB)]


async def test_a_summary_without_cause_waits_until_everything_was_read() -> None:
    world = World(read=False)

    found = await world.observer.observe(Key("wmw", "shop", "old"))

    assert found is not None
    assert found.missing == Scope("wmw", EVERY_KIND)


async def test_a_placement_is_observed_with_its_standing() -> None:
    standing = Standing(destinations=1, objects=2, undelivered=("a",))

    found = await World().standings.observe(P)

    assert found == ObservedPlacement(P, found.placement if found else {}, standing)


async def test_the_standing_of_a_placement_waits_until_everything_was_read() -> None:
    world = World(read=False)

    found = await world.standings.observe(P)

    assert found is not None
    assert found.missing == Scope("wmw", EVERY_KIND)
    world.watches._complete_everything("wmw")
    assert world.enqueued == [Parked("placements", P)]


async def test_a_placement_that_has_gone_has_no_standing() -> None:
    assert await World().standings.observe(edge_placement_ref("wmw", "gone")) is None
