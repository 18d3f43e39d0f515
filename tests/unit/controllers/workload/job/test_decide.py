"""Plans of Jobs: applying one reaches the goal, and a second plan is empty."""

from __future__ import annotations

from typing import Any

from skerry.api.objects import Object
from skerry.controllers.workload.job import decide as job
from skerry.controllers.workload.job.observe import Observed as ObservedJob
from skerry.logic.machinery.plan import Update
from skerry.runtime.index import Key
from tests.kit.workload_objects import LABELS, NOW, owner, suffixes


class TestJob:
    def observed(self, found: Object, *pods: Object) -> ObservedJob:
        return ObservedJob(Key("", "ns", "j"), found, pods, suffixes())

    def job(self, **spec: Any) -> Object:
        found = owner("j", **spec)
        found["metadata"] |= {"uid": "u", "resourceVersion": "1"}
        return found

    def pod(self, name: str, phase: str, *, tracked: bool = True) -> Object:
        metadata: Object = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "labels": LABELS}
        metadata["ownerReferences"] = [{"uid": "u", "controller": True, "kind": "Job", "name": "j"}]
        if tracked:
            metadata["finalizers"] = [job.FINALIZER]
        return {"metadata": metadata, "spec": {"nodeName": "n"}, "status": {"phase": phase}}

    def test_an_end_stands_in_the_status_before_its_pod_is_let_go(self) -> None:
        plan = job.decide(self.observed(self.job(completions=2), self.pod("a", "Succeeded")), NOW)
        kinds = [type(action).__name__ for action in plan]
        assert kinds[0] == "Update"
        assert kinds.index("Patch") > 0
        (update,) = [action for action in plan if isinstance(action, Update)]
        status = update.object["status"]
        assert status["uncountedTerminatedPods"] == {"succeeded": ["uid-a"]}
        assert "succeeded" not in status

    def test_an_end_is_counted_once_its_pod_was_let_go(self) -> None:
        found = self.job(completions=2)
        found["status"] = {"uncountedTerminatedPods": {"succeeded": ["uid-a"]}}
        plan = job.decide(self.observed(found, self.pod("a", "Succeeded", tracked=False)), NOW)
        (update,) = [action for action in plan if isinstance(action, Update)]
        assert update.object["status"]["succeeded"] == 1
        assert update.object["status"]["uncountedTerminatedPods"] == {}

    def test_pods_of_a_job_that_is_gone_are_let_go(self) -> None:
        plan = job.decide(ObservedJob(Key("", "ns", "j"), None, (self.pod("a", "Running"),)), NOW)
        assert [action.reason for action in plan] == ["EndCounted"]

    def test_a_job_somebody_else_runs_is_left_alone(self) -> None:
        assert not job.decide(self.observed(self.job(managedBy="example.com/other")), NOW)
