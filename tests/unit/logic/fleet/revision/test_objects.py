"""What is written comes back, in however many pages, or counts as missing."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from skerry.api.edge import PIN
from skerry.api.kcp.revisions import MAX_CAUSES, MAX_ITEMS
from skerry.logic.fleet.revision.manifest import Inputs, Manifest
from skerry.logic.fleet.revision.objects import (
    Cut,
    content_object,
    latest,
    manifest_of,
    read_page,
    revision_name,
    revision_objects,
)
from tests.kit.chain import revisions
from tests.kit.chain.revisions import OWNER, caused, item, manifest, pages, stored


@given(revisions.contents, st.booleans())
def test_a_manifest_comes_back_as_it_was_written(found: dict[str, bytes], custom: bool) -> None:
    written = manifest(found, customizer=b"c" if custom else b"")
    read = manifest_of(pages(written, 41))
    assert read is not None
    assert (read.items, read.inputs) == (written.items, written.inputs)


def test_many_objects_take_pages_and_the_first_is_written_last() -> None:
    large = Manifest((item(f"c{n}") for n in range(2 * MAX_ITEMS + 1)), Inputs("w"))
    objects = revision_objects(OWNER, large, Cut(41, 5, tuple(map(caused, map(str, range(25))))))
    assert [each["metadata"]["name"] for each in objects] == ["web-41.3", "web-41.2", "web-41"]
    assert [len(each["spec"]["items"]) for each in objects] == [1, MAX_ITEMS, MAX_ITEMS]
    assert (len(objects[-1]["spec"]["causes"]), objects[-1]["spec"]["causesOmitted"]) == (20, 5)
    assert MAX_CAUSES == 20
    found = [read_page(stored(each)) for each in objects]
    random.Random(1).shuffle(found)
    read = manifest_of(found)
    assert read is not None
    assert read.digest == large.digest
    for missing in range(3):
        assert manifest_of(found[:missing] + found[missing + 1 :]) is None


def test_what_does_not_add_up_to_its_digest_counts_as_missing() -> None:
    [page] = pages(manifest({"a": b"1"}), 1)
    assert manifest_of([page._replace(items=())]) is None


def test_names_of_pages_are_nobody_elses() -> None:
    assert revision_name("web", 1) == "web-1"
    assert revision_name("web", 41, 2) == "web-41.2"
    assert revision_name("web-41", 2) == "web-41-2"
    names = [revision_name("w" * 253, n, page) for n in (1, 2) for page in (1, 2)]
    assert len(set(names)) == 4
    assert max(map(len, names)) <= 253


def test_the_revision_cut_last_is_the_latest_whatever_its_number() -> None:
    first, second = pages(manifest({"a": b"1"}), 1, 3), pages(manifest({"a": b"2"}), 2, 2)
    found = latest([*first, *second])
    assert found is not None
    assert found.number == 1
    assert latest([]) is None


def test_pins_verdicts_and_cuts_are_read() -> None:
    [obj] = revision_objects(OWNER, manifest({}), Cut(1, 4, name="friday"))
    obj = stored(obj)
    obj["metadata"]["annotations"][PIN] = "true"
    page = read_page({**obj, "status": {"verdict": "Bad"}})
    assert (page.pinned, page.verdict, page.sequence, page.cut) == (True, "Bad", 4, "friday")
    assert obj["metadata"]["ownerReferences"] == [OWNER.reference()]


def test_a_content_is_kept_under_its_digest() -> None:
    assert content_object("ab", {"x": 1}) == {
        "apiVersion": "edge.kcp.io/v1alpha1",
        "kind": "RevisionContent",
        "metadata": {"name": "ab"},
        "content": {"x": 1},
    }
