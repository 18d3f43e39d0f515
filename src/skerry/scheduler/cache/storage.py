"""Claims, volumes and classes, as several volume plugins read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from skerry.api.objects import Object
from skerry.logic.machinery.quantity import Quantity
from skerry.logic.machinery.selectors import Selector
from skerry.scheduler.cache.objects import ClusterObjects
from skerry.scheduler.cache.pod import PodInfo
from skerry.scheduler.cache.terms import CompiledTerm, node_term

WAIT_FOR_CONSUMER = "WaitForFirstConsumer"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
NO_PROVISIONER = "kubernetes.io/no-provisioner"


def claims_of(pod: PodInfo) -> Iterator[tuple[str, bool]]:
    """Yield each claim a pod uses and whether it is an ephemeral one made for it."""
    for volume in pod.spec.volumes:
        claim = volume.get("persistentVolumeClaim")
        if claim is not None:
            yield claim.get("claimName", ""), "ephemeral" in volume


def uses_claim(pod: PodInfo, claim: Object | None) -> bool:
    """Tell whether *pod* uses the claim."""
    if claim is None or claim["metadata"].get("namespace") != pod.namespace:
        return False
    return any(name == claim["metadata"]["name"] for name, _ in claims_of(pod))


def class_name(obj: Object) -> str:
    """Return the storage class of a claim or volume; the old annotation still counts."""
    annotations = obj["metadata"].get("annotations") or {}
    beta = annotations.get("volume.beta.kubernetes.io/storage-class")
    return str(beta if beta is not None else (obj.get("spec") or {}).get("storageClassName") or "")


def is_bound(claim: Object) -> bool:
    """Tell whether a claim and its volume have found each other for good."""
    annotations = claim["metadata"].get("annotations") or {}
    return bool((claim.get("spec") or {}).get("volumeName")) and BIND_COMPLETED in annotations


def waits_for_consumer(claim: Object, objects: ClusterObjects) -> bool:
    """Tell whether binding waits until a pod is scheduled."""
    found = objects.classes.get(class_name(claim)) if class_name(claim) else None
    return found is not None and found.get("volumeBindingMode") == WAIT_FOR_CONSUMER


def volume_terms(volume: Object) -> tuple[CompiledTerm, ...] | None:
    """Return where a volume can be reached from; None when from everywhere."""
    required = ((volume.get("spec") or {}).get("nodeAffinity") or {}).get("required")
    if required is None:
        return None
    return tuple(node_term(term) for term in required.get("nodeSelectorTerms") or ())


def reachable(volume: Object, node: str, labels: Mapping[str, str]) -> bool:
    """Tell whether a volume can be used on a node."""
    terms = volume_terms(volume)
    return terms is None or any(term.matches(node, labels) for term in terms)


def storage_request(claim: Object) -> int | None:
    """Return the bytes a claim asks for."""
    requests = ((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}
    text = requests.get("storage")
    return None if text is None else Quantity.parse(text).value()


def storage_capacity(volume: Object) -> int:
    """Return the bytes a volume has."""
    text = ((volume.get("spec") or {}).get("capacity") or {}).get("storage", "0")
    return Quantity.parse(text).value()


def best_volume(
    claim: Object, volumes: Iterator[Object], node: str, labels: Mapping[str, str], taken: set[str]
) -> Object | None:
    """Return the smallest volume that suits the claim on a node; one pre-bound to it wins.

    A pre-bound volume that cannot be reached from here ends the search: somebody chose it, and
    the claim shall have no other.
    """
    best: Object | None = None
    for volume in volumes:
        if volume["metadata"]["name"] in taken or not _possible(claim, volume):
            continue
        if _claimed_by(volume, claim):
            return volume if reachable(volume, node, labels) else None
        if not _free(volume) or not _suits(claim, volume) or not reachable(volume, node, labels):
            continue
        if best is None or storage_capacity(volume) < storage_capacity(best):
            best = volume
    return best


def _possible(claim: Object, volume: Object) -> bool:
    """Tell whether a volume could serve a claim, by what even pre-binding cannot overrule."""
    wanted, offered = claim.get("spec") or {}, volume.get("spec") or {}
    return (
        class_name(claim) == class_name(volume)
        and volume["metadata"].get("deletionTimestamp") is None
        and (wanted.get("volumeMode") or "Filesystem")
        == (offered.get("volumeMode") or "Filesystem")
        and storage_capacity(volume) >= (storage_request(claim) or 0)
    )


def _free(volume: Object) -> bool:
    available = (volume.get("status") or {}).get("phase") == "Available"
    return available and (volume.get("spec") or {}).get("claimRef") is None


def _suits(claim: Object, volume: Object) -> bool:
    wanted, offered = claim.get("spec") or {}, volume.get("spec") or {}
    if not set(wanted.get("accessModes") or ()) <= set(offered.get("accessModes") or ()):
        return False
    selector = wanted.get("selector")
    return selector is None or Selector.from_label_selector(selector).matches(
        volume["metadata"].get("labels") or {}
    )


def _claimed_by(volume: Object, claim: Object) -> bool:
    reference: Mapping[str, Any] | None = (volume.get("spec") or {}).get("claimRef")
    if reference is None:
        return False
    metadata = claim["metadata"]
    same = (reference.get("name"), reference.get("namespace")) == (
        metadata["name"],
        metadata.get("namespace"),
    )
    return same and reference.get("uid") in (None, "", metadata.get("uid"))


def topology_allows(terms: Any, labels: Mapping[str, str]) -> bool:
    """Tell whether a node's labels satisfy a class's allowedTopologies; none allow all."""
    if not terms:
        return True
    return any(
        all(
            labels.get(item.get("key", "")) in (item.get("values") or ())
            for item in term.get("matchLabelExpressions") or ()
        )
        for term in terms
        if term.get("matchLabelExpressions")
    )
