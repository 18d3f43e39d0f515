"""What a write of one part of an object changes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.machinery.builtin import builtin_resources
from skerry.server.preparation.parts import part_of, status_only
from tests.kit.server.harness import serving

NOTES = st.dictionaries(
    st.sampled_from(["note", "edge.kcp.io/applied", "edge.kcp.io/cause", "edge.kcp.io/customizer"]),
    st.text(max_size=3),
)
MARKS = {"edge.kcp.io/applied", "edge.kcp.io/cause", "edge.kcp.io/sync-error"}


def obj(notes: dict[str, str], *, copy: bool, **members: Any) -> dict[str, Any]:
    labels = {"edge.kcp.io/projected": "yes"} if copy else {"a": "b"}
    return {"metadata": {"name": "x", "labels": labels, "annotations": notes}, **members}


@given(NOTES, NOTES)
def test_a_status_changes_nothing_else_of_an_object(
    before: dict[str, str], sent: dict[str, str]
) -> None:
    old = obj(before, copy=False, spec={"a": 1}, status={"b": 1})
    found = status_only(obj(sent, copy=True, spec={"a": 2}, status={"b": 2}), old)
    assert found == {**old, "status": {"b": 2}}
    assert status_only(obj(sent, copy=False, spec={"a": 2}), old) == {
        name: value for name, value in old.items() if name != "status"
    }


@given(NOTES, NOTES)
def test_the_status_of_a_copy_brings_its_marks_along_and_nothing_else(
    before: dict[str, str], sent: dict[str, str]
) -> None:
    old = obj(dict(before), copy=True, spec={"a": 1}, status={"b": 1})
    found = status_only(obj(sent, copy=False, spec={"a": 2}, status={"b": 2}), old)
    wanted = {k: v for k, v in before.items() if k not in MARKS}
    wanted |= {k: v for k, v in sent.items() if k in MARKS}
    assert found == obj(wanted, copy=True, spec={"a": 1}, status={"b": 2})
    assert old["metadata"]["annotations"] == before


MEMBERS = {
    "labels": {"l": "new"},
    "annotations": {"a": "new"},
    "finalizers": ["f.io/new"],
    "ownerReferences": [{"uid": "new"}],
}


@pytest.mark.parametrize(
    ("resource", "taken"),
    [
        ("namespaces", set(MEMBERS)),
        ("nodes", set(MEMBERS)),
        ("replicasets", set(MEMBERS)),
        ("pods", set(MEMBERS) - {"ownerReferences"}),
        ("deployments", set(MEMBERS) - {"labels"}),
        ("volumeattachments", set()),
        ("validatingadmissionpolicies", set()),
    ],
)
def test_the_status_of_a_built_in_kind_takes_metadata_along(resource: str, taken: set[str]) -> None:
    [kind] = [each for each in builtin_resources() if each.info.resource == resource]
    part = part_of(kind, "status")
    assert part is not None
    old: dict[str, Any] = {"metadata": {"name": "x"}, "spec": {}}
    found = part.narrow({"metadata": {"name": "x", **MEMBERS}, "spec": {"no": 1}}, old)
    assert found["metadata"].keys() - {"name"} == taken
    assert found["spec"] == {}
    copy = {"metadata": {"name": "x", "labels": {"edge.kcp.io/projected": "yes"}}}
    found = part.narrow({"metadata": {"name": "x", **MEMBERS}}, copy)
    assert found["metadata"]["labels"] == {"edge.kcp.io/projected": "yes"}
    assert not found["metadata"].keys() & {"finalizers", "ownerReferences"}


async def test_metadata_sent_with_the_status_of_a_namespace_is_stored() -> None:
    async with serving() as server:
        await server.create("/api/v1/namespaces", {"metadata": {"name": "t"}})
        patch = {"metadata": {"annotations": {"a": "b"}, "labels": {"c": "d"}}}
        await server.patch("/api/v1/namespaces/t/status", patch)
        found = (await server.get("/api/v1/namespaces/t")).body["metadata"]
        assert found["annotations"] == {"a": "b"}
        assert found["labels"]["c"] == "d"
