"""ResourceQuota, enforced exactly.

The charge to a quota is committed together with the object, on condition that the quota has not
changed: two creates that race for the last place cannot both win, whichever server they go
through, and a failed create charges nothing. Deletes are credited by the quota controller, which
recounts.
"""

from __future__ import annotations

from skerry.api.errors import Forbidden
from skerry.api.keys import ObjectKey
from skerry.api.objects import Object
from skerry.kit.clock import Clock
from skerry.logic.machinery.quota import (
    CLUSTER_QUOTAS,
    Counted,
    charged,
    counts_cluster,
    increase,
    refusal,
)
from skerry.server.admission.operation import Operation
from skerry.server.codec import decode, encode
from skerry.server.observed import ObservedObjects
from skerry.store.base import Store, Write

_EXEMPT = frozenset({("", "resourcequotas"), ("", "events"), ("events.k8s.io", "events")})


class QuotaAdmission:
    """Refuses what a quota does not allow and charges what it does.

    With *cluster_quotas* there are some that count everything in a cluster, whatever namespace
    it is in and also if it is in none.
    """

    def __init__(
        self, store: Store, quotas: ObservedObjects, clock: Clock, *, cluster_quotas: bool = False
    ) -> None:
        self._store = store
        self._quotas = quotas
        self._clock = clock
        self._cluster_quotas = cluster_quotas

    async def admit(self, operation: Operation) -> None:
        if not self._quotas.by_place or operation.verb == "DELETE" or operation.subresource:
            return
        if operation.type in _EXEMPT:
            return
        for namespace, name in sorted(self._concerned(operation)):
            await self._charge(operation, namespace, name)

    def _concerned(self, operation: Operation) -> set[tuple[str, str]]:
        """Return namespace and name of every quota that may count the object."""
        call = operation.call
        cluster, found = call.info.cluster, set()
        if call.namespace:
            found = {
                (call.namespace, name) for name in self._quotas.within(cluster, call.namespace)
            }
        if self._cluster_quotas:
            wide = self._quotas.within(cluster, CLUSTER_QUOTAS).items()
            found |= {(CLUSTER_QUOTAS, name) for name, quota in wide if counts_cluster(quota)}
        return found

    async def _charge(self, operation: Operation, namespace: str, name: str) -> None:
        call = operation.call
        key = ObjectKey("", "resourcequotas", call.info.cluster, namespace, name).path()
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
