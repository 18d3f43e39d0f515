"""Volumes: which nodes a pod with claims can use, and what binding writes."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.objects import Object
from skerry.scheduler.cache.objects import key_of
from skerry.scheduler.framework.status import Code
from tests.kit.scheduler.fixtures import Bench, node, pod

ZONE = "topology.kubernetes.io/zone"


def claim(name: str, volume: str = "", storage_class: str = "slow", **fields: Any) -> Object:
    annotations = {"pv.kubernetes.io/bind-completed": "yes"} if volume else {}
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"claim-{name}",
            "annotations": annotations | fields.pop("annotations", {}),
            **fields.pop("metadata", {}),
        },
        "spec": {
            "volumeName": volume,
            "storageClassName": storage_class,
            "accessModes": fields.pop("modes", ["ReadWriteOnce"]),
            "resources": {"requests": {"storage": fields.pop("size", "1Gi")}},
        },
        "status": fields,
    }


def volume(name: str, storage_class: str = "slow", size: str = "1Gi", **fields: Any) -> Object:
    spec: Object = {
        "storageClassName": storage_class,
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
    }
    where = fields.pop("on", None)
    if where is not None:
        term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [where]}]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    labels = fields.pop("labels", {})
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {**spec, **fields},
        "status": {"phase": "Available"},
    }


def storage_class(name: str = "slow", mode: str = "WaitForFirstConsumer", **fields: Any) -> Object:
    return {
        "metadata": {"name": name},
        "provisioner": fields.pop("provisioner", "kubernetes.io/no-provisioner"),
        "volumeBindingMode": mode,
        **fields,
    }


def using(name: str, *claims: str, **spec: Any) -> Object:
    volumes = [{"name": c, "persistentVolumeClaim": {"claimName": c}} for c in claims]
    return pod(name, volumes=volumes, **spec)


@pytest.fixture
def bench() -> Bench:
    return Bench().nodes(node("a", {ZONE: "za"}), node("b", {ZONE: "zb"}))


def test_a_missing_claim_stops_the_pod(bench: Bench) -> None:
    assert bench.why(using("p", "data")) == (
        '0/2 nodes are available: persistentvolumeclaim "data" not found.'
    )


def test_an_unbound_immediate_claim_stops_the_pod(bench: Bench) -> None:
    bench.cluster.objects.classes.set(storage_class(mode="Immediate"))
    bench.cluster.objects.claims.set(claim("data"))
    assert "pod has unbound immediate PersistentVolumeClaims" in bench.why(using("p", "data"))


def test_a_lost_or_deleted_claim_stops_the_pod(bench: Bench) -> None:
    bench.cluster.objects.claims.set(claim("data", "v", phase="Lost"))
    assert 'bound to non-existent persistentvolume "v"' in bench.why(using("p", "data"))
    gone = {"deletionTimestamp": "2030-01-01T00:00:00Z"}
    bench.cluster.objects.claims.set(claim("data", "v", metadata=gone))
    assert 'persistentvolumeclaim "data" is being deleted' in bench.why(using("p", "data"))


def test_a_bound_volume_ties_the_pod_to_where_it_can_be_reached(bench: Bench) -> None:
    bench.cluster.objects.claims.set(claim("data", "v"))
    bench.cluster.objects.volumes.set(volume("v", on="zb"))
    assert bench.decide(using("p", "data")) == "b"
    bench.cluster.objects.volumes.set(volume("v", on="zc"))
    assert bench.why(using("p", "data")) == (
        "0/2 nodes are available: 2 node(s) had volume node affinity conflict."
    )


def test_one_node_at_a_time_agrees_about_volumes(bench: Bench) -> None:
    bench.cluster.objects.claims.set(claim("data", "v"))
    bench.cluster.objects.volumes.set(volume("v", on="zb"))
    info = bench.cluster.reader.read(using("p", "data"))
    _, state, _ = bench.profile.evaluator.begin(info, bench.profile.evaluator.signature(info))
    verdicts = {
        found.name: bench.framework.run_filter(state, info, found)
        for found in bench.cluster.table.nodes()
    }
    assert verdicts["b"] is None
    refusal = verdicts["a"]
    assert refusal is not None
    assert (refusal.plugin, refusal.code) == ("VolumeBinding", Code.UNRESOLVABLE)


def test_a_claim_that_waits_takes_the_smallest_volume_that_suits(bench: Bench) -> None:
    objects = bench.cluster.objects
    objects.classes.set(storage_class())
    objects.claims.set(claim("data", size="5Gi"))
    objects.volumes.set(volume("tiny", size="1Gi", on="za"))
    objects.volumes.set(volume("huge", size="50Gi", on="zb"))
    objects.volumes.set(volume("right", size="6Gi", on="zb"))
    info = bench.cluster.reader.read(using("p", "data"))
    name, found = bench.decider.decide(bench.profile, info)
    assert name == "b"
    choice = found.state.read("VolumeBinding").by_node["b"]
    assert [v["metadata"]["name"] for v, _ in choice.bindings] == ["right"]


def test_two_claims_do_not_take_one_volume(bench: Bench) -> None:
    objects = bench.cluster.objects
    objects.classes.set(storage_class())
    objects.claims.set(claim("one"))
    objects.claims.set(claim("two"))
    objects.volumes.set(volume("v", on="za"))
    assert bench.why(using("p", "one", "two")) == (
        "0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind."
    )
    objects.volumes.set(volume("w", on="za"))
    assert bench.decide(using("p", "one", "two")) == "a"


def test_reserved_volumes_are_not_offered_to_the_next_pod(bench: Bench) -> None:
    objects = bench.cluster.objects
    objects.classes.set(storage_class())
    objects.claims.set(claim("one"))
    objects.claims.set(claim("two"))
    objects.volumes.set(volume("v", on="za"))
    info = bench.cluster.reader.read(using("p", "one"))
    name, found = bench.decider.decide(bench.profile, info)
    assert bench.framework.run_reserve(found.state, info, name) is None
    assert bench.decide(using("q", "two")) == ""
    bench.framework.run_unreserve(found.state, info, name)
    assert bench.decide(using("q", "two")) == "a"


def test_provisioning_respects_topology_and_capacity(bench: Bench) -> None:
    objects = bench.cluster.objects
    expression = {"key": ZONE, "values": ["zb"]}
    objects.classes.set(
        storage_class(
            provisioner="csi.example.com",
            allowedTopologies=[{"matchLabelExpressions": [expression]}],
        )
    )
    objects.claims.set(claim("data", size="5Gi"))
    assert bench.decide(using("p", "data")) == "b"
    objects.csi_drivers.set(
        {"metadata": {"name": "csi.example.com"}, "spec": {"storageCapacity": True}}
    )
    assert bench.why(using("p", "data")) == (
        "0/2 nodes are available: 1 node(s) did not have enough free storage, "
        "1 node(s) didn't find available persistent volumes to bind."
    )
    objects.capacities.set(
        {
            "metadata": {"name": "c", "namespace": "kube-system"},
            "storageClassName": "slow",
            "capacity": "10Gi",
            "nodeTopology": {"matchLabels": {ZONE: "zb"}},
        }
    )
    assert bench.decide(using("p", "data")) == "b"


async def test_pre_bind_writes_and_waits_until_the_claim_is_bound(bench: Bench) -> None:
    objects = bench.cluster.objects
    objects.classes.set(storage_class())
    objects.claims.set(claim("data"))
    objects.volumes.set(volume("v", on="za"))
    written: list[tuple[str, Object]] = []

    class Writer:
        async def update(self, kind: str, obj: Object) -> Object:
            written.append((kind, obj))
            # The volume controller does its part at once.
            objects.claims.set(claim("data", "v"))
            return obj

    bench.handle.writer = Writer()  # type: ignore[assignment]
    info = bench.cluster.reader.read(using("p", "data"))
    name, found = bench.decider.decide(bench.profile, info)
    bench.framework.run_reserve(found.state, info, name)
    assert await bench.framework.run_pre_bind(found.state, info, name) is None
    kind, changed = written[0]
    assert kind == "volumes"
    assert changed["spec"]["claimRef"]["name"] == "data"
    assert changed["metadata"]["annotations"] == {"pv.kubernetes.io/bound-by-controller": "yes"}


@pytest.mark.looptime
async def test_pre_bind_gives_up_after_its_time_limit(bench: Bench) -> None:
    objects = bench.cluster.objects
    objects.classes.set(storage_class())
    objects.claims.set(claim("data"))
    objects.volumes.set(volume("v", on="za"))
    info = bench.cluster.reader.read(using("p", "data"))
    name, found = bench.decider.decide(bench.profile, info)
    status = await bench.framework.run_pre_bind(found.state, info, name)
    assert status is not None
    assert "timed out after 600s" in status.message


def test_zone_labels_of_a_volume_count(bench: Bench) -> None:
    bench.cluster.objects.claims.set(claim("data", "v"))
    bench.cluster.objects.volumes.set(volume("v", labels={ZONE: "zb__zc"}))
    assert bench.decide(using("p", "data")) == "b"
    bench.cluster.objects.volumes.set(volume("v", labels={ZONE: "zc"}))
    assert "node(s) had no available volume zone" in bench.why(using("p", "data"))


def test_a_disk_cannot_be_mounted_twice_for_writing(bench: Bench) -> None:
    disk = {"name": "d", "gcePersistentDisk": {"pdName": "x"}}
    bench.place(pod("old", volumes=[disk]), "a")
    assert bench.decide(pod("p", volumes=[disk])) == "b"
    reading = {"name": "d", "gcePersistentDisk": {"pdName": "y", "readOnly": True}}
    bench.place(pod("reader", volumes=[reading]), "a")
    bench.place(pod("load"), "b")
    bench.place(pod("load2"), "b")
    assert bench.decide(pod("q", volumes=[reading])) == "a"


def test_a_claim_for_one_pod_alone_keeps_others_out(bench: Bench) -> None:
    bench.cluster.objects.claims.set(claim("data", "v", modes=["ReadWriteOncePod"]))
    bench.cluster.objects.volumes.set(volume("v"))
    bench.place(using("old", "data"), "a")
    assert bench.why(using("p", "data")) == (
        "0/2 nodes are available: 2 node has pod using PersistentVolumeClaim with the same name "
        "and ReadWriteOncePod access mode."
    )


def test_a_driver_attaches_only_so_many_volumes(bench: Bench) -> None:
    objects = bench.cluster.objects
    for index, name in enumerate(("one", "two")):
        csi = {"driver": "csi.example.com", "volumeHandle": f"h{index}"}
        objects.volumes.set(volume(f"v{index}", csi=csi))
        objects.claims.set(claim(name, f"v{index}"))
    for name in ("a", "b"):
        driver = {"name": "csi.example.com", "allocatable": {"count": 1}}
        objects.csi_nodes.set({"metadata": {"name": name}, "spec": {"drivers": [driver]}})
    bench.place(using("old", "one"), "a")
    assert bench.decide(using("p", "two")) == "b"
    # The same volume once more is no further attachment.
    bench.place(using("more", "one"), "b")
    assert bench.why(using("q", "two")) == (
        "0/2 nodes are available: 2 node(s) exceed max volume count."
    )
    assert bench.decide(using("r", "one")) == "a"


def test_an_ephemeral_claim_must_exist_and_belong_to_the_pod(bench: Bench) -> None:
    item = pod("p", volumes=[{"name": "scratch", "ephemeral": {}}])
    assert "waiting for ephemeral volume controller to create" in bench.why(item)
    bench.cluster.objects.claims.set(claim("p-scratch", "v"))
    bench.cluster.objects.volumes.set(volume("v"))
    assert "was not created for pod default/p (pod is not owner)" in bench.why(item)
    owned = claim("p-scratch", "v", metadata={"ownerReferences": [{"uid": "p"}]})
    bench.cluster.objects.claims.set(owned)
    assert bench.decide(item) == "a"


def test_keys_name_namespaced_and_cluster_objects() -> None:
    assert key_of(claim("data")) == "default/data"
    assert key_of(volume("v")) == "v"


def test_a_volume_somebody_chose_is_the_only_one(bench: Bench) -> None:
    objects = bench.cluster.objects
    objects.classes.set(storage_class())
    objects.claims.set(claim("data", modes=["ReadWriteMany"]))
    chosen = {"name": "data", "namespace": "default"}
    objects.volumes.set(volume("mine", on="zb", claimRef=chosen))
    objects.volumes.set(volume("free", on="za", accessModes=["ReadWriteMany"]))
    # Whoever chose it looked at the access modes; and elsewhere the claim gets no other volume.
    assert bench.decide(using("p", "data")) == "b"


def test_a_volume_that_is_not_available_yet_is_not_taken(bench: Bench) -> None:
    objects = bench.cluster.objects
    objects.classes.set(storage_class())
    objects.claims.set(claim("data"))
    objects.volumes.set(volume("new") | {"status": {"phase": "Pending"}})
    assert "didn't find available persistent volumes to bind" in bench.why(using("p", "data"))


def test_a_zone_label_without_a_name_says_nothing(bench: Bench) -> None:
    bench.cluster.objects.claims.set(claim("data", "v"))
    bench.cluster.objects.volumes.set(volume("v", labels={ZONE: "za__"}))
    assert bench.decide(using("p", "data")) in ("a", "b")


def test_a_claim_that_cannot_be_used_is_reported_before_one_that_is_unbound(bench: Bench) -> None:
    objects = bench.cluster.objects
    objects.classes.set(storage_class(mode="Immediate"))
    objects.claims.set(claim("unbound"))
    gone = {"deletionTimestamp": "2030-01-01T00:00:00Z"}
    objects.claims.set(claim("leaving", "v", metadata=gone))
    assert 'persistentvolumeclaim "leaving" is being deleted' in bench.why(
        using("p", "unbound", "leaving")
    )


def test_a_pod_with_several_claims_of_its_own_is_evicted_for_all_of_them(bench: Bench) -> None:
    objects = bench.cluster.objects
    for name in ("one", "two"):
        objects.claims.set(claim(name, name, modes=["ReadWriteOncePod"]))
        objects.volumes.set(volume(name))
    bench.place(using("old", "one", "two"), "a")
    info = bench.cluster.reader.read(using("new", "one", "two", priority=10))
    _, found = bench.decider.decide(bench.profile, info)
    result, status = bench.framework.run_post_filter(found.state, info, found.diagnosis)
    assert status is None
    assert result is not None
    assert result.nominated == "a"
