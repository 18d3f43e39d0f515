"""Plans of Jobs: applying one reaches the goal, and a second plan is empty."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.objects import Object
from skerry.controllers.workload.job import decide as job
from skerry.controllers.workload.job.observe import Observed as ObservedJob
from skerry.logic.machinery.patch import apply_strategic_patch
from skerry.logic.machinery.plan import Create, Delete, Patch, Update
from skerry.runtime.index import Key
from tests.kit.machinery.kinds import pod_schema
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

    @pytest.mark.parametrize("others", [[], ["example.com/keep"], ["x/a", "x/b"]])
    def test_a_pod_is_let_go_by_the_finalizer_of_the_job_alone(self, others: list[str]) -> None:
        """Whatever others put on or take off after we last saw the pod stays so."""
        seen = self.pod("a", "Running")
        plan = job.decide(ObservedJob(Key("", "ns", "j"), None, (seen,)), NOW)
        (action,) = plan
        assert isinstance(action, Patch)
        assert action.kind == "strategic"
        now = self.pod("a", "Running")
        now["metadata"]["finalizers"] = [*others, job.FINALIZER]
        found = apply_strategic_patch(now, action.patch, pod_schema())
        assert (found["metadata"].get("finalizers") or []) == others
        assert {**found["metadata"], "finalizers": 0} == {**now["metadata"], "finalizers": 0}

    def test_a_job_somebody_else_runs_is_left_alone(self) -> None:
        assert not job.decide(self.observed(self.job(managedBy="example.com/other")), NOW)

    def status(self, found: Object, *pods: Object) -> Object:
        """Return the status that one decision writes."""
        plan = job.decide(self.observed(found, *pods), NOW)
        (update,) = [action for action in plan if isinstance(action, Update)]
        return dict(update.object["status"])

    def indexed(self, name: str, phase: str, index: int, failures: int = 0) -> Object:
        pod = self.pod(name, phase)
        pod["metadata"]["annotations"] = {
            "batch.kubernetes.io/job-completion-index": str(index),
            "batch.kubernetes.io/job-index-failure-count": str(failures),
        }
        exited = {"exitCode": 1 if phase == "Failed" else 0}
        pod["status"]["containerStatuses"] = [{"name": "c", "state": {"terminated": exited}}]
        return pod

    def test_a_success_policy_ends_a_job_before_all_indexes_are_done(self) -> None:
        rules = {"rules": [{"succeededIndexes": "0"}]}
        found = self.job(
            completions=5, parallelism=2, completionMode="Indexed", successPolicy=rules
        )
        running = self.indexed("b", "Running", 1)
        plan = job.decide(self.observed(found, self.indexed("a", "Succeeded", 0), running), NOW)
        (update,) = [action for action in plan if isinstance(action, Update)]
        (condition,) = update.object["status"]["conditions"]
        assert (condition["type"], condition["reason"]) == ("SuccessCriteriaMet", "SuccessPolicy")
        assert [a.target.name for a in plan if isinstance(a, Delete)] == ["b"]
        found["status"] = {**update.object["status"], "uncountedTerminatedPods": {}}
        (_, over) = self.status(found, self.pod("a", "Succeeded", tracked=False))["conditions"]
        assert (over["type"], over["reason"]) == ("Complete", "SuccessPolicy")

    def test_a_failure_policy_ends_a_job_at_once_or_lets_a_failure_pass(self) -> None:
        codes = {"operator": "In", "values": [1]}
        for action, kind in (("FailJob", "FailureTarget"), ("Ignore", None)):
            rule = {"action": action, "onExitCodes": codes}
            found = self.job(backoffLimit=0, podFailurePolicy={"rules": [rule]})
            status = self.status(found, self.indexed("a", "Failed", 0))
            conditions = [(c["type"], c["reason"]) for c in status.get("conditions", ())]
            assert conditions == ([(kind, "PodFailurePolicy")] if kind else [])
            counted = status["uncountedTerminatedPods"]
            assert counted == ({"failed": ["uid-a"]} if kind else {})

    def test_indexes_fail_one_by_one_and_the_others_go_on(self) -> None:
        spec = {"completions": 3, "parallelism": 3, "completionMode": "Indexed"}
        limits = {"backoffLimitPerIndex": 1, "backoffLimit": 9}
        found = self.job(**spec, **limits)
        pods = (self.indexed("a", "Failed", 0, failures=1), self.indexed("b", "Failed", 1))
        plan = job.decide(self.observed(found, *pods), NOW)
        made = {
            (
                notes["batch.kubernetes.io/job-completion-index"],
                notes["batch.kubernetes.io/job-index-failure-count"],
            )
            for action in plan
            if isinstance(action, Create)
            for notes in [action.object["metadata"]["annotations"]]
        }
        assert made == {("1", "1"), ("2", "0")}
        assert self.status(found, *pods)["failedIndexes"] == "0"
        done = self.indexed("b", "Succeeded", 1), self.indexed("c", "Succeeded", 2)
        (condition,) = self.status(found, pods[0], *done)["conditions"]
        assert (condition["type"], condition["reason"]) == ("FailureTarget", "FailedIndexes")
        strict = self.job(**spec, **limits, maxFailedIndexes=0)
        (condition,) = self.status(strict, *pods)["conditions"]
        assert condition["reason"] == "MaxFailedIndexesExceeded"

    def test_pods_that_leave_a_job_are_not_kept_for_it(self) -> None:
        stranger = self.pod("a", "Running")
        stranger["metadata"]["labels"] = {}
        plan = job.decide(self.observed(self.job(suspend=True), stranger), NOW)
        reasons = [action.reason for action in plan if isinstance(action, Patch)]
        assert reasons == ["Released", "EndCounted"]
        orphan = self.pod("b", "Running")
        orphan["metadata"].pop("ownerReferences")
        going = self.job()
        going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        plan = job.decide(self.observed(going, orphan), NOW)
        assert [action.reason for action in plan] == ["EndCounted"]


@pytest.mark.parametrize(("text", "index"), [("7", 7), ("", None), ("x", None), ("²", None)])
def test_a_pod_whose_index_is_no_number_has_none(text: str, index: int | None) -> None:
    annotations = {"batch.kubernetes.io/job-completion-index": text}
    assert job._index_of({"metadata": {"name": "p", "annotations": annotations}}) == index
