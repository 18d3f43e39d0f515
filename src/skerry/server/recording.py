"""What is noted of every request: metrics, the audit log, and the watches that go on."""

from __future__ import annotations

import re
from datetime import timedelta
from functools import partial

from skerry.kit.clock import Clock
from skerry.kit.ids import IdSource
from skerry.kit.rate import RateLimit, RateLimits
from skerry.logic.machinery.audit_policy import METADATA_OF_ALL, NONE, REQUEST, Audited, Policy
from skerry.server.flow import FairFlow
from skerry.server.http.message import Answer, Request, Sender, Stream
from skerry.server.http.steps import taken
from skerry.server.metrics import ServerMetrics, long_running_labels
from skerry.server.request.info import RequestInfo
from skerry.server.security.audit import COMPLETE, STARTED, AuditLog, audit_event
from skerry.server.security.audit_objects import add_request_object
from skerry.server.user import User

_COUNTER_DIGITS = 12
_STRANGERS = "system:unauthenticated"
_ANONYMOUS = "system:anonymous"
# Whoever was answered sooner has not kept the loop long.
_SHORT_SECONDS = 0.001
_REFUSED = frozenset((400, 401, 403, 405, 406, 413, 415, 429))
# On an event: how many of the same principal were left out before it.
_SUPPRESSED = "audit.edge.kcp.io/suppressed-events"


# kube-apiserver cuts what a client chose to this length too.
_AUDIT_ID_LENGTH = 64
_AUDIT_ID = re.compile(r"[A-Za-z0-9._:-]*")


def _acceptable(chosen: str) -> str:
    """Return the part of a client's own Audit-Id that is taken: its beginning, if that is plain."""
    found = _AUDIT_ID.match(chosen, 0, _AUDIT_ID_LENGTH)
    return found.group() if found is not None else ""


class AuditIds:
    """Names for requests: unique, and as cheap as counting.

    A UUID per request would cost more than looking the object up; so the first part is random,
    once per process, and the rest counts.
    """

    def __init__(self, ids: IdSource) -> None:
        self._prefix = ids.uid()[:-_COUNTER_DIGITS]
        self._count = 0

    def next(self) -> str:
        self._count += 1
        return f"{self._prefix}{self._count:012x}"


class RequestRecorder:
    """Counts and audits requests; every answer leaves with an ``Audit-Id``."""

    def __init__(
        self,
        metrics: ServerMetrics,
        flow: FairFlow,
        clock: Clock,
        ids: IdSource,
        audit: AuditLog | None = None,
        policy: Policy | None = None,
    ) -> None:
        """Without a *policy* the metadata of every request is audited."""
        self._policy = policy
        self._metrics = metrics
        self._flow = flow
        self._clock = clock
        self._audit_ids = AuditIds(ids)
        self._audit = audit
        # Enough to see what somebody tries, too little to fill a disk: 3 MB a minute each.
        self._refusals = RateLimits(per_second=20, burst=200)

    def finished(
        self,
        request: Request,
        info: RequestInfo,
        user: User | None,
        answer: Answer,
        *,
        served: bool = True,
    ) -> None:
        """Note that *request* was answered; a stream is noted while it goes on, and at its end.

        *served* tells whether the type it names is one the server has.
        """
        chosen = request.audit_id or request.headers.get("audit-id")
        audit_id = self._audit_ids.next() if chosen is None else _acceptable(chosen)
        if not audit_id:
            audit_id = self._audit_ids.next()
        answer.headers = (*answer.headers, ("Audit-Id", audit_id))
        if user is not None:
            self._metrics.identified()
        else:
            self._metrics.unidentified(request, answer.status)
        if isinstance(answer, Stream):
            self._metrics.finished(request, info, answer.status, None, served=served)
            self._charge(request, user, self._clock.monotonic())
            request.charge = partial(self._flow.charge, user)
            self._follow(request, info, user, answer, audit_id)
            return
        seconds = None
        if request.received:
            now = self._clock.monotonic()
            seconds = now - request.received
            if seconds > _SHORT_SECONDS or user is None or user.name == _ANONYMOUS:
                self._charge(request, user, now)
        self._metrics.finished(request, info, answer.status, seconds, served=served)
        if self._audit is not None:
            self._record(request, info, user, answer.status, audit_id, seconds or 0)

    def _charge(self, request: Request, user: User | None, now: float) -> None:
        """Charge what a request has taken of the loop so far; waiting costs nothing."""
        if request.step:
            self._flow.charge(user, request.busy + taken(request, now), request.peer.address)
            request.busy, request.step = 0.0, now

    def _follow(
        self, request: Request, info: RequestInfo, user: User | None, answer: Stream, audit_id: str
    ) -> None:
        labels = long_running_labels(info)
        run = self._flow.counted_watches(user, answer.watches, answer.run)

        async def followed(sender: Sender) -> None:
            began = self._clock.monotonic()
            self._metrics.long_running.add(labels, 1)
            if request.always_audited:
                self._record(request, info, user, answer.status, audit_id, 0, STARTED)
            try:
                await run(sender)
            finally:
                self._metrics.long_running.add(labels, -1)
                if self._audit is not None:
                    lasted = self._clock.monotonic() - began
                    self._record(request, info, user, answer.status, audit_id, lasted)

        answer.run = followed

    def _record(
        self,
        request: Request,
        info: RequestInfo,
        user: User | None,
        code: int,
        audit_id: str,
        seconds: float,
        stage: str = COMPLETE,
    ) -> None:
        if self._audit is None:
            return
        decision = METADATA_OF_ALL
        if self._policy is not None:
            decision = self._policy.decide(_audited(request.impersonator or user, info))
        if decision.level == NONE and not request.always_audited:
            return
        limit = self._limit(user, code)
        if limit is not None and not limit.allows(self._clock.monotonic()):
            self._metrics.audit_suppressed.inc()
            return
        now = self._clock.now()
        received = now - timedelta(seconds=seconds)
        event = audit_event(audit_id, request, info, user, code, received, now, stage)
        if decision.level == REQUEST:
            event["level"] = REQUEST
            omit = decision.omit_managed_fields
            add_request_object(event, request, info, code, omit_managed_fields=omit)
        if limit is not None and (suppressed := limit.taken()):
            event["annotations"][_SUPPRESSED] = str(suppressed)
        self._audit.record(event)
        self._metrics.audit_events.inc()

    def _limit(self, user: User | None, code: int) -> RateLimit | None:
        """Return what limits the events of a request: who asked without credentials, or was
        refused. All strangers share one limit, others have their own."""
        if user is None or _STRANGERS in user.groups:
            return self._refusals.of("")
        return self._refusals.of(user.principal) if code in _REFUSED else None


def _audited(user: User | None, info: RequestInfo) -> Audited:
    """Return a request as a policy sees it; nobody in particular has no name and no groups."""
    return Audited(
        "" if user is None else user.name,
        () if user is None else user.groups,
        info.verb,
        info.path,
        info.group,
        info.resource.partition(":")[0],
        info.subresource,
        info.namespace,
        info.name,
    )
