"""Write the answer that is true, and delete a query whose time is over.

A status without any answer says so by its conditions. The old answer stands while the same
question is read once more, after a restart; a new question begins with no rows.
"""

from __future__ import annotations

from datetime import datetime

from skerry.api.edge import COMPLETE, READING, STATUS_QUERIES, VALID, WITHIN_LIMITS
from skerry.api.objects import Object
from skerry.controllers.status_queries.observe import Observed
from skerry.kit.timestamps import rfc3339
from skerry.logic.machinery.conditions import condition, set_conditions
from skerry.logic.machinery.plan import NOTHING, Delete, Plan, Target, Update

_MAX_MESSAGE = 1024


def decide(observed: Observed, now: datetime) -> Plan:
    """Make the status say the answer; nothing where it does."""
    query, ref = observed.query, observed.ref
    target = Target(STATUS_QUERIES, ref.name, cluster=ref.cluster)
    if observed.expired:
        uid = query["metadata"].get("uid", "")
        return Plan([Delete(target, reason="TimeToLiveOver", uid=uid)])
    old = query.get("status") or {}
    generation = query["metadata"].get("generation")
    same_question = generation is not None and old.get("observedGeneration") == generation
    reading = observed.waiting is not None and observed.waiting[0] == READING
    if reading and same_question:
        return NOTHING
    status = _status(observed, generation, rfc3339(now))
    if _without_read_position(status) == _without_read_position(old):
        return NOTHING
    obj = {**query, "status": status}
    return Plan([Update(target, obj, reason="AnswerChanged", subresource="status")])


def _status(observed: Observed, generation: int | None, now: str) -> Object:
    old = observed.query.get("status") or {}
    answer: Object = {} if observed.answer is None else dict(observed.answer.status)
    if observed.answer is not None and observed.revision:
        answer["asOf"] = {**answer["asOf"], "resourceVersion": str(observed.revision)}
    wanted = set_conditions(old.get("conditions") or [], _conditions(observed), now)
    numbered = {} if generation is None else {"observedGeneration": generation}
    return {**numbered, **answer, "conditions": wanted}


def _conditions(observed: Observed) -> list[Object]:
    if observed.errors:
        text = "; ".join(observed.errors)[:_MAX_MESSAGE]
        return [
            condition(VALID, False, "InvalidSpec", text),
            condition(COMPLETE, False, "InvalidSpec", "the query is invalid"),
        ]
    reason, message = observed.waiting or ("Read", "everything it asks about was read")
    complete = observed.waiting is None
    cut = "" if observed.answer is None else observed.answer.cut
    return [
        condition(VALID, True, "Compiled", "the query is valid"),
        condition(COMPLETE, complete, reason, message),
        condition(WITHIN_LIMITS, not cut, "Cut" if cut else "Whole", cut or "nothing is cut"),
    ]


def _without_read_position(status: Object) -> Object:
    """Return *status* without how far it was read, which alone is no change."""
    as_of = {k: v for k, v in (status.get("asOf") or {}).items() if k != "resourceVersion"}
    return {**status, "asOf": as_of}
