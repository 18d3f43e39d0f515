"""Readiness, availability and order of pods."""

from __future__ import annotations

from datetime import timedelta

from skerry.api.objects import Object
from skerry.logic.workloads.pods import (
    deletion_order,
    is_available,
    pod_from_template,
    seconds_until_available,
)
from tests.kit.workload_parts import NOW, pod


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
