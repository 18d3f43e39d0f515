"""What is written comes back, in however many pages, or counts as missing."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.edge import CUT_SEQUENCE, PIN
from skerry.api.kcp.revisions import MAX_CAUSES, MAX_ITEMS
from skerry.api.objects import Object
from skerry.logic.fleet.revision.manifest import Inputs, Manifest, RevisionItem
from skerry.logic.fleet.revision.objects import (
    Cut,
    RevisionPage,
    content_object,
    cut_annotations,
    latest,
    manifest_of,
    read_page,
    revision_name,
    revision_objects,
)
from tests.kit.chain import revisions
from tests.kit.chain.revisions import OWNER, caused, item, manifest, pages, ref, stored

_TWO_PAGES = Manifest((item(f"c{n:04}") for n in range(MAX_ITEMS + 1)), Inputs("w"))
_items = st.builds(
    RevisionItem,
    st.sampled_from([ref("a"), ref("b", ""), ref("c")._replace(group="apps", resource="things")]),
    st.sampled_from(["d1", "d2"]),
    st.sampled_from(["", "7"]),
    st.integers(0, 9),
    st.integers(0, 3),
    st.sampled_from(["", "v1"]),
    st.booleans(),
)


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


# -- what is written of each page ----------------------------------------------------------------


@given(st.lists(_items, max_size=5, unique_by=lambda each: each.item))
def test_all_that_a_rollout_has_to_know_of_an_object_comes_back(items: list[RevisionItem]) -> None:
    [page] = pages(Manifest(items, Inputs("w")), 1)

    assert page.items == tuple(sorted(items))


@given(st.lists(_items, max_size=5, unique_by=lambda each: each.item), st.randoms())
def test_the_order_in_which_objects_were_found_is_no_part_of_a_revision(
    items: list[RevisionItem], shuffling: random.Random
) -> None:
    shuffled = list(items)
    shuffling.shuffle(shuffled)

    one, other = (Manifest(each, Inputs("w")) for each in (items, shuffled))

    assert one == other
    assert revision_objects(OWNER, one, Cut(1, 1)) == revision_objects(OWNER, other, Cut(1, 1))


def test_what_says_nothing_of_an_object_is_left_out() -> None:
    [obj] = revision_objects(OWNER, Manifest([item("a")], Inputs("w")), Cut(1, 1))

    [entry] = obj["spec"]["items"]
    assert not {"generation", "storageVersion", "noRollback"} & entry.keys()
    assert "causes" not in obj["spec"]
    assert "customizers" not in obj["spec"]["inputs"]


@pytest.mark.parametrize(("count", "objects"), [(0, 1), (1, 1), (MAX_ITEMS, 1), (MAX_ITEMS + 1, 2)])
def test_a_revision_has_as_many_pages_as_its_objects_need_and_at_least_one(
    count: int, objects: int
) -> None:
    found = Manifest((item(f"c{n:04}") for n in range(count)), Inputs("w"))

    written = revision_objects(OWNER, found, Cut(1, 1))

    assert [each["spec"]["page"] for each in written] == [
        {"number": number, "of": objects} for number in range(objects, 0, -1)
    ]


def test_only_the_first_page_says_how_the_revision_came_about() -> None:
    named = Manifest(_TWO_PAGES.items, manifest({}, customizer=b"c").inputs)
    second, first = revision_objects(OWNER, named, Cut(41, 5, (caused("a"),), "friday"))

    assert first["metadata"]["annotations"] == cut_annotations(5, "friday")
    assert len(first["spec"]["causes"]) == 1
    assert first["spec"]["inputs"]["customizers"]
    assert "annotations" not in second["metadata"]
    assert "causes" not in second["spec"]
    assert second["spec"]["inputs"] == {"what": "77"}
    read = manifest_of(read_page(stored(each)) for each in (second, first))
    assert read is not None
    assert read.inputs == named.inputs


@pytest.mark.parametrize(("count", "omitted"), [(MAX_CAUSES, None), (MAX_CAUSES + 1, 1)])
def test_causes_are_counted_as_omitted_only_where_some_are(count: int, omitted: int | None) -> None:
    causes = tuple(caused(f"c{n}") for n in range(count))

    [obj] = revision_objects(OWNER, manifest({}), Cut(1, 1, causes))

    assert len(obj["spec"]["causes"]) == MAX_CAUSES
    assert obj["spec"].get("causesOmitted") == omitted


def test_a_cut_nobody_asked_for_has_no_name() -> None:
    assert cut_annotations(3) == {CUT_SEQUENCE: "3"}
    assert set(cut_annotations(3, "friday").values()) == {"3", "friday"}


# -- what is read of objects that others may have touched ----------------------------------------


@pytest.mark.parametrize(
    ("text", "sequence"),
    [
        ("7", 7),
        ("007", 7),
        ("9" * 18, int("9" * 18)),
        ("", 0),
        ("-1", 0),
        ("1.5", 0),
        ("seven", 0),
        ("\u0667", 0),
        ("9" * 19, 0),
    ],
    ids=["number", "zeros", "large", "none", "sign", "fraction", "word", "foreign", "endless"],
)
def test_a_sequence_that_is_no_number_counts_as_none(text: str, sequence: int) -> None:
    [obj] = revision_objects(OWNER, manifest({}), Cut(1, 1))
    obj["metadata"]["annotations"][CUT_SEQUENCE] = text

    assert read_page(stored(obj)).sequence == sequence


def test_a_page_of_an_older_version_is_read_as_the_only_one_of_an_empty_revision() -> None:
    obj: Object = {
        "metadata": {"name": "web-1"},
        "spec": {"placement": "web", "number": 1, "digest": "d"},
    }

    assert read_page(obj) == RevisionPage("web-1", "", "web", 1, "d", 1, 1)


def test_nulls_are_read_as_what_is_not_there() -> None:
    nothing: dict[str, Any] = {"items": None, "page": None, "inputs": {"customizers": None}}
    obj: Object = {
        "metadata": {"name": "web-1", "annotations": None},
        "spec": {"placement": "web", "number": 1, "digest": "d", **nothing},
        "status": None,
    }

    assert read_page(obj) == RevisionPage("web-1", "", "web", 1, "d", 1, 1)


@pytest.mark.parametrize("value", ["false", "True", "yes", ""])
def test_only_the_word_true_pins_a_revision(value: str) -> None:
    [obj] = revision_objects(OWNER, manifest({}), Cut(1, 1))
    obj["metadata"]["annotations"][PIN] = value

    assert not read_page(stored(obj)).pinned


# -- revisions whose pages do not fit together ---------------------------------------------------


def test_pages_of_which_one_names_another_digest_are_no_revision() -> None:
    second, first = pages(_TWO_PAGES, 1)

    assert manifest_of([first, second]) == _TWO_PAGES
    assert manifest_of([first, second._replace(digest="other")]) is None
    assert manifest_of([first._replace(digest="other"), second]) is None


def test_pages_that_agree_on_a_digest_that_is_not_theirs_are_no_revision() -> None:
    forged = [each._replace(digest="other") for each in pages(_TWO_PAGES, 1)]

    assert manifest_of(forged) is None


def test_a_page_too_many_is_as_bad_as_one_too_few() -> None:
    [only] = pages(manifest({"a": b"1"}), 1)

    assert manifest_of([only]) is not None
    assert manifest_of([only, only._replace(page=2, items=())]) is None
    assert manifest_of([]) is None


def test_of_revisions_cut_at_once_the_higher_number_is_the_latest_and_further_pages_never() -> None:
    [one], [two] = pages(manifest({"a": b"1"}), 1, 3), pages(manifest({"a": b"2"}), 2, 3)

    assert latest([one, two]) == latest([two, one]) == two
    assert latest([one, two._replace(page=2, sequence=9)]) == one


def test_a_page_of_two_billion_is_no_revision_and_takes_no_time() -> None:
    [page] = pages(manifest({"a": b"a"}), 1)
    assert manifest_of([page]) is not None
    assert manifest_of([page._replace(pages=2**31 - 1)]) is None
    assert manifest_of([page, page._replace(page=2**31 - 1, pages=2)]) is None
