"""Revisions of templates: names, numbers, equality."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from skerry.controllers.workload.deployment.status import with_condition
from skerry.logic.workloads.indexes import format_indexes, parse_indexes
from skerry.logic.workloads.revisions import (
    REVISION,
    REVISION_HISTORY,
    content_hash,
    inherited_annotations,
    revision_of,
    same_template,
    with_revision,
)
from tests.kit.workload_parts import NOW


class TestConditions:
    def test_the_time_changes_only_with_the_status(self) -> None:
        first = with_condition([], "Ready", "True", "Good", "", NOW)
        later = NOW + timedelta(hours=1)
        same = with_condition(first, "Ready", "True", "Good", "", later)
        assert same == first
        other = with_condition(first, "Ready", "True", "Better", "", later)
        assert other[0]["lastTransitionTime"] == first[0]["lastTransitionTime"]
        worse = with_condition(first, "Ready", "False", "Bad", "", later)
        assert worse[0]["lastTransitionTime"] != first[0]["lastTransitionTime"]


class TestRevisions:
    def test_the_hash_label_does_not_make_templates_differ(self) -> None:
        one = {"metadata": {"labels": {"a": "b"}}, "spec": {}}
        two = {"metadata": {"labels": {"a": "b", "pod-template-hash": "x"}}, "spec": {}}
        assert same_template(one, two)
        assert not same_template(one, {"metadata": {"labels": {"a": "c"}}, "spec": {}})

    @given(st.dictionaries(st.text(), st.integers()), st.integers(0, 3))
    def test_a_hash_names_content_whatever_the_order(
        self, content: dict[str, int], collisions: int
    ) -> None:
        backwards = dict(reversed(content.items()))
        assert content_hash(content) == content_hash(backwards)
        assert (content_hash(content, collisions) == content_hash(content)) == (not collisions)
        assert len(content_hash(content)) == 10

    def test_a_number_given_up_becomes_history(self) -> None:
        annotations = with_revision({REVISION: "2"}, 5)
        assert annotations == {REVISION: "5", REVISION_HISTORY: "2"}
        again = with_revision(annotations, 7)
        assert again[REVISION_HISTORY] == "2,5"
        assert with_revision(again, 6) == again
        assert revision_of({"metadata": {"annotations": again}}) == 7

    def test_bookkeeping_is_not_inherited(self) -> None:
        annotations = {REVISION: "1", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
        found = inherited_annotations({"metadata": {"annotations": {**annotations, "mine": "1"}}})
        assert found == {"mine": "1"}


@given(st.sets(st.integers(0, 60)))
def test_indexes_are_read_back_as_they_were(indexes: set[int]) -> None:
    assert parse_indexes(format_indexes(indexes)) == indexes


def test_runs_of_indexes_are_written_as_ranges() -> None:
    assert format_indexes([1, 2, 3, 5, 6, 9]) == "1-3,5,6,9"
