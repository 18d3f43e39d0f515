"""Histories are read once a look, with the viewer's rights; what cannot be read is said."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, cast

import pytest

from skerry.api.errors import BadRequest, Forbidden
from skerry.app.console_past import PastReader
from skerry.app.console_questions import Viewer
from skerry.kit.clock import LoopClock
from skerry.logic.fleet.console.placements import PROGRESSING
from skerry.logic.fleet.history.packing import Standing
from skerry.server.user import User
from tests.kit.chain.console_feed import ALICE, BOB, Town
from tests.kit.chain.console_objects import placement
from tests.kit.decisions import NOW, History, destination

pytestmark = pytest.mark.looptime
LATER = NOW + timedelta(minutes=1)


@dataclass
class Page:
    items: list[Any]


@dataclass
class Archive:
    """The DecisionRecords of workspaces, by path; a workspace without any refuses to list them."""

    clock: LoopClock
    records: dict[str, list[Any]] = field(default_factory=dict)
    read: list[tuple[str, str]] = field(default_factory=list)

    def reader(self, user: User, workspace: str) -> Any:
        self.read.append((user.name, workspace))
        return _Reader(workspace, self.clock, self)


@dataclass
class _Reader:
    workspace: str
    clock: LoopClock
    archive: Archive

    @property
    def own(self) -> _Reader:
        return self

    async def pages(self, *_: Any) -> AsyncIterator[Page]:
        if self.workspace not in self.archive.records:
            raise Forbidden("you may not list decisionrecords")
        yield Page(self.archive.records[self.workspace])


def world() -> tuple[PastReader, Archive, Town]:
    town, clock = Town(), LoopClock(LATER)
    history = History()
    history.become({destination(1): Standing(destination(1), 1, 7)})
    for cluster in ("shop", "shut"):
        town.feed.placements.put_placement(placement(cluster, "web"))
        town.grant(ALICE, cluster, "edgeplacements")
    archive = Archive(clock, {"root:shop": history.records})
    return PastReader(cast("Viewer", archive), town.feed, town.eyes, clock), archive, town


async def test_each_workspace_is_read_as_the_viewer_and_gaps_are_named() -> None:
    reader, archive, _ = world()
    past = await reader.read(ALICE, LATER)
    assert archive.read == [("alice", "root:shop"), ("alice", "root:shut")]
    assert {key: then.state for key, then in past.by_cluster["shop"].items()} == {
        ("inv", "t1"): PROGRESSING
    }
    assert past.by_cluster["shut"] == {}
    assert past.unknown == (("shut", "*", "you may not list decisionrecords"),)


async def test_a_moment_is_read_once_for_who_scrolls_and_anew_for_others_and_later() -> None:
    reader, archive, _ = world()
    assert await reader.read(ALICE, LATER) is await reader.read(ALICE, LATER)
    assert len(archive.read) == 2
    assert (await reader.read(BOB, LATER)).by_cluster == {}
    assert len(archive.read) == 2
    await archive.clock.sleep(60)
    await reader.read(ALICE, LATER)
    assert len(archive.read) == 4


async def test_what_has_not_come_yet_is_refused() -> None:
    reader, archive, _ = world()
    with pytest.raises(BadRequest, match="has not come yet"):
        await reader.read(ALICE, LATER + timedelta(hours=1))
    assert archive.read == []
