"""Content cast from a template is what would have been made for the workspace itself."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from skerry.kit.ids import SeededIds
from skerry.server.codec import decode, encode
from skerry.server.workspaces.object_templates import Marks, ObjectTemplate
from skerry.store.base import Write

# Whatever people may write: quotes, percent signs, other alphabets.
_TEXT = st.text(st.characters(codec="utf-8"), max_size=20) | st.sampled_from(
    ["%s", "100%", "%(name)s", '"', "\\", "user:ümläut"]
)


def _object(text: str, marks: Marks) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": f"c-{marks.suffixes[1]}",
            "uid": marks.uid,
            "annotations": {"cluster": marks.cluster, "path": f"[{marks.path}]", "text": text},
        },
        "data": {f"{text}!": marks.now, "owner": marks.parent + marks.name + marks.owner_uid},
    }


@given(text=_TEXT, path=_TEXT, name=_TEXT)
def test_what_is_cast_has_the_values_where_the_marks_were(text: str, path: str, name: str) -> None:
    marks = Marks(SeededIds(1), names=2)
    key = f"/core/configmaps/{marks.cluster}/default/c-{marks.suffixes[1]}"
    template = ObjectTemplate([Write(key, encode(_object(text, marks)), expected=0)] * 2, marks)
    writes = template.render(
        SeededIds(2),
        cluster="abc",
        path=path,
        now="2030-01-01T00:00:00Z",
        parent="root",
        name=name,
        owner_uid="u-1",
    )
    ids = SeededIds(2)
    _, suffix = ids.suffix(), ids.suffix()
    for write in writes:
        uid = ids.uid()
        assert (write.key, write.expected) == (f"/core/configmaps/abc/default/c-{suffix}", 0)
        obj = decode(write.value or b"", 1)
        assert obj == {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": f"c-{suffix}",
                "uid": uid,
                "annotations": {"cluster": "abc", "path": f"[{path}]", "text": text},
                "resourceVersion": "1",
            },
            "data": {f"{text}!": "2030-01-01T00:00:00Z", "owner": f"root{name}u-1"},
        }


def test_what_has_no_marks_is_cast_as_it_is() -> None:
    marks = Marks(SeededIds(1))
    write = Write("/a/b", b"\x00%\xff{}", expected=0)
    assert ObjectTemplate([write], marks).render(SeededIds(2), cluster="c", path="p", now="n") == [
        write
    ]
