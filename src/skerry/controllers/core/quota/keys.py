"""A quota is looked at when it changes and when anything it counts in its namespace does."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from skerry.api.kinds import GroupResource, GroupVersionResource
from skerry.api.objects import Object
from skerry.logic.machinery import quota as rules
from skerry.runtime.index import Index, Key, key_of
from skerry.runtime.informer import Handler

QUOTAS = GroupVersionResource("", "v1", "resourcequotas")
IN_NAMESPACE = "namespace"
IN_CLUSTER = "cluster"


def by_cluster(obj: Object) -> Iterable[Hashable]:
    """Index under the cluster an object is in."""
    return (key_of(obj).cluster,)


def enqueue_on_content(
    add: Callable[[Key], None], resource: GroupResource, quotas: Index, *, clusters: bool
) -> Handler:
    """Return the handler that adds every quota of the namespace that counts *resource*.

    With *clusters* those too that count everything in their cluster.
    """

    def handle(old: Object | None, new: Object | None) -> None:
        where = key_of(new or old or {})
        for quota in quotas.by(IN_NAMESPACE, (where.cluster, where.namespace)):
            if resource in rules.tracked_types(quota):
                add(key_of(quota))
        if not clusters:
            return
        for quota in quotas.by(IN_NAMESPACE, (where.cluster, rules.CLUSTER_QUOTAS)):
            if rules.counts_cluster(quota) and resource in rules.tracked_types(quota):
                add(key_of(quota))

    return handle
