"""A manifest stands for what is sent and for nothing else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.fleet.revision.manifest import (
    Inputs,
    Manifest,
    RevisionItem,
    content_digest,
    input_digest,
)
from tests.kit.chain import revisions
from tests.kit.chain.revisions import item, manifest, ref


@given(revisions.contents, revisions.contents)
def test_digests_are_equal_exactly_where_contents_are(
    one: dict[str, bytes], other: dict[str, bytes]
) -> None:
    assert (manifest(one).digest == manifest(other).digest) == (one == other)
    assert (manifest(one) == manifest(other)) == (one == other)


@given(st.permutations([item("a"), item("b"), item("c")]), st.text(max_size=5))
def test_neither_order_nor_version_nor_size_makes_a_difference(
    items: list[RevisionItem], version: str
) -> None:
    again = [each._replace(resource_version=version, size=1, generation=4) for each in items]
    assert Manifest(items, Inputs("w")).digest == Manifest(again, Inputs("w")).digest


def test_customizers_and_what_is_selected_by_are_part_of_it() -> None:
    found = {
        manifest({"a": b"1"}, what, customizer).digest
        for what in ("77", "78")
        for customizer in (b"", b"x", b"y")
    }
    assert len(found) == 6


def test_objects_of_equal_content_have_contents_of_their_own() -> None:
    """What is proved of an object leaves its name and kind out."""
    assert content_digest(ref("a"), b"1") != content_digest(ref("b"), b"1")
    assert content_digest(ref("a", "bc"), b"1") != content_digest(ref("ab", "c"), b"1")
    assert input_digest({"a": 1, "b": 2}) == input_digest({"b": 2, "a": 1})


def test_a_manifest_names_its_contents_and_finds_its_objects() -> None:
    found = manifest({"a": b"1"}, customizer=b"x")
    assert found.names == {each.digest for each in found.by_item.values()}
    assert len(found.names) == 2
    assert found.namespaces == ()
    assert hash(found) == hash(manifest({"a": b"1"}, customizer=b"x"))
