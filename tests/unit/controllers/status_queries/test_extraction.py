"""What is kept of an object, and where."""

from __future__ import annotations

from skerry.api.edge import PROJECTED, UPSYNCED
from skerry.api.objects import Object
from skerry.controllers.status_queries.extraction import Layout, placed_object, version_of
from skerry.controllers.summarizer.projections import Kind
from skerry.logic.fleet.query.expressions import Failure, Part, compiled

KIND = Kind("apps", "v1", "deployments", "Deployment", has_status=True)


def parts(*texts: str) -> list[Part]:
    return [part for text in texts for part in compiled(text).parts]


def copy(**status: int) -> Object:
    labels = {PROJECTED: "yes", "app": "web"}
    annotations = {"edge.kcp.io/owner-workspace": "abc", "note": "x", "kcp.io/cluster": "mb"}
    metadata = {"name": "web", "labels": labels, "annotations": annotations, "managedFields": []}
    return {"metadata": metadata, "spec": {"replicas": 2}, "status": dict(status)}


def test_a_part_keeps_its_place_while_it_is_needed() -> None:
    layout = Layout()
    a, b, c = parts("status.a", "status.b", "status.c")
    layout.need([a, b])
    before = layout.positions()
    layout.need([b])
    assert layout.positions() == {b.tree: before[b.tree]}
    layout.need([b, c])
    assert layout.positions() == {b.tree: before[b.tree], c.tree: before[a.tree]}


def test_a_version_is_new_when_something_else_is_kept() -> None:
    layout = Layout()
    layout.need([])
    first = layout.version
    layout.need([])
    assert layout.version == first == 1
    layout.need(parts("status.a"))
    assert layout.version == 2


def test_what_is_kept_of_a_copy_is_its_report_and_its_parts() -> None:
    layout = Layout()
    [a, b] = parts("status.a", "status.b")
    layout.need([a, b])
    obj = copy(a=3)
    lean = KIND.project(obj)
    found = layout.extract(KIND, obj, lean)
    assert found is not None
    places = layout.positions()
    assert found[0] is lean["report"]
    assert (version_of(found), found[places[a.tree]]) == (1, 3)
    assert isinstance(found[places[b.tree]], Failure)


def test_an_object_that_came_up_has_a_report_of_its_own() -> None:
    layout = Layout()
    layout.need(parts("status.a"))
    obj: Object = {"metadata": {"name": "x", "annotations": {UPSYNCED: "true"}}, "status": {"a": 1}}
    found = layout.extract(KIND, obj, KIND.project(obj))
    assert found is not None
    assert found[0].reported


def test_nothing_is_kept_of_a_source() -> None:
    layout = Layout()
    layout.need([])
    obj: Object = {"metadata": {"name": "x"}, "status": {"a": 1}}
    assert layout.extract(KIND, obj, KIND.project(obj)) is None


def test_an_expression_sees_nothing_of_the_chain() -> None:
    seen = placed_object(copy(a=1))
    assert "status" not in seen
    assert seen["metadata"] == {
        "name": "web",
        "labels": {"app": "web"},
        "annotations": {"note": "x"},
    }
