"""ResourceQuota, enforced exactly.

The charge to a quota is committed together with the object, on condition that the quota has not
changed: two creates that race for the last place cannot both win, whichever server they go
through, and a failed create charges nothing. Deletes are credited by the quota controller, which
recounts.
"""

from __future__ import annotations

from skerry.api.errors import Forbidden
from skerry.api.keys import ObjectKey
from skerry.kit.clock import Clock
from skerry.logic.quota import Counted, charged, increase, refusal
from skerry.logic.resource import Object
from skerry.server.admission.operation import Operation
from skerry.server.codec import decode, encode
from skerry.server.observed import ObservedObjects
from skerry.store.base import Store, Write

_EXEMPT = frozenset({("", "resourcequotas"), ("", "events"), ("events.k8s.io", "events")})


class QuotaAdmission:
    """Refuses what a quota does not allow and charges what it does."""

    def __init__(self, store: Store, quotas: ObservedObjects, clock: Clock) -> None:
        self._store = store
        self._quotas = quotas
        self._clock = clock

    async def admit(self, operation: Operation) -> None:
        if operation.verb == "DELETE" or operation.subresource or operation.type in _EXEMPT:
            return
        call = operation.call
        names = self._quotas.within(call.info.cluster, call.namespace) if call.namespace else ()
        for name in sorted(names):
            await self._charge(operation, name)

    async def _charge(self, operation: Operation, name: str) -> None:
        call = operation.call
        key = ObjectKey("", "resourcequotas", call.info.cluster, call.namespace, name).path()
        entry = await self._store.get(key)
        if entry is None:
            return
        quota = decode(entry.value, entry.revision)
        now = self._clock.now()
        resource = call.resource.info.group_resource
        new = Counted(resource, operation.obj)
        old = Counted(resource, operation.old) if operation.old is not None else None
        why = refusal(quota, new, old, now)
        if why is not None:
            group, plural = operation.type
            raise Forbidden.of(group, plural, operation.obj["metadata"].get("name", ""), why)
        change, asked = increase(quota, new, old, now)
        if asked and not operation.dry_run:
            _set_used(quota, charged(quota, change))
            operation.writes.append(Write(key, encode(quota), expected=entry.revision))


def _set_used(quota: Object, used: dict[str, str]) -> None:
    quota.setdefault("status", {})["used"] = used
