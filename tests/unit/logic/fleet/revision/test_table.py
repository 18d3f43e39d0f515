"""Manifests are found by number, contents while there is room."""

from __future__ import annotations

from skerry.api.edge import edge_placement_ref
from skerry.logic.fleet.revision.table import Contents, RevisionTable
from tests.kit.chain.revisions import manifest, pages

WEB = edge_placement_ref("c", "web")


def test_a_revision_is_there_when_all_its_pages_are_and_gone_with_the_first_that_goes() -> None:
    table = RevisionTable()
    assert table.manifest(WEB, 1) is None
    [page] = pages(manifest({"a": b"1"}), 1)
    assert table.put("c", page) == (WEB, 1)
    assert table.manifest(WEB, 1) == manifest({"a": b"1"})
    assert (list(table), table.pages(WEB)) == ([WEB], [page])
    assert table.manifest(edge_placement_ref("d", "web"), 1) is None
    assert table.drop("c", "web-1") == (WEB, 1)
    assert table.manifest(WEB, 1) is None
    assert table.drop("c", "web-1") is None
    assert list(table) == []


def test_contents_used_last_stay() -> None:
    kept: Contents[str, str] = Contents(limit=10)
    kept.put("a", "A", 6)
    kept.put("b", "B", 4)
    assert kept.get("a") == "A"
    kept.put("c", "C", 4)
    assert (kept.get("a"), kept.get("b"), kept.get("c")) == ("A", None, "C")
    kept.put("c", "D", 40)
    assert (kept.get("a"), kept.get("c")) == (None, "D")


def test_what_is_absent_is_news_once_until_it_is_there() -> None:
    kept: Contents[str, str] = Contents()
    assert kept.note_absent("a")
    assert not kept.note_absent("a")
    assert kept.is_absent("a")
    kept.put("a", "A", 1)
    assert not kept.is_absent("a")
