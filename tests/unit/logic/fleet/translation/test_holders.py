"""Whose the copies of a mailbox are."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.edge import edge_placement_ref
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.translation.holders import Holders, Sent
from skerry.logic.fleet.translation.sources import Record, record_of
from tests.kit.chain.translation_objects import COPY, MAPS, PAGE, thing

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
SPACE = ObjectRef("", "", "namespaces", "", "n")


def _sent(cluster: str, created: str, data: str) -> Sent:
    meta = {"creationTimestamp": created}
    source = thing("page", cluster, "n", data={"k": data}, meta=meta, notes={LAST_APPLIED: data})
    return Sent(cluster, record_of(MAPS, source), [edge_placement_ref(cluster, "p")])


def _copy(data: str, owner: str = "", **more: Any) -> Record:
    notes = {"edge.kcp.io/owner-workspace": owner} if owner else {}
    notes |= more.pop("notes", {})
    made = thing("page", "mb", "n", **{"labels": COPY, **more}, data={"k": data}, notes=notes)
    return record_of(MAPS, made)


OLD, NEW = _sent("one", "1", "a"), _sent("two", "2", "b")


def test_the_copy_says_whose_it_is_and_without_it_the_oldest_object_does() -> None:
    assert Holders(lambda _: _copy("a", "two")).owning(PAGE, [OLD, NEW]) is NEW
    assert Holders(lambda _: _copy("a", "gone")).owning(PAGE, [OLD, NEW]) is OLD
    assert Holders(lambda _: None).owning(PAGE, [NEW, OLD]) is OLD


@pytest.mark.parametrize(
    "found",
    [_copy("a", labels={}), _copy("a", "one", meta={"deletionTimestamp": "now"}), None],
)
def test_what_is_no_copy_or_is_being_deleted_is_nobodys(found: Record | None) -> None:
    holders = Holders(lambda _: found)
    assert holders.copy(PAGE) is None
    assert holders.ungranted(PAGE, [OLD, NEW], [NEW]) is None


def test_a_copy_of_somebody_without_a_grant_is_known_by_its_record_or_its_content() -> None:
    assert Holders(lambda _: _copy("x", "one")).ungranted(PAGE, [OLD, NEW], [NEW]) is OLD
    assert Holders(lambda _: _copy("a", "two")).ungranted(PAGE, [OLD, NEW], [NEW]) is None
    assert Holders(lambda _: _copy("a")).ungranted(PAGE, [OLD, NEW], [NEW]) is OLD
    assert Holders(lambda _: _copy("b")).ungranted(PAGE, [OLD, NEW], [NEW]) is None
    assert Holders(lambda _: _copy("x")).ungranted(PAGE, [OLD, NEW], [NEW]) is None
    # Everybody who sends it may, or it is shared.
    assert Holders(lambda _: _copy("a", "one")).ungranted(PAGE, [OLD], [OLD]) is None
    assert Holders(lambda _: _copy("a", "one")).ungranted(SPACE, [OLD, NEW], [NEW]) is None


def test_notes_of_tools_that_were_copied_once_do_not_hide_whose_content_it_is() -> None:
    old = _copy("a", notes={LAST_APPLIED: "a"})
    assert old.content == OLD.record.digest != old.digest
    assert Holders(lambda _: old).ungranted(PAGE, [OLD, NEW], [NEW]) is OLD
