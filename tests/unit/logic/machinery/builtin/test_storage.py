"""Claims, volumes and storage classes."""

from __future__ import annotations

import pytest

from skerry.api.objects import Object
from tests.kit.machinery.objects import (
    created,
    errors_of,
    merged,
    named,
    resource,
    update_errors,
)

CLAIMS = resource("persistentvolumeclaims")
VOLUMES = resource("persistentvolumes")
CLASSES = resource("storageclasses", "storage.k8s.io")


def claim(spec: Object | None = None) -> Object:
    base = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}
    return named(CLAIMS, spec=merged(base, spec))


def volume(spec: Object | None = None) -> Object:
    base = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "hostPath": {"path": "/x"},
    }
    return named(VOLUMES, spec=merged(base, spec))


def test_claims_and_volumes_are_filled_in() -> None:
    new = created(CLAIMS, claim())
    assert new["spec"]["volumeMode"] == "Filesystem"
    assert new["spec"]["resources"]["requests"]["storage"] == "1Gi"
    assert new["status"] == {"phase": "Pending"}
    new = created(VOLUMES, volume())
    assert new["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert new["spec"]["hostPath"]["type"] == ""


def test_the_two_names_of_a_data_source_are_kept_in_step() -> None:
    source = {"kind": "PersistentVolumeClaim", "name": "other"}
    assert created(CLAIMS, claim({"dataSource": source}))["spec"]["dataSourceRef"] == source
    assert created(CLAIMS, claim({"dataSourceRef": source}))["spec"]["dataSource"] == source


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ({"accessModes": []}, "spec.accessModes: Required value: at least 1 access mode is req"),
        ({"accessModes": ["Odd"]}, 'spec.accessModes: Unsupported value: "Odd"'),
        (
            {"accessModes": ["ReadWriteOnce", "ReadWriteOncePod"]},
            "spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes",
        ),
        ({"resources": None}, "spec.resources[storage]: Required value"),
        (
            {"resources": {"requests": {"storage": "0"}}},
            'spec.resources[storage]: Invalid value: "0": must be greater than zero',
        ),
        ({"volumeMode": "Odd"}, 'spec.volumeMode: Unsupported value: "Odd"'),
        ({"dataSource": {"kind": "Pod", "name": "p"}}, 'spec.dataSource: Invalid value: "Pod"'),
    ],
)
def test_bad_claims_are_refused(spec: Object, error: str) -> None:
    errors = errors_of(CLAIMS, claim(spec))
    assert any(found.startswith(error) for found in errors), errors


def test_a_claim_is_fixed_but_may_be_bound_and_then_grow() -> None:
    assert update_errors(CLAIMS, claim(), {"spec": {"volumeName": "v"}}) == []
    (error,) = update_errors(CLAIMS, claim(), {"spec": {"accessModes": ["ReadOnlyMany"]}})
    assert error.startswith("spec: Forbidden: spec is immutable after creation except resources")
    bigger = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
    assert update_errors(CLAIMS, claim(), bigger)
    assert update_errors(CLAIMS, claim(), {**bigger, "status": {"phase": "Bound"}}) == []


def test_bad_volumes_are_refused() -> None:
    assert "spec: Required value: must specify a volume type" in errors_of(
        VOLUMES, volume({"hostPath": None})
    )
    assert "spec.nfs: Forbidden: may not specify more than 1 volume type" in errors_of(
        VOLUMES, volume({"nfs": {"server": "s", "path": "/"}})
    )
    assert "spec.capacity: Required value" in errors_of(VOLUMES, volume({"capacity": None}))
    (error,) = update_errors(VOLUMES, volume(), {"spec": {"hostPath": {"path": "/y"}}})
    assert error.startswith(
        "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is"
    )
    assert update_errors(VOLUMES, volume(), {"spec": {"capacity": {"storage": "1024Mi"}}}) == []


def test_storage_classes_are_fixed() -> None:
    old = named(CLASSES, provisioner="example.com/x")
    assert created(CLASSES, old)["reclaimPolicy"] == "Delete"
    assert errors_of(CLASSES, named(CLASSES)) == ["provisioner: Required value"]
    assert update_errors(
        CLASSES, old, {"provisioner": "example.com/y", "parameters": {"a": "b"}}
    ) == [
        "parameters: Forbidden: updates to parameters are forbidden.",
        "provisioner: Forbidden: updates to provisioner are forbidden.",
    ]


def test_csi_drivers_are_filled_in() -> None:
    kind = resource("csidrivers", "storage.k8s.io")
    spec = created(kind, named(kind, spec={}))["spec"]
    assert spec["attachRequired"] is True
    assert spec["volumeLifecycleModes"] == ["Persistent"]
