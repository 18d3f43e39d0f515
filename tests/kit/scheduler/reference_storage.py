"""Rules about volumes, one node at a time; a part of the simple scheduler.

``claims_refusal`` is what is said before any node is looked at; the others are filters.
"""

from __future__ import annotations

from typing import Any

from skerry.api.objects import Object
from skerry.logic.machinery.quantity import Quantity
from skerry.logic.machinery.selectors import Selector
from tests.kit.scheduler.reference import World, labels_of, name_of, namespace_of, term_holds

BOUND = "pv.kubernetes.io/bind-completed"
SELECTED = "volume.kubernetes.io/selected-node"
ZONE_LABELS = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
}

IN_USE = (
    "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"
)

Reasons = tuple[str, ...] | None


def by_name(listed: list[Object], name: str, namespace: str = "") -> Object | None:
    for obj in listed:
        metadata = obj["metadata"]
        if metadata["name"] == name and (metadata.get("namespace") or "") == namespace:
            return obj
    return None


def claim_names(pod: Object) -> list[tuple[str, bool]]:
    """Return each claim of a pod, and whether it was made for this pod alone."""
    found = []
    for volume in pod["spec"].get("volumes") or ():
        if "persistentVolumeClaim" in volume:
            found.append((volume["persistentVolumeClaim"]["claimName"], False))
        elif "ephemeral" in volume:
            found.append((f"{name_of(pod)}-{volume['name']}", True))
    return found


def claim_of(world: World, pod: Object, name: str) -> Object | None:
    return by_name(world.storage.claims, name, namespace_of(pod))


def class_of(obj: Object) -> str:
    return str(obj["spec"].get("storageClassName") or "")


def annotation(obj: Object, key: str) -> str | None:
    value: str | None = (obj["metadata"].get("annotations") or {}).get(key)
    return value


def completed(claim: Object) -> bool:
    return bool(claim["spec"].get("volumeName")) and annotation(claim, BOUND) is not None


def waits(world: World, claim: Object) -> bool:
    found = by_name(world.storage.classes, class_of(claim))
    delayed = found is not None and found.get("volumeBindingMode") == "WaitForFirstConsumer"
    return delayed and not claim["spec"].get("volumeName")


def size_of(claim: Object) -> int | None:
    text = (claim["spec"].get("resources") or {}).get("requests", {}).get("storage")
    return None if text is None else Quantity.parse(text).value()


# Before any node.


def claims_refusal(world: World, pod: Object) -> tuple[str, str] | None:
    """Return the plugin that turns the pod down whatever the node, and why."""
    for rule in (exclusive_claims_missing, claims_unusable, zones_unknown):
        text = rule(world, pod)
        if text:
            plugin = {
                exclusive_claims_missing: "VolumeRestrictions",
                claims_unusable: "VolumeBinding",
                zones_unknown: "VolumeZone",
            }[rule]
            return plugin, text
    return None


def exclusive_claims_missing(world: World, pod: Object) -> str:
    for name, ephemeral in claim_names(pod):
        if not ephemeral and claim_of(world, pod, name) is None:
            return f'persistentvolumeclaim "{name}" not found'
    return ""


def claims_unusable(world: World, pod: Object) -> str:
    for name, ephemeral in claim_names(pod):
        claim = claim_of(world, pod, name)
        if claim is None:
            return (
                "waiting for ephemeral volume controller to create the persistentvolumeclaim "
                f'"{name}"'
            )
        if (claim.get("status") or {}).get("phase") == "Lost":
            volume = claim["spec"].get("volumeName", "")
            return (
                f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"'
            )
        if "deletionTimestamp" in claim["metadata"]:
            return f'persistentvolumeclaim "{name}" is being deleted'
        owners = [owner["uid"] for owner in claim["metadata"].get("ownerReferences") or ()]
        if ephemeral and pod["metadata"]["uid"] not in owners:
            key = f"{namespace_of(pod)}/{name_of(pod)}"
            space = namespace_of(pod)
            return f"PVC {space}/{name} was not created for pod {key} (pod is not owner)"
    for name, _ in claim_names(pod):
        claim = claim_of(world, pod, name)
        if claim is not None and not completed(claim) and not waits(world, claim):
            return "pod has unbound immediate PersistentVolumeClaims"
    return ""


def zones_unknown(world: World, pod: Object) -> str:
    for name, ephemeral in claim_names(pod):
        claim = None if ephemeral else claim_of(world, pod, name)
        if claim is None:
            continue
        volume = claim["spec"].get("volumeName")
        if volume and by_name(world.storage.volumes, volume) is None:
            return f'persistentvolume "{volume}" not found'
    return ""


# VolumeRestrictions.


def restrictions(world: World, pod: Object, node: Object) -> Reasons:
    for other in world.on(node):
        for mine in pod["spec"].get("volumes") or ():
            for theirs in other["spec"].get("volumes") or ():
                if same_disk(mine, theirs):
                    return ("node(s) had no available disk",)
    for name, ephemeral in claim_names(pod):
        claim = claim_of(world, pod, name)
        modes = [] if claim is None or ephemeral else claim["spec"].get("accessModes") or []
        if "ReadWriteOncePod" in modes and claim_in_use(world, pod, name):
            return (IN_USE,)
    return None


def claim_in_use(world: World, pod: Object, name: str) -> bool:
    homes = [name_of(node) for node in world.nodes]
    return any(
        namespace_of(other) == namespace_of(pod) and name in [n for n, _ in claim_names(other)]
        for other, home in world.pods
        if home in homes
    )


def same_disk(one: Object, other: Object) -> bool:
    def both(kind: str) -> tuple[Object, Object] | None:
        return (one[kind], other[kind]) if kind in one and kind in other else None

    if pair := both("gcePersistentDisk"):
        return pair[0]["pdName"] == pair[1]["pdName"] and not read_only(*pair)
    if pair := both("awsElasticBlockStore"):
        return bool(pair[0]["volumeID"] == pair[1]["volumeID"])
    if pair := both("iscsi"):
        return pair[0]["iqn"] == pair[1]["iqn"] and not read_only(*pair)
    if pair := both("rbd"):
        first, second = pair
        return (
            any(monitor in second["monitors"] for monitor in first["monitors"])
            and (first.get("pool") or "rbd") == (second.get("pool") or "rbd")
            and first["image"] == second["image"]
            and not read_only(first, second)
        )
    return False


def read_only(one: Object, other: Object) -> bool:
    return bool(one.get("readOnly")) and bool(other.get("readOnly"))


# NodeVolumeLimits.


def limits(world: World, pod: Object, node: Object) -> Reasons:
    csi_node = by_name(world.storage.csi_nodes, name_of(node))
    allowed = {
        driver["name"]: driver["allocatable"]["count"]
        for driver in (csi_node or {"spec": {"drivers": []}})["spec"]["drivers"]
        if "allocatable" in driver
    }
    present = {item for other in world.on(node) for item in attached_by(world, other)}
    present |= attached_otherwise(world, node)
    new = attached_by(world, pod) - present
    for driver, limit in allowed.items():
        more = sum(item[0] == driver for item in new)
        if more and sum(item[0] == driver for item in present) + more > limit:
            return ("node(s) exceed max volume count",)
    return None


def attached_by(world: World, pod: Object) -> set[tuple[str, str]]:
    """Return (driver, volume) of each claim that a CSI driver serves."""
    found = set()
    for name, _ in claim_names(pod):
        claim = claim_of(world, pod, name)
        if claim is None:
            continue
        volume = by_name(world.storage.volumes, claim["spec"].get("volumeName") or "")
        storage_class = by_name(world.storage.classes, class_of(claim))
        if volume is not None:
            if "csi" in volume["spec"]:
                source = volume["spec"]["csi"]
                found.add((source["driver"], source["volumeHandle"]))
        elif storage_class is not None and storage_class.get("provisioner"):
            found.add((storage_class["provisioner"], f"claim {namespace_of(pod)}/{name}"))
    return found


def attached_otherwise(world: World, node: Object) -> set[tuple[str, str]]:
    found = set()
    for item in world.storage.attachments:
        volume = by_name(world.storage.volumes, item["spec"]["source"]["persistentVolumeName"])
        here = item["spec"]["nodeName"] == name_of(node)
        if here and volume is not None and "csi" in volume["spec"]:
            source = volume["spec"]["csi"]
            found.add((source["driver"], source["volumeHandle"]))
    return found


# VolumeBinding.


def binding(world: World, pod: Object, node: Object) -> Reasons:
    claims = [claim_of(world, pod, name) for name, _ in claim_names(pod)]
    present = [claim for claim in claims if claim is not None]
    reasons = []
    for claim in filter(completed, present):
        volume = by_name(world.storage.volumes, claim["spec"]["volumeName"])
        if volume is None:
            lost = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
            reasons.append(lost)
            break
        if not volume_reaches(volume, node):
            reasons.append("node(s) had volume node affinity conflict")
            break
    waiting = [claim for claim in present if not completed(claim)]
    unmet = unmet_claims(world, waiting, node)
    # The order in which kube-scheduler adds them up.
    if unmet:
        reasons = [*[r for r in reasons if "conflict" in r], unmet, *[
            r for r in reasons if "conflict" not in r
        ]]  # fmt: skip
    return tuple(reasons) or None


def volume_reaches(volume: Object, node: Object) -> bool:
    required = (volume["spec"].get("nodeAffinity") or {}).get("required")
    return required is None or any(term_holds(t, node) for t in required["nodeSelectorTerms"])


def unmet_claims(world: World, claims: list[Object], node: Object) -> str:
    """Return why claims that wait cannot be met on *node*."""
    nothing = "node(s) didn't find available persistent volumes to bind"
    to_provision: list[Object] = []
    to_match: list[Object] = []
    for claim in claims:
        selected = annotation(claim, SELECTED)
        if selected is not None and selected != name_of(node):
            return nothing
        (to_match if selected is None else to_provision).append(claim)
    taken: list[str] = []
    for claim in sorted(to_match, key=lambda item: size_of(item) or 0):
        volume = matching_volume(world, claim, node, taken)
        if volume is None:
            to_provision.append(claim)
        else:
            taken.append(name_of(volume))
    problems = [provisioning_problem(world, claim, node) for claim in to_provision]
    return next(filter(None, problems), "")


def provisioning_problem(world: World, claim: Object, node: Object) -> str:
    storage_class = by_name(world.storage.classes, class_of(claim))
    provisioner = (storage_class or {}).get("provisioner", "")
    if storage_class is None or provisioner in ("", "kubernetes.io/no-provisioner"):
        return "node(s) didn't find available persistent volumes to bind"
    terms = storage_class.get("allowedTopologies") or []
    if terms and not any(topology_holds(term, node) for term in terms):
        return "node(s) didn't find available persistent volumes to bind"
    driver = by_name(world.storage.csi_drivers, provisioner)
    size = size_of(claim)
    if size is None or driver is None or not driver["spec"].get("storageCapacity"):
        return ""
    for item in world.storage.capacities:
        text = item.get("maximumVolumeSize") or item.get("capacity")
        enough = text is not None and Quantity.parse(text).value() >= size
        topology = item.get("nodeTopology")
        if (
            item["storageClassName"] == name_of(storage_class)
            and enough
            and topology is not None
            and Selector.from_label_selector(topology).matches(labels_of(node))
        ):
            return ""
    return "node(s) did not have enough free storage"


def topology_holds(term: Object, node: Object) -> bool:
    items: list[Any] = term.get("matchLabelExpressions") or []
    return bool(items) and all(labels_of(node).get(i["key"]) in i["values"] for i in items)


def matching_volume(world: World, claim: Object, node: Object, taken: list[str]) -> Object | None:
    wanted, smallest = size_of(claim) or 0, None
    for volume in world.storage.volumes:
        spec = volume["spec"]
        capacity = Quantity.parse(spec["capacity"]["storage"]).value()
        reference = spec.get("claimRef")
        mine = reference is not None and (reference["name"], reference["namespace"]) == (
            name_of(claim),
            claim["metadata"]["namespace"],
        )
        if name_of(volume) in taken or class_of(volume) != class_of(claim) or capacity < wanted:
            continue
        if mine:
            return volume if volume_reaches(volume, node) else None
        if reference is not None or volume["status"]["phase"] != "Available":
            continue
        if any(mode not in spec["accessModes"] for mode in claim["spec"]["accessModes"]):
            continue
        if not volume_reaches(volume, node):
            continue
        if smallest is None or capacity < smallest[0]:
            smallest = (capacity, volume)
    return None if smallest is None else smallest[1]


# VolumeZone.


def zone(world: World, pod: Object, node: Object) -> Reasons:
    if not any(key in labels_of(node) for key in ZONE_LABELS):
        return None
    for name, ephemeral in claim_names(pod):
        claim = None if ephemeral else claim_of(world, pod, name)
        bound_to = None if claim is None else claim["spec"].get("volumeName")
        volume = by_name(world.storage.volumes, bound_to) if bound_to else None
        for key, value in labels_of(volume).items() if volume is not None else ():
            if key not in ZONE_LABELS:
                continue
            zones = [part.strip() for part in value.split("__")]
            here = labels_of(node).get(key, labels_of(node).get(ZONE_LABELS[key]))
            if "" not in zones and here not in zones:
                return ("node(s) had no available volume zone",)
    return None
