"""Pod and container status, as kubelet writes it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from skerry.api.objects import Object
from skerry.edge.agent.runtime import Exit
from skerry.edge.agent.status import (
    ContainerState,
    Ended,
    PodState,
    Running,
    Waiting,
    pod_phase,
    pod_status,
)
from tests.kit.agent.fixtures import NOW, POD


class TestStatus:
    def state(self, *containers: ContainerState, **more: Any) -> PodState:
        return PodState((), tuple(containers), "172.18.0.2", **more)

    def ended(self, code: int) -> ContainerState:
        return ContainerState("c", "i", Ended(Exit(code, NOW, NOW)))

    def pod(self, policy: str) -> Object:
        return {**POD, "spec": {**POD["spec"], "restartPolicy": policy}}

    @pytest.mark.parametrize(
        ("policy", "codes", "phase"),
        [
            ("Never", [0, 0], "Succeeded"),
            ("Never", [0, 1], "Failed"),
            ("OnFailure", [0, 0], "Succeeded"),
            ("OnFailure", [0, 1], "Running"),
            ("Always", [0, 0], "Running"),
        ],
    )
    def test_the_phase_of_ended_containers_depends_on_the_policy(
        self, policy: str, codes: list[int], phase: str
    ) -> None:
        state = self.state(*(self.ended(code) for code in codes))
        assert pod_phase(self.pod(policy), state) == phase

    def test_a_pod_that_is_over_has_a_final_phase_whatever_its_policy(self) -> None:
        assert pod_phase(self.pod("Always"), self.state(self.ended(0), over=True)) == "Succeeded"
        waiting = ContainerState("c", "i", Waiting("ContainerCreating"))
        assert pod_phase(self.pod("Always"), self.state(waiting, over=True)) == "Failed"

    def test_waiting_for_the_first_start_is_pending_and_for_another_is_running(self) -> None:
        fresh = ContainerState("c", "i", Waiting("ContainerCreating"))
        assert pod_phase(POD, self.state(fresh)) == "Pending"
        again = fresh.but(state=Waiting("CrashLoopBackOff"), last=Ended(Exit(1, NOW, NOW)))
        assert pod_phase(POD, self.state(again)) == "Running"

    def test_conditions_keep_their_times_and_lose_their_reasons(self) -> None:
        unready = ContainerState("c", "i", Running(NOW), started=True)
        first = pod_status(POD, self.state(unready, sandboxed=True), NOW)
        conditions = {c["type"]: c for c in first["conditions"]}
        assert conditions["Ready"]["reason"] == "ContainersNotReady"
        assert conditions["Ready"]["message"] == "containers with unready status: [c]"
        later = NOW + timedelta(minutes=1)
        reported = {**POD, "status": first}
        same = pod_status(reported, self.state(unready, sandboxed=True), later)
        assert same == first
        ready = pod_status(reported, self.state(unready.but(ready=True), sandboxed=True), later)
        conditions = {c["type"]: c for c in ready["conditions"]}
        assert conditions["Ready"]["status"] == "True"
        assert conditions["Ready"]["reason"] is None, "a patch must take the reason away"
        assert conditions["Initialized"]["lastTransitionTime"] == "2026-01-01T12:00:00Z"

    def test_a_readiness_gate_holds_readiness_back(self) -> None:
        pod = {**POD, "spec": {**POD["spec"], "readinessGates": [{"conditionType": "mine"}]}}
        good = ContainerState("c", "i", Running(NOW), ready=True, started=True)
        conditions = pod_status(pod, self.state(good), NOW)["conditions"]
        found = {c["type"]: c["status"] for c in conditions}
        assert (found["Ready"], found["ContainersReady"]) == ("False", "True")

    def test_container_states_are_reported_as_kubelet_reports_them(self) -> None:
        found = pod_status(self.pod("Never"), self.state(self.ended(3)), NOW)
        (status,) = found["containerStatuses"]
        assert status["state"]["terminated"]["exitCode"] == 3
        assert status["state"]["terminated"]["reason"] == "Error"
        assert status["ready"] is False
        assert found["phase"] == "Failed"
