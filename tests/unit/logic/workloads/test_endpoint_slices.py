"""EndpointSlices are brought to what is wanted, and what others wrote on them stays."""

from __future__ import annotations

from typing import Any

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.logic.machinery.plan import Create, Delete, Update
from skerry.logic.workloads.endpoint_slices import slice_actions

SLICES = GroupVersionResource("discovery.k8s.io", "v1", "endpointslices")


def piece(name: str, *addresses: str, **metadata: Any) -> Object:
    return {
        "metadata": {"name": name, "namespace": "ns", "labels": {"a": "b"}, **metadata},
        "endpoints": [{"addresses": [each]} for each in addresses],
        "ports": [{"name": "", "port": 80}],
    }


def test_slices_are_created_changed_and_deleted_by_name() -> None:
    present = [piece("old", "10.0.0.1", uid="u"), piece("same", "10.0.0.2"), piece("other")]
    wanted = [piece("new", "10.0.0.3"), piece("same", "10.0.0.2"), piece("other", "10.0.0.4")]
    made, changed, gone = slice_actions(SLICES, present, wanted)
    assert isinstance(made, Create)
    assert made.target.name == "new"
    assert isinstance(changed, Update)
    assert changed.object["endpoints"] == [{"addresses": ["10.0.0.4"]}]
    assert isinstance(gone, Delete)
    assert (gone.target.name, gone.uid) == ("old", "u")


def test_annotations_are_left_alone_unless_some_are_wanted() -> None:
    present = [piece("a", annotations={"x": "1"}, resourceVersion="7")]
    assert slice_actions(SLICES, present, [piece("a")]) == []
    (changed,) = slice_actions(SLICES, present, [piece("a", annotations={"y": "2"})])
    assert isinstance(changed, Update)
    assert changed.object["metadata"]["annotations"] == {"y": "2"}
    assert changed.object["metadata"]["resourceVersion"] == "7"
