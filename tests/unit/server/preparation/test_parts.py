"""What a write of one part of an object changes."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from skerry.server.preparation.parts import status_only

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
