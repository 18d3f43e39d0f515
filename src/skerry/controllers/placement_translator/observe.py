"""What one mailbox needs: the rows of ``difference`` to evaluate, and what is to be changed.

Rows tell whether anything has to be done at all; only what has to be changed is read afresh from
the server, so that the change is made to the newest version. Observing changes nothing: the rows
stay dirty until their plan has been carried out, and what guards say of them is part of that plan.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from skerry.api.edge import Mailbox
from skerry.api.errors import NotFound
from skerry.api.objects import Object
from skerry.api.refs import ClusterName, ObjectRef
from skerry.controllers.placement_translator.guards import Judgement
from skerry.logic.fleet.tables.completeness import Verdict
from skerry.logic.fleet.translation.difference import Difference, ItemDiff
from skerry.logic.fleet.translation.dirty import DirtyRows
from skerry.logic.fleet.translation.workspaces import Mailboxes
from skerry.runtime.client import Client

# Reads in flight for one mailbox.
_SIDE_BY_SIDE = 16


@dataclass(frozen=True, slots=True)
class Observed:
    """The rows of one mailbox.

    ``numbers`` tell as of which change each row was evaluated; ``live`` has the newest version of
    what is to be changed, where there still is one.
    """

    judgement: Judgement
    cluster: ClusterName
    numbers: Mapping[ObjectRef, int] = field(default_factory=dict)
    live: Mapping[ObjectRef, Object] = field(default_factory=dict)

    @property
    def rows(self) -> tuple[ItemDiff, ...]:
        """The rows, with nothing to be done about those that guards hold."""
        return self.judgement.rows


# Takes the rows of a mailbox and its cluster.
Judge = Callable[[Mailbox, ClusterName, Sequence[ItemDiff]], Judgement]


class Observer:
    """Reads the rows to evaluate."""

    def __init__(
        self,
        client: Client,
        difference: Difference,
        dirty: DirtyRows,
        mailboxes: Mailboxes,
        judged: Judge,
    ) -> None:
        self._judged = judged
        self._client = client
        self._difference = difference
        self._dirty = dirty
        self._mailboxes = mailboxes

    async def observe(self, mailbox: Mailbox) -> Observed | None:
        cluster = self._mailboxes.cluster(mailbox)
        numbers = self._dirty.of(mailbox)
        if cluster is None or not numbers:
            return None
        found = self._difference.rows(mailbox, cluster, sorted(numbers))
        live = await self._live(cluster, [row for row in found if row.verdict is Verdict.UPDATE])
        # Last: what guards say counts for as long as nothing else happens.
        return Observed(self._judged(mailbox, cluster, found), cluster, numbers, live)

    async def _live(self, cluster: ClusterName, rows: list[ItemDiff]) -> Mapping[ObjectRef, Object]:
        """Return the newest version of what is to be changed, by item."""
        if not rows:
            return {}
        room, client = asyncio.Semaphore(_SIDE_BY_SIDE), self._client.for_cluster(cluster)

        async def read(row: ItemDiff) -> Object | None:
            async with room:
                try:
                    # An update has a version to be made at.
                    return await client.get(row.gvr, row.item.name, row.item.namespace)  # type: ignore[arg-type]
                except NotFound:
                    return None

        found = await asyncio.gather(*map(read, rows))
        pairs = zip(rows, found, strict=True)
        return {row.item: obj for row, obj in pairs if obj is not None}
