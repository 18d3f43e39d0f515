"""What storage drivers may write."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.logic.machinery.builtin.storage_drivers import RULES
from tests.kit.machinery.objects import created, named, resource


def fields(kind: str, obj: Object) -> list[str]:
    rules = RULES[GroupResource("storage.k8s.io", kind)]
    return [f"{each.field} {each.type}" for each in rules.validate_create(obj)]


def changed(kind: str, new: Object, old: Object) -> list[str]:
    rules = RULES[GroupResource("storage.k8s.io", kind)]
    return [f"{each.field} {each.type}" for each in rules.validate_update(new, old)]


def node(*drivers: Any) -> Object:
    return {"metadata": {"name": "n"}, "spec": {"drivers": list(drivers)}}


DRIVER = {"name": "d.example.com", "nodeID": "n"}


@pytest.mark.parametrize(
    ("drivers", "wrong"),
    [
        ([DRIVER], []),
        ([DRIVER, DRIVER], ["spec.drivers[1].name FieldValueDuplicate"]),
        ([{**DRIVER, "nodeID": ""}], ["spec.drivers[0].nodeID FieldValueRequired"]),
        ([{**DRIVER, "nodeID": "x" * 257}], ["spec.drivers[0].nodeID FieldValueInvalid"]),
        ([{**DRIVER, "topologyKeys": ["a/b", "a/b"]}], ["spec.drivers[0] FieldValueDuplicate"]),
        (
            [{**DRIVER, "allocatable": {"count": -1}}],
            ["spec.drivers[0].allocatable.count FieldValueInvalid"],
        ),
    ],
)
def test_a_node_names_each_driver_once_with_its_own_name_for_the_node(
    drivers: list[Any], wrong: list[str]
) -> None:
    assert fields("csinodes", node(*drivers)) == wrong


def test_a_driver_on_a_node_is_not_changed_but_comes_and_goes() -> None:
    check = RULES[GroupResource("storage.k8s.io", "csinodes")].validate_update
    assert check(node({**DRIVER, "nodeID": "m"}), node(DRIVER))
    assert check(node(), node(DRIVER)) == []
    assert check(node(DRIVER), node()) == []


def test_capacity_is_of_a_class_and_stays_that_of_its_topology() -> None:
    assert fields("csistoragecapacities", {"storageClassName": "fast", "capacity": "1Gi"}) == []
    assert fields("csistoragecapacities", {}) == ["storageClassName FieldValueInvalid"]
    check = RULES[GroupResource("storage.k8s.io", "csistoragecapacities")].validate_update
    assert check({"storageClassName": "a"}, {"storageClassName": "b"})


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ({"persistentVolumeName": "v"}, []),
        ({}, ["spec.source FieldValueRequired"]),
        (
            {"persistentVolumeName": "v", "inlineVolumeSpec": {}},
            ["spec.source FieldValueForbidden"],
        ),
    ],
)
def test_an_attachment_has_one_source(source: Object, wrong: list[str]) -> None:
    spec = {"attacher": "a.example.com", "nodeName": "n", "source": source}
    assert fields("volumeattachments", {"spec": spec}) == wrong
    assert changed("volumeattachments", {"spec": spec}, {"spec": spec}) == wrong
    assert changed("volumeattachments", {"spec": spec}, {"spec": {**spec, "nodeName": "m"}})


def test_a_driver_says_what_nobody_said_of_it() -> None:
    driver: Object = {"metadata": {"name": "d"}}
    RULES[GroupResource("storage.k8s.io", "csidrivers")].default(driver)
    assert driver["spec"]["attachRequired"] is True
    assert driver["spec"]["volumeLifecycleModes"] == ["Persistent"]


def test_a_new_attachment_is_not_attached() -> None:
    kind = resource("volumeattachments", "storage.k8s.io")
    spec = {"attacher": "a.b", "nodeName": "n", "source": {"persistentVolumeName": "v"}}
    assert created(kind, named(kind, spec=spec))["status"] == {"attached": False}


def test_how_a_driver_attaches_is_said_once() -> None:
    old = {"spec": {"attachRequired": False, "volumeLifecycleModes": ["Persistent"]}}
    assert changed("csidrivers", old, old) == []
    new = {"spec": {"attachRequired": True, "volumeLifecycleModes": ["Ephemeral"]}}
    assert changed("csidrivers", new, old) == [
        "spec.attachedRequired FieldValueInvalid",
        "spec.volumeLifecycleModes FieldValueInvalid",
    ]


def test_an_attachment_that_changes_is_judged_as_a_new_one_too() -> None:
    source = {"persistentVolumeName": "v"}
    old = {"spec": {"attacher": "a.example.com", "nodeName": "n", "source": source}}
    assert changed("volumeattachments", old, old) == []
    wrong = changed("volumeattachments", {"spec": {**old["spec"], "attacher": ""}}, old)
    assert wrong[0] == "spec.attacher FieldValueRequired"
    assert wrong[-1] == "spec FieldValueInvalid"
