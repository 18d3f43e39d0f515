"""A quota and everything in its namespace that it counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from skerry.api.kinds import GroupResource
from skerry.controllers.core.quota.keys import IN_NAMESPACE, waking_on_content
from skerry.logic import quota as rules
from skerry.logic.resource import Object
from skerry.runtime.client import EVERYTHING, Selection
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
        mapper: Mapper,
        add: Callable[[Key], None],
    ) -> None:
        self._factory = factory
        self._quotas = quotas
        self._mapper = mapper
        self._add = add
        self._followed: dict[GroupResource, Informer] = {}

    async def observe(self, key: Key) -> Observed | None:
        quota = self._quotas.index.get(key)
        if quota is None:
            return None
        content: list[rules.Counted] = []
        where = (key.cluster, key.namespace)
        for resource in sorted(rules.tracked_types(quota)):
            informer = await self._following(resource)
            if informer is not None:
                await informer.wait_synced()
                found = informer.index.by(IN_NAMESPACE, where)
                content.extend(rules.Counted(resource, obj) for obj in found)
        return Observed(key, quota, tuple(content))

    async def _following(self, resource: GroupResource) -> Informer | None:
        if resource in self._followed:
            return self._followed[resource]
        info = (await self._mapper.types()).preferred().get(resource)
        if info is None or not info.namespaced or "watch" not in info.verbs:
            self._mapper.forget()  # it may be served by the next look
            return None
        if resource in self._followed:  # another worker was faster
            return self._followed[resource]
        whole = not resource.group and resource.resource in _BY_CONTENT
        informer = self._factory.informer(
            info.gvr,
            EVERYTHING if whole else Selection(metadata_only=True),
            transform=pared,
        )
        informer.index.add_index(IN_NAMESPACE, by_namespace)
        informer.add_handler(waking_on_content(self._add, resource, self._quotas.index))
        self._followed[resource] = informer
        return informer


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
