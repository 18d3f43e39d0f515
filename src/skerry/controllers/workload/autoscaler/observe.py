"""An autoscaler with the scale of its workload, the pods that has, and what is measured of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from skerry.api.errors import ApiError
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.controllers.workload.autoscaler.metrics import Metrics
from skerry.logic.machinery.selectors import Selector, SelectorError
from skerry.logic.workloads.scaling.bounds import History
from skerry.logic.workloads.scaling.usage import Samples, Unusable
from skerry.runtime.client import Client
from skerry.runtime.discovery import Mapper
from skerry.runtime.index import Key, key_of
from skerry.runtime.informer import Informer

IN_NAMESPACE = "namespace"
# What is measured for one metric: of each pod, altogether, or why nothing is.
Reading = Samples | int | Unusable


@dataclass(frozen=True, slots=True)
class Observed:
    """One autoscaler. ``failure`` says why there is no ``scale``, ``bad_selector`` what is wrong
    with the selector of one; readings are in the order of the metrics, and absent where the size
    alone decides."""

    autoscaler: Object
    history: History = field(default_factory=History)
    scale: Object | None = None
    gvr: GroupVersionResource | None = None
    failure: str = ""
    bad_selector: str = ""
    pods: tuple[Object, ...] = ()
    ambiguous: tuple[Key, ...] = ()
    readings: tuple[Reading, ...] = ()


class Observer:
    """Reads autoscalers and pods from caches, and asks for everything else.

    It remembers what every autoscaler selects, so that two for the same pods are both noticed.
    """

    def __init__(
        self,
        client: Client,
        autoscalers: Informer,
        pods: Informer,
        histories: Mapping[Key, History],
    ) -> None:
        self._client = client
        self._mapper = Mapper(client)
        self._metrics = Metrics(client, self._mapper)
        self._autoscalers = autoscalers
        self._pods = pods
        self._histories = histories
        self._selectors: dict[Key, Selector] = {}

    def forget(self, key: Key) -> None:
        """Forget what an autoscaler that has gone selected."""
        self._selectors.pop(key, None)

    async def observe(self, key: Key) -> Observed | None:
        autoscaler = self._autoscalers.index.get(key)
        if autoscaler is None:
            return None
        history = self._histories.get(key, History())
        try:
            gvr = await self._target(autoscaler["spec"]["scaleTargetRef"])
            name = autoscaler["spec"]["scaleTargetRef"]["name"]
            path = self._client.path(gvr, key.namespace, name, "scale")
            scale = await self._client.call("GET", path, {})
        except (ApiError, Unusable) as error:
            return Observed(autoscaler, history, failure=str(error))
        if not is_within(autoscaler["spec"], int(scale["spec"].get("replicas", 0))):
            return Observed(autoscaler, history, scale, gvr)
        text = str((scale.get("status") or {}).get("selector") or "")
        try:
            selector = Selector.parse(text)
        except SelectorError as error:
            return Observed(autoscaler, history, scale, gvr, bad_selector=str(error))
        if not text:
            return Observed(autoscaler, history, scale, gvr)
        self._selectors[key] = selector
        pods = tuple(
            pod
            for pod in self._pods.index.by(IN_NAMESPACE, (key.cluster, key.namespace))
            if selector.matches(pod["metadata"].get("labels"))
        )
        rivals = self._rivals(key, pods)
        readings = () if rivals else await self._read(autoscaler, text)
        return Observed(autoscaler, history, scale, gvr, "", "", pods, rivals, readings)

    async def _target(self, reference: Mapping[str, Any]) -> GroupVersionResource:
        group, kind = str(reference.get("apiVersion", "")).rpartition("/")[0], reference["kind"]
        info = (await self._mapper.types()).for_group_kind(group, kind)
        if info is None:
            self._mapper.forget()
            info = (await self._mapper.types()).for_group_kind(group, kind)
        if info is None:
            raise Unusable(f'no matches for kind "{kind}" in group "{group}"')
        return info.gvr

    def _rivals(self, key: Key, pods: tuple[Object, ...]) -> tuple[Key, ...]:
        """Return all autoscalers for one of *pods*, where there are others than this one."""
        found = {
            other
            for other, selector in self._selectors.items()
            if (other.cluster, other.namespace) == (key.cluster, key.namespace)
            and any(selector.matches(pod["metadata"].get("labels")) for pod in pods)
        }
        return tuple(sorted(found)) if len(found) > 1 else ()

    async def _read(self, autoscaler: Object, selector: str) -> tuple[Reading, ...]:
        namespace = key_of(autoscaler).namespace
        found: list[Reading] = []
        for metric in autoscaler["spec"].get("metrics") or ():
            try:
                found.append(await self._reading(namespace, selector, metric))
            except Unusable as error:
                found.append(error)
        return tuple(found)

    async def _reading(self, namespace: str, selector: str, metric: Mapping[str, Any]) -> Reading:
        metrics = self._metrics
        match metric["type"]:
            case "Resource":
                return await metrics.of_resource(namespace, selector, metric["resource"]["name"])
            case "ContainerResource":
                source = metric["containerResource"]
                name, container = source["name"], source["container"]
                return await metrics.of_resource(namespace, selector, name, container)
            case "Pods":
                return await metrics.of_pods(namespace, selector, metric["pods"]["metric"])
            case "Object":
                source = metric["object"]
                return await metrics.of_object(
                    namespace, source["describedObject"], source["metric"]
                )
            case _:
                return await metrics.external(namespace, metric["external"]["metric"])


def is_within(spec: Mapping[str, Any], replicas: int) -> bool:
    """Tell whether what is measured matters for a workload of that size."""
    least = int(spec.get("minReplicas", 1))
    if replicas == 0 and least != 0:
        return False
    return least <= replicas <= int(spec["maxReplicas"])
