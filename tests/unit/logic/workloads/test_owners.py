"""Adoption and release by controller references."""

from __future__ import annotations

from skerry.api.kinds import GroupVersionResource
from skerry.logic.machinery.plan import Patch
from skerry.logic.machinery.selectors import Selector
from skerry.logic.workloads.owners import (
    TargetOf,
    claim,
    claim_actions,
    controller_uid,
    oldest_first,
    owner_reference,
)
from tests.kit.workload_parts import owner, pod


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
