"""An edge object as seen through the fields that are ours."""

from __future__ import annotations

from skerry.api.objects import Object
from skerry.logic.fleet.syncing.present import our_digest


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
