"""Words that choose edges: understood, refused in a sentence, and blind where somebody is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from skerry.api.errors import BadRequest
from skerry.logic.fleet.console.edges import STATES, EdgeIndex
from skerry.logic.fleet.console.filters import (
    MAX_FILTER_LENGTH,
    MAX_WORDS,
    Filter,
    Sight,
    parse_filter,
)
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


def index() -> EdgeIndex:
    found = EdgeIndex()
    found.put_sync_target(sync_target("a", "One", {"env": "prod", "zone": "z=1"}))
    found.put_sync_target(sync_target("a", "two", {"env": "dev"}, "Lost"))
    found.put_sync_target(sync_target("b", "three", {}, "Held"))
    found.put_slice(slice_of("w", "web", "web", {("a", "One"), ("b", "three")}))
    return found


def names(
    text: str,
    *,
    seen: BitMap | None = None,
    cluster_at: Callable[[str], str] = lambda path: path,
) -> list[str]:
    edges = index()
    sight = Sight(edges.present if seen is None else seen, lambda _: True, cluster_at)
    return sorted(edges.edge(n).name for n in parse_filter(text).matching(edges, sight))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ["One", "three", "two"]),
        ("env=prod", ["One"]),
        ("env==prod", ["One"]),
        ("env=", []),
        ("env!=prod", ["three", "two"]),
        ("nobody=x", []),
        ("nobody!=x", ["One", "three", "two"]),
        ("zone=z=1", ["One"]),
        ("env", ["One", "two"]),
        ("ONE", ["One"]),
        ("t", ["three", "two"]),
        ("env t", ["two"]),
        ("status:away", ["two"]),
        ("status:degraded", ["three"]),
        ("status:unknown", []),
        ("reason:Held", ["three"]),
        ("reason:Refused", []),
        ("workspace:a", ["One", "two"]),
        ("workspace:nowhere", []),
        ("placement:w/web", ["One", "three"]),
        ("placement:w/other", []),
        ("placement:w/web env=prod", ["One"]),
        # No word of ours: part of a name, of which there is none.
        ("other:word", []),
    ],
)
def test_every_word_chooses_what_the_table_says(text: str, found: list[str]) -> None:
    assert names(text) == found


def test_a_path_is_that_of_a_workspace_and_not_its_cluster() -> None:
    paths = {"root:inv": "a", "root:shop": "w"}
    cluster_at = lambda path: paths.get(path, "")  # noqa: E731
    assert names("workspace:root:inv", cluster_at=cluster_at) == ["One", "two"]
    assert names("workspace:a", cluster_at=cluster_at) == []
    assert names("placement:root:shop/web", cluster_at=cluster_at) == ["One", "three"]
    assert names("placement:w/web", cluster_at=cluster_at) == []


@pytest.mark.parametrize("text", ["", "env", "env!=prod", "status:healthy", "placement:w/web", "t"])
def test_no_word_shows_an_edge_that_somebody_may_not_see(text: str) -> None:
    assert names(text, seen=BitMap()) == []


def test_states_of_something_else_are_what_is_asked_about_where_they_are_given() -> None:
    edges = index()
    sight = Sight(edges.present, lambda _: True, lambda path: path)
    states = np.full(len(edges.states), STATES.index("healthy"), np.uint8)
    number = edges.number_of(("a", "One"))
    assert number is not None
    states[number] = STATES.index("unhealthy")
    found = parse_filter("status:unhealthy env").matching(edges, sight, states)
    assert list(found) == [number]
    assert not parse_filter("status:away").matching(edges, sight, states)


def test_nothing_typed_chooses_everybody() -> None:
    assert parse_filter(None) == parse_filter("") == parse_filter("  \n") == Filter()


def test_so_many_words_may_be_typed_and_not_one_more() -> None:
    assert len(parse_filter("a " * MAX_WORDS).words) == MAX_WORDS
    assert len(parse_filter("a" * MAX_FILTER_LENGTH).words) == 1
    with pytest.raises(BadRequest, match=f"at most {MAX_WORDS} words, found {MAX_WORDS + 1}"):
        parse_filter("a " * (MAX_WORDS + 1))
    with pytest.raises(BadRequest, match=f"found {MAX_FILTER_LENGTH + 1}"):
        parse_filter("a" * (MAX_FILTER_LENGTH + 1))


@pytest.mark.parametrize(
    "word", ["placement:/web", "placement:w/", "placement:", "status:", "reason:"]
)
def test_half_a_word_is_none(word: str) -> None:
    with pytest.raises(BadRequest):
        parse_filter(word)


@given(st.text(max_size=60))
def test_whatever_is_typed_is_understood_or_refused_and_shows_nothing_hidden(text: str) -> None:
    edges = index()
    seen = BitMap([next(iter(edges.present))])
    try:
        found = parse_filter(text).matching(edges, Sight(seen, lambda _: True, lambda path: path))
    except BadRequest:
        return
    assert found <= seen
