"""The table of labels and annotations has every name of the edge API."""

from __future__ import annotations

from skerry.api import edge
from skerry.api.edge_marks import MARKS


def test_every_name_is_in_the_table_once() -> None:
    named = [
        value
        for value in vars(edge).values()
        if isinstance(value, str) and value.startswith(edge.DOMAIN) and value != edge.DOMAIN
    ]
    # A selector, the API version and finalizers begin alike.
    others = (edge.API_VERSION, edge.GUARD_FINALIZER, edge.ROLLOUT_FINALIZER)
    names = {value for value in named if "!=" not in value and value not in others}
    assert sorted(mark.key for mark in MARKS) == sorted(names)


def test_every_meaning_is_a_sentence() -> None:
    for mark in MARKS:
        assert mark.meaning[0].isupper(), mark.key
        assert mark.meaning.endswith("."), mark.key
