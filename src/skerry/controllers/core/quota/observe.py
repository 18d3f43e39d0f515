"""A quota and everything in its namespace that it counts.

Counted from caches; but a cache of pods may lag behind the cache of quotas, and to write less
than admission has charged would let others in who must stay out. So a credit needs evidence:
where the caches show less than the status says, the objects are read live. Whatever is admitted
after that read charges the quota, and our write, made on the older version, is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.controllers.core.quota.keys import (
    IN_CLUSTER,
    IN_NAMESPACE,
    by_cluster,
    enqueue_on_content,
)
from skerry.logic.machinery import quota as rules
from skerry.logic.machinery.quantity import Quantity
from skerry.runtime.client import Selection
from skerry.runtime.discovery import Mapper
from skerry.runtime.index import Key, by_namespace
from skerry.runtime.informer import Informer, InformerFactory

_BY_CONTENT = frozenset(("pods", "services", "persistentvolumeclaims"))
_POD_SPEC = ("overhead", "activeDeadlineSeconds", "priorityClassName", "affinity")
_CONTAINER = ("name", "resources", "restartPolicy")


@dataclass(frozen=True, slots=True)
class Observed:
    """A quota, and all it may count; of a type that is not served there is nothing."""

    key: Key
    quota: Object
    content: tuple[rules.Counted, ...]


class Observer:
    """Follows a type from the first quota that limits it."""

    def __init__(
        self,
        factory: InformerFactory,
        quotas: Informer,
        add: Callable[[Key], None],
        *,
        workloads: bool = True,
        clusters: bool = False,
    ) -> None:
        self._clusters = clusters
        self._by_content = _BY_CONTENT if workloads else frozenset[str]()
        self._factory = factory
        self._quotas = quotas
        self._mappers: dict[str, Mapper] = {}  # clusters need not serve the same types
        self._client = factory.client
        self._clock = factory.client.clock
        self._add = add
        self._followed: dict[GroupResource, Informer] = {}

    async def observe(self, key: Key) -> Observed | None:
        quota = self._quotas.index.get(key)
        if quota is None:
            return None
        tracked = sorted(rules.tracked_types(quota))
        followed = [
            (resource, informer)
            for resource in tracked
            if (informer := await self._following(key.cluster, resource)) is not None
        ]
        if len(followed) < len(tracked) and key.cluster in self._mappers:
            self._mappers[key.cluster].forget()  # what is missing may be served by the next look
        for _, informer in followed:
            await informer.wait_synced()
        whole = self._clusters and rules.counts_cluster(quota)
        content = tuple(
            rules.Counted(resource, obj)
            for resource, informer in followed
            for obj in _within(informer, key, whole=whole)
        )
        if _credits(quota, rules.used_by(quota, content, self._clock.now())):
            content = await self._read(key, "" if whole else key.namespace, followed)
        return Observed(key, quota, content)

    async def _read(
        self, key: Key, namespace: str, followed: list[tuple[GroupResource, Informer]]
    ) -> tuple[rules.Counted, ...]:
        """Return what is there now, from the server itself."""
        client = self._client.for_cluster(key.cluster)
        found: list[rules.Counted] = []
        for resource, informer in followed:
            selection = Selection(
                namespace=namespace, metadata_only=not self._counted_by_content(resource)
            )
            items = (await client.list(informer.gvr, selection)).items
            found.extend(rules.Counted(resource, item) for item in items)
        return tuple(found)

    async def _following(self, cluster: str, resource: GroupResource) -> Informer | None:
        if resource in self._followed:
            return self._followed[resource]
        mapper = self._mappers.setdefault(cluster, Mapper(self._client.for_cluster(cluster)))
        info = (await mapper.types()).preferred().get(resource)
        countable = info is not None and (info.namespaced or self._clusters)
        if info is None or not countable or "watch" not in info.verbs:
            return None
        if resource in self._followed:  # another worker was faster
            return self._followed[resource]
        informer = self._factory.informer(
            info.gvr,
            Selection(metadata_only=not self._counted_by_content(resource)),
            transform=pared,
        )
        informer.index.add_index(IN_NAMESPACE, by_namespace)
        if self._clusters:
            informer.index.add_index(IN_CLUSTER, by_cluster)
        informer.add_handler(
            enqueue_on_content(self._add, resource, self._quotas.index, clusters=self._clusters)
        )
        self._followed[resource] = informer
        return informer

    def _counted_by_content(self, resource: GroupResource) -> bool:
        return not resource.group and resource.resource in self._by_content


def _within(informer: Informer, key: Key, *, whole: bool) -> list[Object]:
    """Return the objects of a quota's namespace, or of its whole cluster."""
    if whole:
        return informer.index.by(IN_CLUSTER, key.cluster)
    return informer.index.by(IN_NAMESPACE, (key.cluster, key.namespace))


def _credits(quota: Object, used: rules.Usage) -> bool:
    """Tell whether *used* is less than the status says, of anything."""
    reported = (quota.get("status") or {}).get("used") or {}
    return any(
        name in used and used[name] < Quantity.parse(text) for name, text in reported.items()
    )


def pared(obj: Object) -> Object:
    """Return only what counting needs of an object: a pod's is a tenth of it."""
    metadata = obj["metadata"]
    kept = {name: value for name, value in metadata.items() if name != "managedFields"}
    spec = obj.get("spec") or {}
    if "containers" not in spec:
        return {**obj, "metadata": kept}
    trimmed = {name: spec[name] for name in _POD_SPEC if name in spec}
    for name in ("containers", "initContainers"):
        if name in spec:
            trimmed[name] = [_container(container) for container in spec[name]]
    phase = (obj.get("status") or {}).get("phase")
    return {"metadata": kept, "spec": trimmed, "status": {"phase": phase}}


def _container(container: Object) -> Object:
    return {name: container[name] for name in _CONTAINER if name in container}
