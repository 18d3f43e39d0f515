"""Content cast from a template is what would have been made for the workspace itself."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from skerry.kit.ids import SeededIds
from skerry.server.codec import decode, encode
from skerry.server.workspaces.object_templates import ObjectTemplate, Placeholders
from skerry.store.base import Write

# Whatever people may write: quotes, percent signs, other alphabets.
_TEXT = st.text(st.characters(codec="utf-8"), max_size=20) | st.sampled_from(
    ["%s", "100%", "%(name)s", '"', "\\", "user:ümläut"]
)


def _object(text: str, placeholders: Placeholders) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": f"c-{placeholders.suffixes[1]}",
            "uid": placeholders.uid,
            "annotations": {
                "cluster": placeholders.cluster,
                "path": f"[{placeholders.path}]",
                "text": text,
            },
        },
        "data": {
            f"{text}!": placeholders.now,
            "owner": placeholders.parent + placeholders.name + placeholders.owner_uid,
        },
    }


@given(text=_TEXT, path=_TEXT, name=_TEXT)
def test_what_is_cast_has_the_values_where_the_marks_were(text: str, path: str, name: str) -> None:
    placeholders = Placeholders(SeededIds(1), names=2)
    key = f"/core/configmaps/{placeholders.cluster}/default/c-{placeholders.suffixes[1]}"
    template = ObjectTemplate(
        [Write(key, encode(_object(text, placeholders)), expected=0)] * 2, placeholders
    )
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
    placeholders = Placeholders(SeededIds(1))
    write = Write("/a/b", b"\x00%\xff{}", expected=0)
    assert ObjectTemplate([write], placeholders).render(
        SeededIds(2), cluster="c", path="p", now="n"
    ) == [write]
