"""Hypothesis strategies for claims, volumes and the pods that use them."""

from __future__ import annotations

from hypothesis import strategies as st

from skerry.api.objects import Object
from tests.kit.scheduler.generate import Scene, named, nodes, pods
from tests.kit.scheduler.reference import ZONE, Storage, World
from tests.kit.scheduler.reference_storage import BOUND, SELECTED

DRIVER = "csi.example"
CLAIMS = ["c0", "c1", "c2"]
VOLUMES = ["v0", "v1", "v2"]
REGION = "topology.kubernetes.io/region"
sizes = st.sampled_from(["1Gi", "5Gi", "10Gi"])
zones = st.sampled_from(["z0", "z1", "z2"])


def _in_zone(zone: str) -> Object:
    return {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}


@st.composite
def classes(draw: st.DrawFn) -> list[Object]:
    """Return one class that binds at once, and two that wait for their pod."""
    wait: Object = {"volumeBindingMode": "WaitForFirstConsumer"}
    made = {"metadata": {"name": "made"}, "provisioner": DRIVER, **wait}
    if draw(st.booleans()):
        items = [{"key": ZONE, "values": draw(st.lists(zones, max_size=2))}]
        made["allowedTopologies"] = [{"matchLabelExpressions": items}]
    found = {"metadata": {"name": "found"}, "provisioner": "kubernetes.io/no-provisioner", **wait}
    at_once = {
        "metadata": {"name": "at-once"},
        "provisioner": DRIVER,
        "volumeBindingMode": "Immediate",
    }
    return [made, found, at_once]


@st.composite
def volumes(draw: st.DrawFn, name: str) -> Object:
    """Return a volume: anywhere or in a zone, free or claimed, of a CSI driver or not."""
    spec: Object = {
        "capacity": {"storage": draw(sizes)},
        "accessModes": ["ReadWriteOnce", "ReadWriteOncePod"],
        "storageClassName": draw(st.sampled_from(["made", "found", "found", "at-once"])),
    }
    if draw(st.booleans()):
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [_in_zone(draw(zones))]}}
    if draw(st.booleans()):
        handle = draw(st.sampled_from(["h0", "h1", name]))
        spec["csi"] = {"driver": DRIVER, "volumeHandle": handle}
    if draw(st.integers(0, 3)) == 0:
        claim = draw(st.sampled_from(CLAIMS))
        spec["claimRef"] = {"name": claim, "namespace": "default"}
    labels = draw(
        st.dictionaries(
            st.sampled_from([ZONE, REGION, "failure-domain.beta.kubernetes.io/zone"]),
            st.sampled_from(["z0", "z1", "z0__z1", "z2__"]),
            max_size=1,
        )
    )
    phase = draw(st.sampled_from(["Available", "Available", "Bound"]))
    return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": {"phase": phase}}


@st.composite
def claims(draw: st.DrawFn, name: str) -> Object:
    """Return a claim in any of the states it may be in."""
    metadata: Object = {"name": name, "namespace": "default", "annotations": {}}
    spec: Object = {
        "accessModes": [draw(st.sampled_from(["ReadWriteOnce", "ReadWriteOncePod"]))],
        "storageClassName": draw(st.sampled_from(["made", "found", "found", "at-once"])),
        "resources": {"requests": {"storage": draw(sizes)}},
    }
    state = draw(st.sampled_from(["bound", "bound", "bound", "free", "free", "free", "promised"]))
    if state != "free":
        spec["volumeName"] = draw(st.sampled_from([*VOLUMES, *VOLUMES, "gone"]))
    if state == "bound":
        metadata["annotations"][BOUND] = "yes"
    if state == "free" and draw(st.integers(0, 4)) == 0:
        metadata["annotations"][SELECTED] = draw(st.sampled_from(["n0", "n1"]))
    if draw(st.integers(0, 9)) == 0:
        metadata["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    if name.endswith("scratch") and draw(st.booleans()):
        metadata["ownerReferences"] = [{"uid": name.removesuffix("-scratch")}]
    phase = "Lost" if draw(st.integers(0, 9)) == 0 else "Pending"
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


@st.composite
def storages(draw: st.DrawFn, hosts: list[str]) -> Storage:
    """Return everything about volumes."""
    made = [draw(claims(name)) for name in CLAIMS if draw(st.integers(0, 5))]
    if draw(st.booleans()):
        made.append(draw(claims("kind0-scratch")))
    space = [
        {
            "metadata": {"name": f"s{index}", "namespace": "kube-system"},
            "storageClassName": "made",
            "capacity": draw(sizes),
            "nodeTopology": {"matchLabels": {ZONE: draw(zones)}},
        }
        | ({"maximumVolumeSize": draw(sizes)} if draw(st.booleans()) else {})
        for index in range(draw(st.integers(0, 2)))
    ]
    limits = [
        {
            "metadata": {"name": host},
            "spec": {"drivers": [{"name": DRIVER, "allocatable": {"count": count}}]},
        }
        for host in hosts
        for count in [draw(st.integers(0, 3))]
        if draw(st.booleans())
    ]
    attached = [
        {
            "metadata": {"name": f"a{index}"},
            "spec": {
                "attacher": DRIVER,
                "nodeName": draw(st.sampled_from(hosts)),
                "source": {"persistentVolumeName": draw(st.sampled_from(VOLUMES))},
            },
        }
        for index in range(draw(st.integers(0, 2)))
    ]
    driver = {"metadata": {"name": DRIVER}, "spec": {"storageCapacity": draw(st.booleans())}}
    return Storage(
        claims=made,
        volumes=[draw(volumes(name)) for name in VOLUMES if draw(st.integers(0, 5))],
        classes=draw(classes()),
        csi_nodes=limits,
        csi_drivers=[driver],
        capacities=space,
        attachments=attached,
    )


disks = st.one_of(
    st.builds(
        lambda name, shared: {"gcePersistentDisk": {"pdName": name, "readOnly": shared}},
        st.sampled_from(["d0", "d1"]),
        st.booleans(),
    ),
    st.builds(
        lambda name: {"awsElasticBlockStore": {"volumeID": name}}, st.sampled_from(["d0", "d1"])
    ),
    st.builds(
        lambda name, shared: {"iscsi": {"iqn": name, "readOnly": shared}},
        st.sampled_from(["d0", "d1"]),
        st.booleans(),
    ),
    st.builds(
        lambda monitors, pool, shared: {
            "rbd": {"monitors": monitors, "image": "i", "pool": pool, "readOnly": shared}
        },
        st.lists(st.sampled_from(["m0", "m1"]), min_size=1, max_size=2, unique=True),
        st.sampled_from(["", "rbd", "other"]),
        st.booleans(),
    ),
)


@st.composite
def pods_with_volumes(draw: st.DrawFn, name: str, *, alone: bool = False) -> Object:
    """Return a pod with disks, claims, and if *alone* perhaps a volume made for it."""
    item = draw(pods(name, "plain"))
    item["metadata"]["namespace"] = "default"
    item["spec"].pop("nodeName", None)
    listed: list[Object] = draw(st.lists(disks, max_size=1))
    names = draw(st.lists(st.sampled_from([*CLAIMS, *CLAIMS, "gone"]), max_size=2, unique=True))
    listed += [{"persistentVolumeClaim": {"claimName": claim}} for claim in names]
    if alone and draw(st.integers(0, 4)) == 0:
        listed.append({"ephemeral": {"volumeClaimTemplate": {}}, "name": "scratch"})
    item["spec"]["volumes"] = [{"name": f"x{i}", **each} for i, each in enumerate(listed)]
    return item


@st.composite
def storage_scenes(draw: st.DrawFn) -> Scene:
    """Return a scene in which volumes decide."""
    count = draw(st.integers(1, 4))
    hosts = [f"n{index}" for index in range(count)]
    found = [draw(nodes(host, "plain")) for host in hosts]
    kinds = [draw(pods_with_volumes("kind0", alone=True)), draw(pods_with_volumes("kind1"))]
    placed = [
        (named(draw(pods_with_volumes("")), f"placed{index}"), draw(st.sampled_from(hosts)))
        for index in range(draw(st.integers(0, 5)))
    ]
    world = World(found, placed, {"default": {}}, storage=draw(storages(hosts)))
    return Scene(world, kinds, "plain")
