"""Random histories of a placement: what its slices held, and the records that were written."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

from skerry.api.objects import Object
from skerry.logic.fleet.history.difference import Because, Causes, Difference, Move, decisions
from skerry.logic.fleet.history.packing import Standing
from skerry.logic.fleet.history.record import (
    Cause,
    Head,
    Maker,
    Reason,
    Subject,
    digest,
    order_of,
    records_of,
)
from skerry.logic.fleet.placement.records import Destination

NOW = datetime(2026, 9, 1, 14, 0, tzinfo=UTC)
MAKER = Maker("edge-scheduler", "1.0")
SUBJECT = Subject("web", "uid-web", 1)
ANN = Cause("Location", "l1", "inv", change="label env=dr", user="ann", resource_version="7")


def destination(number: int) -> Destination:
    return Destination("inv", f"l{number}", f"t{number}", f"uid-{number}")


class History:
    """A placement whose slices change, with the records that explain each change."""

    def __init__(self, subject: Subject = SUBJECT, revision: int = 100) -> None:
        self.subject = subject
        self.now = NOW
        self.revision = revision
        self.present: dict[Destination, Standing] = {}
        self.records: list[Object] = []
        # After each change: how many records there were, and what the slices held.
        self.moments: list[tuple[datetime, int, dict[Destination, Standing]]] = []

    @property
    def head(self) -> Head | None:
        if not self.records:
            return None
        order = order_of(self.records[-1]["metadata"]["name"])
        assert order is not None
        return Head(order, digest(self.records[-1]))

    def become(self, wanted: dict[Destination, Standing]) -> None:
        """Have the slices hold *wanted*."""
        both = wanted.keys() & self.present.keys()
        difference = Difference(
            tuple(wanted[each] for each in sorted(wanted.keys() - both)),
            tuple(self.present[each] for each in sorted(self.present.keys() - both)),
            tuple(
                Move(self.present[each], wanted[each])
                for each in sorted(both)
                if wanted[each] != self.present[each]
            ),
        )
        made = decisions(
            difference,
            Causes((ANN,), 1),
            lambda each: Reason("Selected", "locationSelectors[0]"),
            lambda each: Reason("NotSelected", f"because {each.location[-1]}"),
            Because(Reason("WaveOpened")),
        )
        self.now += timedelta(seconds=1)
        self.records += records_of(
            made, self.subject, MAKER, follows=self.revision, head=self.head, now=self.now
        )
        self.revision += 2
        self.present = dict(wanted)
        self.moments.append((self.now, len(self.records), dict(wanted)))


def random_history(seed: int, steps: int = 12, *, rolled: bool | None = None) -> History:
    """Return a history of joins, leaves, and perhaps slots and revisions from some step on."""
    source = random.Random(seed)
    history = History()
    slots: dict[Destination, int] = {}
    begins, ends = sorted(source.choices(range(steps + 1), k=2))
    if rolled is not None:
        begins, ends = (0, steps) if rolled else (steps, steps)
    for step in range(steps):
        count = source.choice((0, 1, 3, 30))
        chosen = {destination(source.randrange(40)) for _ in range(count)}
        wanted: dict[Destination, Standing] = {}
        for each in sorted(chosen):
            if not begins <= step < ends:
                wanted[each] = Standing(each)
                continue
            if each not in history.present:
                slots.pop(each, None)
            slot = slots.setdefault(each, max(slots.values(), default=0) + 1 + step * 100)
            wanted[each] = Standing(each, slot, source.randrange(1, 4))
        history.become(wanted)
    return history
