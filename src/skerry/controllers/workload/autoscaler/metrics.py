"""Measurements, read over the metrics APIs, which other servers provide.

``metrics.k8s.io`` knows what pods use of the machine, ``custom.metrics.k8s.io`` what somebody
measured of pods and other objects, ``external.metrics.k8s.io`` the rest. Each may be absent.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from skerry.api.errors import ApiError, NotFound
from skerry.api.objects import Object
from skerry.kit.timestamps import parse_rfc3339
from skerry.logic.machinery.quantity import Quantity
from skerry.logic.machinery.selectors import Selector
from skerry.logic.workloads.scaling.usage import Sample, Samples, Unusable
from skerry.runtime.client import Client
from skerry.runtime.discovery import Mapper
from skerry.runtime.transport import TransportError

_RESOURCE, _CUSTOM, _EXTERNAL = (
    "metrics.k8s.io",
    "custom.metrics.k8s.io",
    "external.metrics.k8s.io",
)
_CUSTOM_VERSIONS = ("v1beta2", "v1beta1")
_NO_CUSTOM = f"no custom metrics API ({_CUSTOM}) registered"
_ABSENT = "the server could not find the requested resource"


class Metrics:
    """The metrics APIs of one server."""

    def __init__(self, client: Client, mapper: Mapper) -> None:
        self._client = client
        self._mapper = mapper

    async def of_resource(
        self, namespace: str, selector: str, resource: str, container: str = ""
    ) -> Samples:
        """Return what each pod uses of a resource; of one *container*, where one is named."""
        path = f"/apis/{_RESOURCE}/v1beta1/namespaces/{namespace}/pods"
        api, named = "resource metrics", f"pods.{_RESOURCE}"
        items = await self._items(path, {"labelSelector": selector}, api, named)
        if not items:
            raise Unusable("no metrics returned from resource metrics API")
        found: dict[str, Sample] = {}
        for item in items:
            amount = _used(item, resource, container)
            if amount is not None:
                at, window = parse_rfc3339(item["timestamp"]), _seconds(item.get("window"))
                found[item["metadata"]["name"]] = Sample(amount, at, window)
        return found

    async def of_pods(self, namespace: str, selector: str, metric: Mapping[str, Any]) -> Samples:
        """Return a custom metric of each pod."""
        items = await self._custom(namespace, "pods/*", metric, {"labelSelector": selector})
        return {
            item["describedObject"]["name"]: Sample(
                _milli(item["value"]),
                parse_rfc3339(item["timestamp"]),
                timedelta(seconds=int(item.get("windowSeconds") or 60)),
            )
            for item in items
        }

    async def of_object(
        self, namespace: str, described: Mapping[str, Any], metric: Mapping[str, Any]
    ) -> int:
        """Return a custom metric of one object."""
        group = str(described.get("apiVersion", "")).rpartition("/")[0]
        kind, name = described["kind"], described["name"]
        info = (await self._mapper.types()).for_group_kind(group, kind)
        if info is None:
            why = f'no matches for kind "{kind}" in group "{group}"'
            raise Unusable(f"unable to map kind {kind}.{group} to resource: {why}")
        if (group, kind) == ("", "Namespace"):
            items = await self._custom(name, "metrics", metric, {})
        else:
            resource = f"{info.resource}.{group}" if group else info.resource
            items = await self._custom(namespace, f"{resource}/{name}", metric, {})
        return _milli(items[0]["value"])

    async def external(self, namespace: str, metric: Mapping[str, Any]) -> int:
        """Return the sum of what an external metric says."""
        name = metric["name"]
        path = f"/apis/{_EXTERNAL}/v1beta1/namespaces/{namespace}/{name}"
        query = {"labelSelector": _selected(metric)}
        items = await self._items(path, query, "external metrics", f"{name}.{_EXTERNAL}")
        if not items:
            raise Unusable("no metrics returned from external metrics API")
        return sum(_milli(item["value"]) for item in items)

    async def _custom(
        self, namespace: str, of: str, metric: Mapping[str, Any], query: Mapping[str, str]
    ) -> list[Object]:
        api, name = "custom metrics", metric["name"]
        version = await self._custom_version()
        path = f"/apis/{_CUSTOM}/{version}/namespaces/{namespace}/{of}/{name}"
        query = {**query, "metricLabelSelector": _selected(metric)}
        items = await self._items(path, query, api, f"{of.partition('/')[0]}.{_CUSTOM}")
        if not items:
            raise Unusable("no metrics returned from custom metrics API")
        return items

    async def _custom_version(self) -> str:
        try:
            group = await self._client.call("GET", f"/apis/{_CUSTOM}", {})
        except (ApiError, TransportError) as error:
            why = _NO_CUSTOM if isinstance(error, NotFound) else str(error)
            raise Unusable(f"unable to fetch metrics from custom metrics API: {why}") from error
        served = {each["version"] for each in group.get("versions") or ()}
        for version in _CUSTOM_VERSIONS:
            if version in served:
                return version
        raise Unusable(f"unable to fetch metrics from custom metrics API: {_NO_CUSTOM}")

    async def _items(
        self, path: str, query: Mapping[str, str], api: str, named: str
    ) -> list[Object]:
        asked = {name: value for name, value in query.items() if value}
        try:
            return list((await self._client.call("GET", path, asked)).get("items") or ())
        except (ApiError, TransportError) as error:
            # As clients name what a server does not serve at all.
            why = f"{_ABSENT} (get {named})" if str(error) == _ABSENT else str(error)
            raise Unusable(f"unable to fetch metrics from {api} API: {why}") from error


def _used(item: Object, resource: str, container: str) -> int | None:
    """Return what a pod uses of a resource; None where that is not known of all of it."""
    containers = item.get("containers") or ()
    if container:
        containers = [each for each in containers if each["name"] == container]
        if not containers:
            where = f"pod {item['metadata']['namespace']}/{item['metadata']['name']}"
            raise Unusable(f"container {container} not present in metrics for {where}")
    amounts = [(each.get("usage") or {}).get(resource) for each in containers]
    if None in amounts:
        return None
    return sum(_milli(amount) for amount in amounts)


def _milli(quantity: object) -> int:
    return Quantity.parse(str(quantity)).milli_value()


def _selected(metric: Mapping[str, Any]) -> str:
    selector = metric.get("selector")
    return str(Selector.from_label_selector(selector)) if selector else ""


def _seconds(text: str | None) -> timedelta:
    """Return a duration as Go writes it, such as ``1m0s`` or ``30s``."""
    total, number = 0.0, ""
    units = {"h": 3600.0, "m": 60.0, "s": 1.0}
    for letter in (text or "").replace("ms", "i"):
        if letter in units:
            total, number = total + float(number or 0) * units[letter], ""
        else:
            number = number + letter if letter in "0123456789." else ""
    return timedelta(seconds=total)
