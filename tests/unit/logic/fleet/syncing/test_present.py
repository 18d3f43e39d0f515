"""An edge object as seen through the fields that are ours."""

from __future__ import annotations

from skerry.api.objects import Object
from skerry.logic.fleet.syncing.present import OURS, our_digest, our_fields, present


def managed(obj: Object, fields: Object) -> Object:
    entry = {"manager": "skerry-syncer", "operation": "Apply", "fieldsV1": fields}
    return {**obj, "metadata": {**obj.get("metadata", {}), "managedFields": [entry]}}


FIELDS: Object = {
    "f:spec": {
        "f:replicas": {},
        "f:containers": {'k:{"name":"web"}': {".": {}, "f:image": {}, "f:name": {}}},
        "f:finalizers": {'v:"a"': {}},
    }
}


def pod_like(image: str = "i", extra: str = "e", finalizers: tuple[str, ...] = ("a",)) -> Object:
    containers = [{"name": "side"}, {"name": "web", "image": image, "extra": extra}]
    spec = {"replicas": 1, "containers": containers, "finalizers": list(finalizers), "o": extra}
    return managed({"metadata": {}, "spec": spec}, FIELDS)


def test_only_our_fields_enter_the_projection() -> None:
    base = our_digest(pod_like())
    assert our_digest(pod_like(extra="changed by another")) == base
    assert our_digest(pod_like(finalizers=("b", "a"))) == base
    assert our_digest(pod_like(image="drift")) != base
    assert our_digest(pod_like(finalizers=())) != base
    assert our_digest({"metadata": {}}) == ""


def seen(value: object, fields: Object) -> str:
    return our_digest(managed({"metadata": {}, "spec": value}, {"f:spec": fields}))


def test_a_member_that_others_fill_counts_as_being_there() -> None:
    fields: Object = {"f:labels": {".": {}}}
    assert seen({"labels": {"a": "1"}}, fields) == seen({"labels": {"b": "2"}}, fields)
    assert seen({"labels": {"a": "1"}}, fields) != seen({}, fields)


def test_items_by_place_and_by_value_are_followed() -> None:
    second: Object = {"f:l": {"i:1": {}}}
    assert seen({"l": ["x", "y"]}, second) == seen({"l": ["other", "y"]}, second)
    assert seen({"l": ["x", "y"]}, second) != seen({"l": ["x", "z"]}, second)
    assert seen({"l": ["x"]}, second) == seen({"l": {}}, second), "absent either way"


def test_a_list_item_is_found_by_all_its_keys() -> None:
    fields: Object = {"f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:name": {}}}}
    tcp = {"port": 80, "protocol": "TCP", "name": "web"}
    udp = {"port": 80, "protocol": "UDP", "name": "other"}
    assert seen({"ports": [udp, tcp]}, fields) == seen({"ports": ["odd", tcp]}, fields)
    assert seen({"ports": [udp]}, fields) == seen({"ports": []}, fields)


def test_fields_of_another_manager_are_not_ours() -> None:
    obj = pod_like()
    assert our_fields(obj) == FIELDS
    assert our_fields(obj, "kubectl") is None
    assert our_digest(obj, "kubectl") == ""


def test_a_row_keeps_who_it_is_and_the_sign_that_it_is_ours() -> None:
    row = present(pod_like())
    assert row[OURS] == our_digest(pod_like())
    assert "managedFields" not in row["metadata"]
    assert present({"metadata": {"name": "theirs"}})[OURS] == ""
