"""Publishes the server's CA to every namespace, so that pods can verify the server they call.

Reads Namespaces and the ConfigMaps called ``kube-root-ca.crt``. Writes those ConfigMaps.

Invariant: in an active namespace ``kube-root-ca.crt`` exists and says exactly what we were given
last.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import orjson

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.logic.machinery.plan import NOTHING, Create, Plan, Target, Update
from skerry.runtime.client import Selection
from skerry.runtime.context import ControllerContext
from skerry.runtime.controller import Controller, Reconciler
from skerry.runtime.index import Key, key_of
from skerry.runtime.informer import Handler, enqueue_present, without_managed_fields
from skerry.runtime.workqueue import WorkQueue

NAME = "root-ca-certificate-publisher-controller"
NAMESPACES = GroupVersionResource("", "v1", "namespaces")
CONFIG_MAPS = GroupVersionResource("", "v1", "configmaps")
ROOT_CA_NAME = "kube-root-ca.crt"
ONLY_ROOT_CAS = Selection(fields=f"metadata.name={ROOT_CA_NAME}")

# -- events -----------------------------------------------------------------------------------


def enqueue_on_config_maps(add: Callable[[Key], None]) -> Handler:
    """Return the handler that adds the namespace of a ConfigMap, whatever happened to it."""

    def handle(old: Object | None, new: Object | None) -> None:
        changed = key_of(new or old or {})
        add(Key(changed.cluster, "", changed.namespace))

    return handle


# -- observe ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Observed:
    """An active namespace, its ConfigMap as it is kept if there is one, and what it should say."""

    key: Key
    config_map: Object | None
    certificate: str


def kept_config_map(obj: Object) -> Object:
    """Return a ConfigMap with a digest of its data in place of them, and no description.

    Both are the same in every namespace of every workspace, and together most of the object.
    """
    without_managed_fields(obj)
    obj["digest"] = _digest(obj.pop("data", None) or {})
    annotations = obj["metadata"].get("annotations") or {}
    if _ANNOTATION in annotations:
        annotations[_ANNOTATION] = ""
    return obj


def _digest(data: Mapping[str, str]) -> str:
    text = orjson.dumps(data, option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(text, digest_size=16).hexdigest()


# -- decide -----------------------------------------------------------------------------------

_DESCRIPTION = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal "
    "endpoints such as the internal service IP or kubernetes.default.svc. "
    "No other usage is guaranteed across distributions of Kubernetes clusters."
)
_ANNOTATION = "kubernetes.io/description"


def decide(observed: Observed) -> Plan:
    """Make the namespace's ConfigMap say the CA, and why it is there."""
    key = observed.key
    target = Target(CONFIG_MAPS, ROOT_CA_NAME, key.name, key.cluster)
    data = {"ca.crt": observed.certificate}
    existing = observed.config_map
    if existing is None:
        wanted: Object = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": ROOT_CA_NAME,
                "namespace": key.name,
                "annotations": {_ANNOTATION: _DESCRIPTION},
            },
            "data": data,
        }
        return Plan([Create(target, wanted, reason="NamespaceActive")])
    annotations = existing["metadata"].get("annotations") or {}
    if existing["digest"] == _digest(data) and _ANNOTATION in annotations:
        return NOTHING
    wanted = copy.deepcopy(existing)
    del wanted["digest"]
    wanted["data"] = data
    wanted["metadata"]["annotations"] = {**annotations, _ANNOTATION: _DESCRIPTION}
    return Plan([Update(target, wanted, reason="RootCAChanged")])


# -- controller -------------------------------------------------------------------------------


def _never(_: Callable[[], None]) -> None:
    """The certificate does not change."""


def build(
    context: ControllerContext,
    certificate: Callable[[], str],
    on_change: Callable[[Callable[[], None]], None] = _never,
) -> Controller[Key, Observed]:
    """Return the controller that publishes *certificate* (PEM) to every namespace.

    *on_change* is given what to call when the certificate has changed.
    """
    namespaces = context.factory.informer(NAMESPACES, transform=without_managed_fields, packed=True)
    config_maps = context.factory.informer(
        CONFIG_MAPS, ONLY_ROOT_CAS, transform=kept_config_map, packed=True
    )
    queue: WorkQueue[Key] = context.queue(NAME)
    namespaces.add_handler(enqueue_present(queue.add))
    config_maps.add_handler(enqueue_on_config_maps(queue.add))

    def republish() -> None:
        for namespace in namespaces.index:
            queue.add(namespace)

    on_change(republish)

    async def observe(key: Key) -> Observed | None:
        namespace = namespaces.index.get(key)
        if namespace is None or namespace["metadata"].get("deletionTimestamp"):
            return None
        config_map = config_maps.index.get(Key(key.cluster, key.name, ROOT_CA_NAME))
        return Observed(key, config_map, certificate())

    reconciler = Reconciler(observe, decide, context.executor(NAME))
    return context.controller(NAME, reconciler, queue, [namespaces, config_maps])
