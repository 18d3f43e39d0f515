"""What the rows of volumes, claims, classes and drivers say."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from skerry.logic.machinery.printing.storage import STORAGE_COLUMNS

NOW = datetime(2025, 6, 6, tzinfo=UTC)
STORAGE = "storage.k8s.io"


def shown(group: str, kind: str, column: str, **fields: Any) -> Any:
    [found] = [each for each in STORAGE_COLUMNS[group, kind] if each.name == column]
    return found.cell({"metadata": {"name": "n"}, **fields}, NOW)


def test_access_modes_are_short_and_in_one_order() -> None:
    modes = ["ReadWriteOncePod", "ReadWriteMany", "ReadWriteOnce", "Unheard"]
    assert shown("", "PersistentVolume", "Access Modes", spec={"accessModes": modes}) == (
        "RWO,RWX,RWOP"
    )


def test_a_claim_shows_size_and_modes_once_it_is_bound() -> None:
    status = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
    for spec, size, modes in (({}, "", ""), ({"volumeName": "v"}, "1Gi", "RWO")):
        claim = {"spec": spec, "status": status}
        assert shown("", "PersistentVolumeClaim", "Capacity", **claim) == size
        assert shown("", "PersistentVolumeClaim", "Access Modes", **claim) == modes
    assert shown("", "PersistentVolumeClaim", "Capacity", spec={"volumeName": "v"}) == "0"


def test_the_annotation_of_old_names_the_class_before_the_field_does() -> None:
    spec = {"storageClassName": "new"}
    assert shown("", "PersistentVolume", "StorageClass", spec=spec) == "new"
    metadata = {"annotations": {"volume.beta.kubernetes.io/storage-class": "old"}}
    assert shown("", "PersistentVolume", "StorageClass", spec=spec, metadata=metadata) == "old"


def test_what_is_being_deleted_is_terminating_whatever_its_phase() -> None:
    status = {"phase": "Bound"}
    assert shown("", "PersistentVolume", "Status", status=status) == "Bound"
    going = {"name": "n", "deletionTimestamp": "2025-06-06T00:00:00Z"}
    assert shown("", "PersistentVolume", "Status", status=status, metadata=going) == "Terminating"


def test_a_volume_names_its_claim_with_the_namespace() -> None:
    assert shown("", "PersistentVolume", "Claim", spec={}) == ""
    reference = {"namespace": "shop", "name": "data"}
    assert shown("", "PersistentVolume", "Claim", spec={"claimRef": reference}) == "shop/data"


@pytest.mark.parametrize("prefix", ["storageclass", "storageclass.beta"])
def test_the_default_class_is_marked(prefix: str) -> None:
    annotation = f"{prefix}.kubernetes.io/is-default-class"
    for value, name in (("true", "n (default)"), ("false", "n")):
        metadata = {"name": "n", "annotations": {annotation: value}}
        assert shown(STORAGE, "StorageClass", "Name", metadata=metadata) == name
    other = {"name": "n", "annotations": {annotation: "true"}}
    assert shown(STORAGE, "VolumeAttributesClass", "Name", metadata=other) == "n"


def test_a_driver_that_wants_no_tokens_differs_from_one_that_wants_one_for_everybody() -> None:
    assert shown(STORAGE, "CSIDriver", "TokenRequests", spec={}) == "<unset>"
    requests = [{"audience": ""}, {"audience": "vault"}]
    assert (
        shown(STORAGE, "CSIDriver", "TokenRequests", spec={"tokenRequests": requests}) == ",vault"
    )
    assert shown(STORAGE, "CSIDriver", "AttachRequired", spec={}) is True
    assert shown(STORAGE, "CSIDriver", "Modes", spec={}) == "<none>"
