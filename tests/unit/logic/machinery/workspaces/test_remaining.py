"""What is left is counted, named in order, and said once."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.machinery.workspaces.remaining import Remaining, set_condition


def test_each_object_counts_once_for_each_finalizer() -> None:
    left = Remaining()
    left.add("example.io", "widgets:0123", ["b", "a", "a"])
    left.add("", "configmaps", ["b"])
    assert left.workspace_condition()["message"] == (
        "Some resources are remaining: configmaps. has 1 resource instances, widgets.example.io "
        "has 1 resource instances; Some content in the logical cluster has finalizers remaining: "
        "a in 1 resource instances, b in 2 resource instances"
    )
    assert left.binding_condition()["message"].endswith(
        "remaining: a in 1 resource instances, b in 2 resource instances"
    )


def test_what_nobody_holds_is_reported_without_finalizers() -> None:
    left = Remaining()
    left.add("", "namespaces", [])
    assert left.workspace_condition()["message"] == (
        "Some resources are remaining: namespaces. has 1 resource instances"
    )


KINDS = st.sampled_from(["Ready", "A", "B", "WorkspaceContentDeleted"])
CONDITIONS = st.lists(st.tuples(KINDS, st.sampled_from(["True", "False"]), st.text(max_size=3)))


@given(CONDITIONS)
def test_a_condition_is_said_once_at_its_place_and_dated_by_its_status(
    said: list[tuple[str, str, str]],
) -> None:
    obj: dict[str, Any] = {}
    before: dict[str, dict[str, Any]] = {}
    for number, (kind, status, message) in enumerate(said):
        condition = {"type": kind, "status": status, "message": message}
        now = f"t{number}"
        set_condition(obj, condition, now)
        assert not set_condition(obj, condition, "later")
        found = {each["type"]: each for each in obj["status"]["conditions"]}
        old = before.get(kind)
        since = old["lastTransitionTime"] if old and old["status"] == status else now
        assert found == before | {kind: {**condition, "lastTransitionTime": since}}
        kinds = [each["type"] for each in obj["status"]["conditions"]]
        assert kinds == sorted(kinds, key=lambda each: (each != "Ready", each))
        before = found
