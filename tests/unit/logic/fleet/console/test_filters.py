"""Words that choose edges: understood, refused in a sentence, and blind where somebody is."""

from __future__ import annotations

import pytest

from skerry.api.errors import BadRequest
from skerry.logic.fleet.console.edges import EdgeIndex
from skerry.logic.fleet.console.filters import Sight, parse_filter
from tests.kit.chain.console_objects import slice_of, sync_target


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("status:fine", "no state is called 'fine'"),
        ("placement:web", "want placement:WORKSPACE/NAME"),
        ("reason:Because", "no reason is called"),
        ("a " * 40, "at most 32 words"),
        ("a" * 2000, "at most 1024 characters"),
        (7, "want words"),
    ],
)
def test_a_filter_that_cannot_be_understood_is_refused_in_a_sentence(
    text: object, said: str
) -> None:
    with pytest.raises(BadRequest, match=said):
        parse_filter(text)


def test_a_placement_that_may_not_be_seen_is_not_there() -> None:
    index = EdgeIndex()
    index.put_sync_target(sync_target("a", "one"))
    index.put_slice(slice_of("w", "web", "web", {("a", "one")}))
    blind = Sight(index.present, lambda _: False, lambda path: path)
    assert not parse_filter("placement:w/web").matching(index, blind)
