"""Owners, conditions, revisions, histories and the rest of what controllers stand on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.controllers.workload.deployment.status import with_condition
from skerry.logic.machinery.plan import Create, Delete, Patch
from skerry.logic.machinery.selectors import Selector
from skerry.logic.workloads.history import REVISION_LABEL, forgotten, revised
from skerry.logic.workloads.indexes import format_indexes, parse_indexes
from skerry.logic.workloads.nodes import selects
from skerry.logic.workloads.owners import (
    TargetOf,
    claim,
    claim_actions,
    controller_uid,
    oldest_first,
    owner_reference,
)
from skerry.logic.workloads.pods import (
    deletion_order,
    is_available,
    pod_from_template,
    seconds_until_available,
)
from skerry.logic.workloads.revisions import (
    REVISION,
    REVISION_HISTORY,
    content_hash,
    inherited_annotations,
    revision_of,
    same_template,
    with_revision,
)

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def owner(uid: str = "u1", **metadata: Any) -> Object:
    return {
        "metadata": {"name": "owner", "namespace": "ns", "uid": uid, **metadata},
        "spec": {"template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": []}}},
    }


def pod(name: str, owned_by: str = "", labels: Object | None = None, **metadata: Any) -> Object:
    found: Object = {"name": name, "namespace": "ns", "uid": f"uid-{name}", **metadata}
    found["labels"] = {"a": "b"} if labels is None else labels
    if owned_by:
        found["ownerReferences"] = [{"uid": owned_by, "controller": True, "kind": "X", "name": "x"}]
    return {"metadata": found, "spec": {}, "status": {}}


class TestClaims:
    selector = Selector.from_labels({"a": "b"})

    def test_own_objects_that_match_are_kept_and_others_let_go(self) -> None:
        mine, strayed = pod("mine", "u1"), pod("strayed", "u1", labels={})
        theirs = pod("theirs", "u2")
        claimed = claim(owner(), self.selector, [mine, strayed, theirs])
        assert claimed.owned == (mine,)
        assert claimed.released == (strayed,)
        assert claimed.adopted == ()

    def test_a_matching_orphan_is_adopted_unless_either_is_being_deleted(self) -> None:
        orphan, going = pod("orphan"), pod("going", deletionTimestamp="now")
        assert claim(owner(), self.selector, [orphan, going]).adopted == (orphan,)
        deleted = owner(deletionTimestamp="now")
        assert claim(deleted, self.selector, [orphan]).adopted == ()

    def test_taking_up_and_letting_go_insist_on_the_very_object(self) -> None:
        claimed = claim(owner(), self.selector, [pod("orphan"), pod("strayed", "u1", labels={})])
        reference = owner_reference(owner(), "apps/v1", "ReplicaSet")
        gvr = GroupVersionResource("", "v1", "pods")
        adopt, release = claim_actions(claimed, reference, TargetOf(gvr))
        assert isinstance(adopt, Patch)
        assert isinstance(release, Patch)
        assert adopt.patch["metadata"]["uid"] == "uid-orphan"
        assert adopt.patch["metadata"]["ownerReferences"] == [reference]
        assert release.patch["metadata"]["ownerReferences"] == [{"$patch": "delete", "uid": "u1"}]

    def test_only_the_controlling_owner_counts(self) -> None:
        obj = pod("p")
        obj["metadata"]["ownerReferences"] = [{"uid": "u1", "kind": "X", "name": "x"}]
        assert controller_uid(obj) == ""

    def test_age_then_name_orders(self) -> None:
        one = pod("b", creationTimestamp="2026-01-01T00:00:00Z")
        two = pod("a", creationTimestamp="2026-01-02T00:00:00Z")
        three = pod("a0", creationTimestamp="2026-01-01T00:00:00Z")
        assert oldest_first([two, one, three]) == [three, one, two]


class TestPods:
    def ready(self, since: str, status: str = "True") -> Object:
        found = pod("p")
        found["status"]["conditions"] = [
            {"type": "Ready", "status": status, "lastTransitionTime": since}
        ]
        return found

    def test_a_pod_is_available_once_it_was_ready_for_long_enough(self) -> None:
        young = self.ready("2026-01-01T11:59:55Z")
        assert not is_available(young, 10, NOW)
        assert seconds_until_available(young, 10, NOW) == 5
        assert is_available(young, 10, NOW + timedelta(seconds=5))
        assert is_available(young, 0, NOW)
        assert seconds_until_available(self.ready("x", "False"), 10, NOW) is None

    def test_those_missed_least_go_first(self) -> None:
        def made(name: str, node: str, phase: str, ready: bool, cost: str = "0") -> Object:
            found = self.ready("2026-01-01T00:00:00Z", "True" if ready else "False")
            found["metadata"] |= {"name": name, "annotations": {}}
            found["metadata"]["annotations"]["controller.kubernetes.io/pod-deletion-cost"] = cost
            found["spec"]["nodeName"] = node
            found["status"]["phase"] = phase
            return found

        pods = [
            made("serving", "n1", "Running", True),
            made("dear", "n1", "Running", True, cost="100"),
            made("unready", "n1", "Running", False),
            made("pending", "n1", "Pending", False),
            made("homeless", "", "Pending", False),
        ]
        names = [item["metadata"]["name"] for item in deletion_order(pods)]
        assert names == ["homeless", "pending", "unready", "serving", "dear"]

    def test_a_pod_from_a_template_has_its_labels_and_its_owner(self) -> None:
        template = {"metadata": {"labels": {"x": "y"}, "name": "no"}, "spec": {"containers": []}}
        made = pod_from_template(template, "ns", "web-1", {"uid": "u1"})
        assert made["metadata"]["name"] == "web-1"
        assert made["metadata"]["labels"] == {"x": "y"}
        assert made["metadata"]["ownerReferences"] == [{"uid": "u1"}]


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
        assert content_hash(content, collisions) != content_hash(content)
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


class TestHistory:
    def test_a_new_template_is_a_new_highest_revision(self) -> None:
        first = revised(owner(), "DaemonSet", [])
        (creation,) = first.actions
        assert isinstance(creation, Create)
        assert creation.object["revision"] == 1
        assert creation.object["metadata"]["labels"][REVISION_LABEL] == first.hash
        assert revised(owner(), "DaemonSet", [creation.object]).actions == ()

    def test_going_back_gives_the_old_revision_a_new_number(self) -> None:
        (creation,) = revised(owner(), "DaemonSet", []).actions
        assert isinstance(creation, Create)
        old = {**creation.object, "metadata": {**creation.object["metadata"], "uid": "r1"}}
        newer = {**old, "revision": 2, "data": {}, "metadata": {**old["metadata"], "name": "n"}}
        (patch,) = revised(owner(), "DaemonSet", [old, newer]).actions
        assert isinstance(patch, Patch)
        assert patch.patch["revision"] == 3

    def test_unused_revisions_beyond_the_limit_are_forgotten_oldest_first(self) -> None:
        revisions = [
            {
                "metadata": {
                    "name": f"r{n}",
                    "namespace": "ns",
                    "uid": f"u{n}",
                    "labels": {REVISION_LABEL: str(n)},
                },
                "revision": n,
            }
            for n in range(5)
        ]
        gone = forgotten(revisions, {"0", "4"}, 1)
        assert [action.uid for action in gone if isinstance(action, Delete)] == ["u1", "u2"]


class TestNodes:
    node: Object = {  # noqa: RUF012 - read only
        "metadata": {"name": "n1", "labels": {"zone": "a"}},
        "spec": {},
    }

    def affine(self, *terms: Object) -> Object:
        required = {"nodeSelectorTerms": list(terms)}
        key = "requiredDuringSchedulingIgnoredDuringExecution"
        return {"affinity": {"nodeAffinity": {key: required}}}

    def test_selector_and_affinity_choose_nodes(self) -> None:
        assert selects({}, self.node)
        assert selects({"nodeSelector": {"zone": "a"}}, self.node)
        assert not selects({"nodeSelector": {"zone": "b"}}, self.node)
        assert not selects({"nodeName": "n2"}, self.node)
        by_name = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
        assert selects(self.affine({"matchFields": [by_name]}), self.node)
        by_zone = {"key": "zone", "operator": "NotIn", "values": ["a"]}
        assert not selects(self.affine({"matchExpressions": [by_zone]}), self.node)
        assert not selects(self.affine({}), self.node), "an empty term allows nothing"


@given(st.sets(st.integers(0, 60)))
def test_indexes_are_read_back_as_they_were(indexes: set[int]) -> None:
    assert parse_indexes(format_indexes(indexes)) == indexes


def test_runs_of_indexes_are_written_as_ranges() -> None:
    assert format_indexes([1, 2, 3, 5, 6, 9]) == "1-3,5,6,9"
