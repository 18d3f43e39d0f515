"""Rows of one object that goes down: what the watches know, and what the edge is asked for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from skerry.api.errors import Forbidden
from skerry.api.objects import Object
from skerry.edge.syncer.downsync.observe import DownsyncObserver
from skerry.logic.fleet.syncing.difference import Observed
from skerry.logic.fleet.syncing.present import present
from skerry.logic.fleet.syncing.recorded import DownsyncRecord
from skerry.runtime.discovery import discover
from skerry.runtime.transport import Answer
from tests.kit.chain.syncer_place import CONTENT, PAGE, WANTED, Place, place
from tests.kit.chain.syncer_world import CONFIG_MAPS, SPEC
from tests.kit.sim.loop import virtual


def configure(here: Place) -> None:
    """Have the mailbox say what belongs, and follow the type of the page."""
    state = here.state
    config = {"metadata": {"name": "the-one", "uid": "c", "resourceVersion": "5"}, "spec": SPEC}
    state.config.informer.synced.set()
    state.config.informer.apply("ADDED", config)
    state.mailbox.follow({PAGE.group_resource: CONFIG_MAPS})


def wish(here: Place, **metadata: Any) -> None:
    """Put the page in the mailbox."""
    named = {"name": "page", "namespace": "shop", "uid": "m1", "resourceVersion": "6", **metadata}
    informer = here.state.mailbox._types[PAGE.group_resource].informer
    informer.apply("ADDED", {**CONTENT, "metadata": named})


async def at_edge(here: Place) -> Object:
    return await here.world.edge.client.create(CONFIG_MAPS, CONTENT, "shop")


async def observe(here: Place) -> Observed:
    return await DownsyncObserver(here.state).observe(PAGE)


@virtual
async def test_of_what_does_not_concern_us_the_edge_is_not_asked(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        here.world.to_edge.sever()
        found = await observe(here)
        assert (found.wanted, found.live, found.record, found.covered) == (None, None, None, False)
        configure(here)
        wish(here, annotations={"edge.kcp.io/upsynced": "true"})
        assert (await observe(here)).wanted is None, "a report of what was born at the edge"


@virtual
async def test_before_the_watch_has_read_the_place_the_edge_is_asked(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        configure(here)
        wish(here)
        assert (await observe(here)).live is None
        made = await at_edge(here)
        found = await observe(here)
        assert found.live == present(made)
        assert found.wanted is not None
        assert (found.covered, found.record) == (True, None)


@virtual
async def test_what_the_watch_has_read_is_not_asked_for(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        configure(here)
        wish(here)
        watch = here.state.edge_cache.watch(CONFIG_MAPS, "shop")
        watch.synced.set()
        here.world.to_edge.sever()
        assert (await observe(here)).live is None
        named = {"name": "page", "namespace": "shop", "uid": "e", "resourceVersion": "3"}
        watch.apply("ADDED", present({**CONTENT, "metadata": named}))
        live = (await observe(here)).live
        assert live is not None
        assert live["metadata"]["uid"] == "e"


@virtual
async def test_the_answer_to_our_own_write_comes_before_what_the_watch_shows(
    tmp_path: Path,
) -> None:
    async with place(tmp_path) as here:
        configure(here)
        wish(here)
        here.state.edge_cache.watch(CONFIG_MAPS, "shop").synced.set()
        made = await at_edge(here)
        here.state.edge_writes.answered(PAGE, made)
        here.world.to_edge.sever()
        assert (await observe(here)).live == present(made)


@virtual
async def test_an_intent_that_the_watch_does_not_show_is_looked_for(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        configure(here)
        wish(here)
        here.state.edge_cache.watch(CONFIG_MAPS, "shop").synced.set()
        here.state.records.set_placed(PAGE, DownsyncRecord(WANTED))
        made = await at_edge(here)
        # The apply may have taken effect although its answer was lost.
        assert (await observe(here)).live == present(made)
        here.state.records.set_placed(PAGE, DownsyncRecord(WANTED, edge_uid="gone"))
        assert (await observe(here)).live is None, "one that was seen and is gone, is gone"


@virtual
async def test_a_kind_that_the_edge_does_not_serve_is_not_asked_for(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        configure(here)
        wish(here)
        assert (await observe(here)).served, "before its types are known, anything may be there"
        types = await discover(here.state.edge)
        without = [info for info in types.resources if info.resource != "configmaps"]
        await here.state.edge_types._take(replace(types, resources=tuple(without)))
        here.world.to_edge.sever()
        assert not (await observe(here)).served


@virtual
async def test_what_may_not_be_read_is_said_with_the_rule_that_is_missing(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        configure(here)
        wish(here)
        edge = here.world.to_edge

        async def forbid(*_: Any, **__: Any) -> Answer:
            raise Forbidden('configmaps "page" is forbidden: User "x" cannot get resource')

        edge.request = forbid  # type: ignore[method-assign]
        found = await observe(here)
        assert found.unreadable is not None
        assert found.unreadable.reason == "EdgeForbidden"
        assert "configmaps" in found.unreadable.message


@virtual
async def test_content_that_an_immutable_field_refused_is_known_by_its_digest(
    tmp_path: Path,
) -> None:
    async with place(tmp_path) as here:
        configure(here)
        wish(here)
        row = (await observe(here)).wanted
        assert row is not None
        here.state.edge_writes.refuse(PAGE, "other content")
        assert not (await observe(here)).immutable
        here.state.edge_writes.refuse(PAGE, row.digest)
        assert (await observe(here)).immutable
