"""Plans of volumes: applying one reaches the goal, and a second plan is empty."""

from __future__ import annotations

from typing import Any

from skerry.api.objects import Object
from skerry.controllers.workload.volume import decide as volume
from skerry.controllers.workload.volume.observe import ObservedClaim, ObservedVolume
from skerry.logic.machinery.plan import Delete, Update


class TestVolumes:
    claim: Object = {  # noqa: RUF012 - read only
        "metadata": {"name": "data", "namespace": "ns", "uid": "c1"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "",
            "resources": {"requests": {"storage": "5Mi"}},
        },
    }

    def volume(self, name: str, size: str, **spec: Any) -> Object:
        offered = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], **spec}
        return {"metadata": {"name": name, "uid": name}, "spec": offered}

    def test_a_volume_reserved_for_the_claim_comes_before_any_other(self) -> None:
        mine = self.volume("mine", "1Gi", claimRef={"name": "data", "namespace": "ns"})
        free = self.volume("free", "5Mi")
        assert volume.best_volume(self.claim, (free, mine)) == mine

    def test_a_volume_of_another_claim_of_the_same_name_is_not_taken(self) -> None:
        other = {"name": "data", "namespace": "ns", "uid": "former"}
        assert volume.best_volume(self.claim, (self.volume("v", "1Gi", claimRef=other),)) is None

    def test_a_released_volume_is_deleted_only_when_its_policy_and_maker_say_so(self) -> None:
        gone = {"name": "data", "namespace": "ns", "uid": "former"}
        found = self.volume("v", "1Gi", claimRef=gone, persistentVolumeReclaimPolicy="Delete")
        (action,) = volume.decide(ObservedVolume(found, None, "/r"))
        assert isinstance(action, Update), "somebody else made it; it is only released"
        found["metadata"]["annotations"] = {volume.PROVISIONED_BY: volume.PROVISIONER}
        (action,) = volume.decide(ObservedVolume(found, None, "/r"))
        assert isinstance(action, Update), "it is protected until it says that it is released"
        (action,) = volume.decide(ObservedVolume(action.object, None, "/r"))
        assert isinstance(action, Delete)
        assert action.uid == "v"

    def test_a_claim_of_an_unknown_class_waits(self) -> None:
        claim = {**self.claim, "spec": {**self.claim["spec"], "storageClassName": "fast"}}
        assert not volume.decide(ObservedClaim(claim, (), (volume.standard_class(),), "/r"))

    def test_a_class_of_somebody_else_is_asked_once_for_a_volume(self) -> None:
        claim = {**self.claim, "spec": {**self.claim["spec"], "storageClassName": "fast"}}
        fast = {"metadata": {"name": "fast"}, "provisioner": "disks.example.com"}
        plan = volume.decide(ObservedClaim(claim, (), (fast,), "/r"))
        (action,) = plan
        assert isinstance(action, Update)
        asked = action.object["metadata"]["annotations"]
        assert asked["volume.kubernetes.io/storage-provisioner"] == "disks.example.com"
        assert [each.reason for each in plan.announcements] == ["ExternalProvisioning"]
        assert not volume.decide(ObservedClaim(action.object, (), (fast,), "/r"))
        nobody = {**fast, "provisioner": "kubernetes.io/no-provisioner"}
        assert not volume.decide(ObservedClaim(claim, (), (nobody,), "/r"))

    def test_where_no_volumes_are_made_ours_is_somebody_elses_too(self) -> None:
        claim = {**self.claim, "spec": {**self.claim["spec"], "storageClassName": "standard"}}
        plan = volume.decide(ObservedClaim(claim, (), (volume.standard_class(),), ""))
        assert [each.reason for each in plan.announcements] == ["ExternalProvisioning"]

    def test_a_bound_claim_whose_volume_is_gone_is_lost_and_an_unbound_one_waits(self) -> None:
        spec = {**self.claim["spec"], "volumeName": "gone"}
        waiting = {**self.claim, "spec": spec}
        assert not volume.decide(ObservedClaim(waiting, (), (), "/r"))
        done = {"pv.kubernetes.io/bind-completed": "yes"}
        metadata = {**self.claim["metadata"], "annotations": done}
        plan = volume.decide(ObservedClaim({**waiting, "metadata": metadata}, (), (), "/r"))
        (action,) = plan
        assert isinstance(action, Update)
        assert action.object["status"]["phase"] == "Lost"
        assert not volume.decide(ObservedClaim(action.object, (), (), "/r"))
