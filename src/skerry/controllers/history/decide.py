"""What is to be written and dropped of the records of one placement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import orjson

from skerry.api.edge import DECISION_RECORDS
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.history.fold import Timeline, UnknownThen, folded, timeline
from skerry.logic.fleet.history.record import Maker, Record, Subject, checkpoint_of, digest
from skerry.logic.fleet.history.retention import Kept, Limits, plan
from skerry.logic.fleet.history.writing import creation
from skerry.logic.machinery.plan import Action, Delete, Plan, Target


@dataclass(frozen=True, slots=True)
class ObservedHistory:
    """The records of one placement, and how much of them is kept."""

    placement: ObjectRef
    objects: Sequence[Object]
    limits: Limits


def decide(observed: ObservedHistory, now: datetime, maker: Maker) -> Plan:
    """Return the checkpoint that is due, and after it the deletion of what it stands for."""
    line = timeline(observed.objects)
    if observed.limits.is_off:
        return Plan([_dropped(observed, each, "HistoryOff") for each in observed.objects])
    if line.broken:
        return Plan()  # what is wrong with it must stay to be seen
    records = line.records
    if _is_over(line, now - observed.limits.age):
        return Plan([_dropped(observed, each, "Retention") for each in observed.objects])
    wanted = plan([_kept(each) for each in records], observed.limits, now)
    actions: list[Action] = []
    if wanted.checkpoint is not None:
        try:
            actions += _checkpoint(observed, line, wanted.checkpoint, maker)
        except UnknownThen:
            return Plan()
    actions += [
        _dropped(observed, dict(each.object), "Retention") for each in records[: wanted.drop]
    ]
    return Plan(actions)


def _is_over(line: Timeline, oldest: datetime) -> bool:
    """Tell whether a history ended before *oldest*, with no destination left."""
    if not line.records or line.records[-1].time >= oldest:
        return False
    try:
        return not folded(line, len(line.records)).standings
    except UnknownThen:
        return False


def _kept(record: Record) -> Kept:
    size = len(orjson.dumps(record.object))
    return Kept(record.order, record.time, size, record.pages, record.place)


def _checkpoint(observed: ObservedHistory, line: Timeline, end: int, maker: Maker) -> list[Action]:
    """Return the checkpoint behind the first *end* records."""
    state, last = folded(line, end), line.records[end - 1]
    placement = last.object["placement"]
    subject = Subject(placement["name"], placement["uid"], int(placement.get("generation") or 0))
    made = checkpoint_of(
        list(state.standings.values()),
        subject,
        maker,
        after=last.order,
        time=last.time,
        chains=_chains(line.records[:end]),
    )
    return [creation(observed.placement.cluster, each) for each in made]


def _chains(records: Sequence[Record]) -> dict[str, str]:
    """Return the digest of the last record of each controller."""
    found: dict[str, str] = {}
    for each in records:
        chains = each.object.get("chains")
        if chains is not None:
            found |= {known["controller"]: known["digest"] for known in chains}
        else:
            found[each.object["by"]["controller"]] = digest(each.object)
    return found


def _dropped(observed: ObservedHistory, obj: Object, reason: str) -> Delete:
    metadata = obj["metadata"]
    target = Target(DECISION_RECORDS, metadata["name"], cluster=observed.placement.cluster)
    return Delete(target, reason, uid=str(metadata.get("uid", "")))
