"""Claims and volumes: which belong together, and from where they are reached."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.objects import Object
from skerry.scheduler.cache.objects import ClusterObjects
from skerry.scheduler.cache.pod import PodReader
from skerry.scheduler.cache.storage import (
    BIND_COMPLETED,
    best_volume,
    claims_of,
    class_name,
    is_bound,
    reachable,
    storage_capacity,
    storage_request,
    topology_allows,
    uses_claim,
    waits_for_consumer,
)
from tests.kit.scheduler.fixtures import pod


def claim(name: str = "c", size: str = "1Gi", **spec: Any) -> Object:
    whole = {"resources": {"requests": {"storage": size}}, "storageClassName": "s", **spec}
    return {"metadata": {"name": name, "namespace": "default", "uid": "u"}, "spec": whole}


def volume(name: str = "v", size: str = "1Gi", **spec: Any) -> Object:
    whole = {"capacity": {"storage": size}, "storageClassName": "s", **spec}
    return {"metadata": {"name": name}, "spec": whole, "status": {"phase": "Available"}}


def chosen(wanted: Object, *volumes: Object, taken: frozenset[str] = frozenset()) -> str:
    found = best_volume(wanted, iter(volumes), "n", {"zone": "a"}, set(taken))
    return "" if found is None else str(found["metadata"]["name"])


ELSEWHERE: Any = {
    "nodeAffinity": {
        "required": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}
            ]
        }
    }
}


def test_a_pod_uses_claims_of_its_own_namespace_and_those_made_for_it() -> None:
    volumes = [
        {"name": "d", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "e", "ephemeral": {"volumeClaimTemplate": {}}},
        {"name": "f", "emptyDir": {}},
    ]
    info = PodReader().read(pod("p", volumes=volumes))
    assert list(claims_of(info)) == [("data", False), ("p-e", True)]
    assert uses_claim(info, claim("data"))
    assert not uses_claim(info, claim("other"))
    assert not uses_claim(info, None)
    stranger = claim("data")
    stranger["metadata"]["namespace"] = "elsewhere"
    assert not uses_claim(info, stranger)


def test_the_old_annotation_names_the_class_even_when_empty() -> None:
    obj = claim()
    assert class_name(obj) == "s"
    obj["metadata"]["annotations"] = {"volume.beta.kubernetes.io/storage-class": ""}
    assert class_name(obj) == ""
    assert class_name({"metadata": {"name": "c"}}) == ""


def test_a_claim_is_bound_when_both_sides_have_said_so() -> None:
    obj = claim(volumeName="v")
    assert not is_bound(obj)
    obj["metadata"]["annotations"] = {BIND_COMPLETED: "yes"}
    assert is_bound(obj)
    obj["spec"]["volumeName"] = ""
    assert not is_bound(obj)


@pytest.mark.parametrize(
    ("mode", "waits"), [("WaitForFirstConsumer", True), ("Immediate", False), (None, False)]
)
def test_binding_waits_where_the_class_says(mode: str | None, waits: bool) -> None:
    objects = ClusterObjects()
    objects.classes.set({"metadata": {"name": "s"}, "volumeBindingMode": mode})
    assert waits_for_consumer(claim(), objects) is waits
    assert not waits_for_consumer(claim(storageClassName=""), objects)
    assert not waits_for_consumer(claim(storageClassName="unknown"), objects)


def test_the_smallest_that_suits_is_chosen() -> None:
    assert (
        chosen(claim(), volume("big", "9Gi"), volume("fit", "2Gi"), volume("tiny", "1Mi")) == "fit"
    )
    assert chosen(claim(), volume("a"), taken=frozenset(["a"])) == ""


@pytest.mark.parametrize(
    "spec",
    [
        {"storageClassName": "other"},
        {"volumeMode": "Block"},
        {"accessModes": []},
        {"claimRef": {"name": "somebody", "namespace": "default"}},
        ELSEWHERE,
    ],
)
def test_volumes_that_do_not_suit(spec: Object) -> None:
    assert (
        chosen(
            claim(accessModes=["ReadWriteOnce"]),
            volume(**{"accessModes": ["ReadWriteOnce"], **spec}),
        )
        == ""
    )
    assert (
        chosen(claim(accessModes=["ReadWriteOnce"]), volume(accessModes=["ReadWriteOnce"])) == "v"
    )


def test_volumes_that_leave_or_are_not_available_do_not_suit() -> None:
    terminating, used = volume(), volume()
    terminating["metadata"]["deletionTimestamp"] = "now"
    used["status"] = {"phase": "Bound"}
    assert chosen(claim(), terminating, used) == ""


def test_a_selector_of_the_claim_is_asked() -> None:
    labelled = volume("labelled")
    labelled["metadata"]["labels"] = {"a": "b"}
    wanted = claim(selector={"matchLabels": {"a": "b"}})
    assert chosen(wanted, volume("plain"), labelled) == "labelled"


def test_a_volume_bound_in_advance_wins_though_larger_and_ends_the_search() -> None:
    ours: Any = {"claimRef": {"name": "c", "namespace": "default"}}
    assert chosen(claim(), volume("small"), volume("ours", "9Gi", **ours)) == "ours"
    assert chosen(claim(), volume("ours", **ours, **ELSEWHERE), volume("other")) == ""
    theirs: Any = {"claimRef": {"name": "c", "namespace": "default", "uid": "of another"}}
    assert chosen(claim(), volume("theirs", **theirs)) == ""


def test_a_volume_without_affinity_is_reached_from_everywhere() -> None:
    assert reachable(volume(), "n", {})
    assert reachable(volume(**ELSEWHERE), "n", {"zone": "b"})
    assert not reachable(volume(**ELSEWHERE), "n", {"zone": "a"})


def test_amounts_are_bytes() -> None:
    assert storage_request(claim(size="1Ki")) == 1024
    assert storage_request({"metadata": {"name": "c"}}) is None
    assert storage_capacity({"metadata": {"name": "v"}}) == 0


@pytest.mark.parametrize(
    ("terms", "allowed"),
    [
        (None, True),
        ([], True),
        ([{"matchLabelExpressions": [{"key": "zone", "values": ["a", "b"]}]}], True),
        ([{"matchLabelExpressions": [{"key": "zone", "values": ["b"]}]}], False),
        ([{"matchLabelExpressions": [{"key": "missing", "values": ["a"]}]}], False),
        ([{"matchLabelExpressions": []}], False),
    ],
)
def test_topologies_of_a_class(terms: Any, allowed: bool) -> None:
    assert topology_allows(terms, {"zone": "a"}) is allowed
