"""Manifests that tabs send: objects, or a refusal in a sentence."""

from __future__ import annotations

import pytest

from skerry.api.errors import BadRequest
from skerry.app.console_questions import MAX_DOCUMENTS, documents_of

_NAMED = '{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "%s"}}'


def names(text: str) -> list[str]:
    return [each["metadata"]["name"] for each in documents_of(text)]


def test_documents_are_divided_by_lines_of_three_hyphens() -> None:
    text = f"---\n{_NAMED % 'a'}\n--- \n{_NAMED % 'b'}\n---\n# nothing\n"
    assert names(text) == ["a", "b"]


def test_a_list_stands_for_its_items() -> None:
    assert names(f'{{"kind": "List", "items": [{_NAMED % "a"}, {_NAMED % "b"}]}}') == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "found 0 objects, want 1 to 50"),
        ("\n---\n".join([_NAMED % "a"] * (MAX_DOCUMENTS + 1)), "found 51 objects, want 1 to 50"),
        ("[1, 2", "manifest: yaml: "),
        ("just text", "want objects with apiVersion, kind and metadata.name"),
        ("{metadata: {name: 3}}", "want objects with apiVersion, kind and metadata.name"),
        ("{kind: List, items: [1]}", "want objects with apiVersion, kind and metadata.name"),
        ("{kind: List, items: 3}", "want objects with apiVersion, kind and metadata.name"),
        ("a: &a [x]\nb: &b [*a, *a]\nc: *c", "manifest: "),
    ],
)
def test_what_is_no_manifest_is_refused_in_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(BadRequest) as refused:
        documents_of(text)
    assert sentence in refused.value.message
