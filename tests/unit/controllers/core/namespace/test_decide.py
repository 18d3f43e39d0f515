from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from skerry.api.kinds import GroupVersionResource
from skerry.controllers.core.namespace.decide import conditions, decide
from skerry.controllers.core.namespace.observe import Content, Observed
from skerry.logic.machinery.plan import Delete, DeleteCollection, Update
from skerry.runtime.index import Key

NOW = datetime(2030, 1, 1, 0, 0, 5, tzinfo=UTC)
PODS = GroupVersionResource("", "v1", "pods")
WIDGETS = GroupVersionResource("example.com", "v1", "widgets")


def namespace(**status: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "name": "ns",
            "uid": "u",
            "resourceVersion": "9",
            "deletionTimestamp": "2030-01-01T00:00:00Z",
        },
        "spec": {"finalizers": ["kubernetes", "example.com/mine"]},
        "status": {"phase": "Terminating", **status},
    }


def content(gvr: GroupVersionResource = PODS, **fields: Any) -> Content:
    base: dict[str, Any] = {
        "deletes_collections": True,
        "total": 2,
        "live": (),
        "finalizers": (),
        "grace_seconds": 0,
    }
    return Content(gvr, **{**base, **fields})


def observed(*found: Content, **fields: Any) -> Observed:
    return Observed(Key("", "", "ns"), namespace(), found, **fields)


def test_an_empty_namespace_is_let_go_by_our_finalizer_alone() -> None:
    (action,) = decide(observed(), NOW).actions
    assert isinstance(action, Update)
    assert action.subresource == "finalize"
    assert action.object["spec"]["finalizers"] == ["example.com/mine"]
    assert action.object["metadata"]["resourceVersion"] == "9"


def test_content_is_deleted_and_looked_at_again_at_once() -> None:
    plan = decide(
        observed(
            content(live=(("a", "1"), ("b", "2"))),
            content(WIDGETS, deletes_collections=False, live=(("w", "3"),)),
        ),
        NOW,
    )
    collection, single, status = plan.actions
    assert isinstance(collection, DeleteCollection)
    assert (collection.gvr, collection.namespace) == (PODS, "ns")
    assert isinstance(single, Delete)
    assert (single.target.name, single.uid) == ("w", "3")
    assert isinstance(status, Update)
    assert plan.requeue_after_seconds == 0.0


@pytest.mark.parametrize(
    "fields", [{"undiscovered": ("metrics/v1",)}, {"unread": ("pods: Forbidden",)}]
)
def test_what_could_not_be_read_is_not_taken_for_absent(fields: Any) -> None:
    plan = decide(observed(**fields), NOW)
    assert [action.subresource for action in plan if isinstance(action, Update)] == ["status"]
    failing = {c["type"] for c in conditions(observed(**fields)) if c["status"] == "False"}
    assert "NamespaceContentRemaining" not in failing


def test_conditions_are_written_once() -> None:
    waiting = observed(content(finalizers=(("example.com/hold", 2),)))
    (update,) = decide(waiting, NOW).actions
    assert isinstance(update, Update)
    again = Observed(waiting.key, update.object, waiting.content)
    later = NOW.replace(minute=3)
    plan = decide(again, later)
    assert not plan
    assert plan.requeue_after_seconds == 15.0
    by_type = {item["type"]: item for item in update.object["status"]["conditions"]}
    assert by_type["NamespaceFinalizersRemaining"]["message"] == (
        "Some content in the namespace has finalizers remaining: "
        "example.com/hold in 2 resource instances"
    )
    assert by_type["NamespaceContentRemaining"]["lastTransitionTime"] == "2030-01-01T00:00:05Z"


def test_pods_are_given_their_grace() -> None:
    assert decide(observed(content(grace_seconds=8)), NOW).requeue_after_seconds == 5.0
    assert decide(observed(content(grace_seconds=600)), NOW).requeue_after_seconds == 15.0
    assert decide(observed(content()), NOW).requeue_after_seconds == 1.0
