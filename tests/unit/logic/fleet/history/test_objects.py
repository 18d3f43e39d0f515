"""Decisions about single objects, and what follows from their records."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.history.fold import folded, timeline
from skerry.logic.fleet.history.objects import (
    Because,
    Sent,
    Withheld,
    object_decisions,
    withheld_in,
)
from skerry.logic.fleet.history.record import Maker, Subject, records_of
from skerry.logic.fleet.history.text import why

NOW = datetime(2026, 9, 1, tzinfo=UTC)
PAGE = ObjectRef("c", "", "configmaps", "shop", "page")
BECAUSE = Because("KindWithheld", "roles shop/a is withheld", 3)
KEYS = st.tuples(st.just("g"), st.just("roles"), st.just("shop"), st.sampled_from("abcd"))
WITHHELD = st.dictionaries(KEYS, st.just(BECAUSE))


def recorded(before: Withheld, now: Withheld, sent: Sent | None = None) -> list[Object]:
    changed = {} if sent is None else {PAGE: sent}
    found = object_decisions("c", before, now, changed, 7)
    maker = Maker("placement-translator")
    return records_of(found, Subject("web", "u"), maker, follows=5, head=None, now=NOW)


@given(st.lists(WITHHELD, max_size=5))
def test_records_add_up_to_what_is_withheld(states: list[dict[tuple[str, ...], Because]]) -> None:
    records: list[Object] = []
    before: Withheld = {}
    for now in states:
        records += recorded(before, now)  # type: ignore[arg-type]
        before = now  # type: ignore[assignment]
        assert withheld_in(records) == before


def test_of_a_change_there_are_both_digests_and_everybody() -> None:
    [record] = recorded({}, {}, Sent("aa", "bb", "9", "kubectl"))
    assert (record["object"]["from"], record["object"]["to"]) == ("aa", "bb")
    assert record["destinations"] == {"count": 7, "all": True}
    assert record["cause"]["manager"] == "kubectl"
    assert why(record) == "configmaps shop/page: changed"
    # It is no revision of any destination.
    assert not folded(timeline([record]), 1).standings


def test_what_came_back_to_what_it_was_is_nothing() -> None:
    assert recorded({}, {}, Sent("aa", "aa")) == []


def test_additions_and_removals_are_said_to_be_that() -> None:
    [added], [removed] = recorded({}, {}, Sent("", "bb")), recorded({}, {}, Sent("aa", ""))
    assert added["reason"]["code"] == "ObjectAdded"
    assert removed["reason"]["code"] == "ObjectRemoved"


def test_a_sentence_that_names_the_object_names_it_once() -> None:
    key = ("rbac.authorization.k8s.io", "roles", "shop", "a")
    [record] = recorded({}, {key: BECAUSE})
    assert why(record) == "roles shop/a is withheld"
    assert record["destinations"]["count"] == 3
