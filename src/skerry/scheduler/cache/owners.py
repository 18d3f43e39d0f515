"""Which pods belong together, by the services and controllers that mean them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skerry.logic.machinery.selectors import Requirement, Selector
from skerry.scheduler.cache.objects import ClusterObjects
from skerry.scheduler.cache.pod import PodInfo


def controller_of(pod: PodInfo) -> Mapping[str, Any] | None:
    """Return the owner reference that controls the pod."""
    for owner in pod.pod["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            found: Mapping[str, Any] = owner
            return found
    return None


def default_selector(pod: PodInfo, objects: ClusterObjects) -> Selector:
    """Return what selects the pod's siblings: its services' and its controller's selectors.

    Empty when nobody means the pod; then default spreading does not apply.
    """
    requirements: list[Requirement] = []
    for service in objects.services.within(pod.namespace):
        labels = (service.get("spec") or {}).get("selector")
        if labels and Selector.from_labels(labels).matches(pod.spec.labels):
            requirements.extend(Selector.from_labels(labels).requirements)
    owner = controller_of(pod)
    if owner is not None:
        requirements.extend(_owner_requirements(owner, pod.namespace, objects))
    # Services and controllers often repeat each other; one of each says it all.
    return Selector(tuple(dict.fromkeys(requirements)))


def _owner_requirements(
    owner: Mapping[str, Any], namespace: str, objects: ClusterObjects
) -> tuple[Requirement, ...]:
    name = owner.get("name", "")
    kind = (owner.get("apiVersion", ""), owner.get("kind", ""))
    if kind == ("v1", "ReplicationController"):
        found = objects.replication_controllers.get(name, namespace)
        labels = (found or {}).get("spec", {}).get("selector")
        return Selector.from_labels(labels).requirements if labels else ()
    stores = {
        ("apps/v1", "ReplicaSet"): objects.replica_sets,
        ("apps/v1", "StatefulSet"): objects.stateful_sets,
    }
    store = stores.get(kind)
    found = store.get(name, namespace) if store is not None else None
    if found is None:
        return ()
    return Selector.from_label_selector((found.get("spec") or {}).get("selector")).requirements
