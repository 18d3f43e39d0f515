"""Mounts and devices: what a container may do with the volumes of its pod."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.objects import Object
from skerry.logic.machinery.builtin.mounts import device_errors, mount_errors

VOLUMES: dict[str, Object] = {
    "data": {"persistentVolumeClaim": {"claimName": "x"}},
    "scratch": {"ephemeral": {}},
    "config": {"configMap": {"name": "m"}},
}


def of_mounts(*mounts: Object, **container: Any) -> list[str]:
    whole = {"volumeMounts": list(mounts), **container}
    return [str(error) for error in mount_errors(whole, "c", VOLUMES)]


def of_devices(*devices: Object, **container: Any) -> list[str]:
    whole = {"volumeDevices": list(devices), **container}
    return [str(error) for error in device_errors(whole, "c", VOLUMES)]


def mount(**options: Any) -> Object:
    return {"name": "data", "mountPath": "/data", **options}


def device(**options: Any) -> Object:
    return {"name": "data", "devicePath": "/dev/xvda", **options}


def test_a_container_without_mounts_or_devices_has_nothing_wrong() -> None:
    assert mount_errors({}, "c", {}) == device_errors({"volumeDevices": []}, "c", {}) == []
    assert of_mounts(mount()) == of_devices(device()) == []


def test_a_mount_names_a_volume_of_the_pod_and_a_path() -> None:
    assert of_mounts({"name": "other"}) == [
        'c.volumeMounts[0].name: Not found: "other"',
        "c.volumeMounts[0].mountPath: Required value",
    ]
    assert of_mounts({"mountPath": "/a"}) == [
        "c.volumeMounts[0].name: Required value",
        'c.volumeMounts[0].name: Not found: ""',
    ]


def test_a_path_holds_one_mount() -> None:
    assert of_mounts(mount(), {"name": "config", "mountPath": "/data"}) == [
        'c.volumeMounts[1].mountPath: Invalid value: "/data": must be unique'
    ]


def test_a_volume_is_a_directory_or_a_device_and_not_both() -> None:
    assert of_mounts(mount(), volumeDevices=[device(devicePath="/data")]) == [
        'c.volumeMounts[0].name: Invalid value: "data": must not already exist in volumeDevices',
        (
            'c.volumeMounts[0].mountPath: Invalid value: "/data": must not already exist as a path '
            "in volumeDevices"
        ),
    ]
    assert of_devices(device(), volumeMounts=[mount(mountPath="/dev/xvda")]) == [
        'c.volumeDevices[0].name: Invalid value: "data": must not already exist in volumeMounts',
        (
            'c.volumeDevices[0].devicePath: Invalid value: "/dev/xvda": must not already exist as '
            "a path in volumeMounts"
        ),
    ]


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"subPath": "a/b"}, ""),
        ({"subPath": "/a"}, "c.volumeMounts.subPath"),
        ({"subPath": "a/../b"}, "c.volumeMounts.subPath"),
        ({"subPathExpr": "$(POD)/x"}, ""),
        ({"subPathExpr": "../x"}, "c.volumeMounts.subPathExpr"),
        ({"subPath": "a", "subPathExpr": "b"}, "c.volumeMounts[0].subPathExpr"),
        ({"mountPropagation": "None"}, ""),
        ({"mountPropagation": "Sideways"}, "c.volumeMounts.mountPropagation"),
        ({"mountPropagation": "Bidirectional"}, "c.volumeMounts.mountPropagation"),
        ({"recursiveReadOnly": "Disabled"}, ""),
        ({"recursiveReadOnly": "Always", "readOnly": True}, "c.volumeMounts.recursiveReadOnly"),
        ({"recursiveReadOnly": "Enabled"}, "c.volumeMounts.recursiveReadOnly"),
        ({"recursiveReadOnly": "Enabled", "readOnly": True}, ""),
        ({"recursiveReadOnly": "Enabled", "readOnly": True, "mountPropagation": "None"}, ""),
    ],
)
def test_options_stay_inside_the_volume_and_agree(options: Object, field: str) -> None:
    assert [text.split(": ")[0] for text in of_mounts(mount(**options))] == [field] * bool(field)


def test_only_privileged_containers_show_their_mounts_to_the_node() -> None:
    shown = mount(mountPropagation="Bidirectional")
    assert of_mounts(shown, securityContext={"privileged": True}) == []
    (text,) = of_mounts(shown, securityContext={})
    assert text.endswith("is available only to privileged containers")


def test_a_tree_that_is_read_only_throughout_takes_no_mounts_of_the_node() -> None:
    options = {
        "recursiveReadOnly": "IfPossible",
        "readOnly": True,
        "mountPropagation": "HostToContainer",
    }
    (text,) = of_mounts(mount(**options))
    assert text.endswith("when mountPropagation is None or not specified")


def test_only_claimed_volumes_are_devices() -> None:
    assert of_devices(device(name="scratch")) == []
    (text,) = of_devices(device(name="config"))
    assert text.endswith("PersistentVolumeClaim or Ephemeral for block mode")
    assert of_devices(device(name="other")) == ['c.volumeDevices[0].name: Not found: "other"']
    assert of_devices({"devicePath": "/a"}) == [
        "c.volumeDevices[0].name: Required value",
        'c.volumeDevices[0].name: Not found: ""',
    ]


def test_a_device_has_a_path_that_does_not_climb() -> None:
    assert of_devices(device(devicePath="")) == ["c.volumeDevices[0].devicePath: Required value"]
    (text,) = of_devices(device(devicePath="/dev/../x"))
    assert text.endswith("can not contain backsteps ('..')")


def test_devices_share_neither_name_nor_path() -> None:
    texts = of_devices(device(), device())
    assert [text.split(": ")[0] for text in texts] == [
        "c.volumeDevices[1].name",
        "c.volumeDevices[1].devicePath",
    ]
    assert all(text.endswith("must be unique") for text in texts)
