"""What is read from one copy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from skerry.api.edge import APPLIED, CAUSE, SYNC_ERROR, WITHHELD_FROM, Mailbox
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.summary.health import Health
from skerry.logic.fleet.summary.report import (
    MAX_CONDITIONS,
    MAX_NUMBERS,
    TAKEN,
    Copy,
    Report,
    delivery_of,
    digest_of,
    own_report,
    reference,
    report_of,
)
from skerry.logic.fleet.syncing.delivery import content_mark

Raw = dict[str, Any]
DEPLOYMENT: Raw = {"apiVersion": "apps/v1", "kind": "Deployment"}


def applied(copy: Raw) -> Raw:
    """The copy as the syncer marks it once its content stands at the edge."""
    notes = {**(copy["metadata"].get("annotations") or {}), APPLIED: content_mark(copy)}
    return {**copy, "metadata": {**copy["metadata"], "annotations": notes}}


@pytest.mark.parametrize("generation", [{"generation": 3}, {}])
def test_a_copy_is_delivered_until_its_content_changes(generation: Raw) -> None:
    copy: Raw = {**DEPLOYMENT, "metadata": {"name": "web", **generation}, "data": {"a": "1"}}
    assert not delivery_of(copy).delivered
    marked = applied(copy)
    assert delivery_of(marked).delivered
    if generation:
        changed = {**marked, "metadata": {**marked["metadata"], "generation": 4}}
    else:
        changed = {**marked, "data": {"a": "2"}}
    assert not delivery_of(changed).delivered


def test_a_copy_without_status_waits_for_the_syncer_and_then_for_the_edge() -> None:
    copy: Raw = {**DEPLOYMENT, "metadata": {"name": "web", "generation": 1}}
    assert report_of("apps", "Deployment", copy).health.reason == "NotApplied"
    assert report_of("apps", "Deployment", applied(copy)).health.reason == "NotReported"


def test_what_the_syncer_could_not_apply_is_unhealthy_for_its_reason() -> None:
    notes = {SYNC_ERROR: "Forbidden: pods is forbidden: no quota"}
    copy: Raw = {
        **DEPLOYMENT,
        "metadata": {"name": "web", "generation": 1, "annotations": notes},
        "status": {"replicas": 1, "updatedReplicas": 1, "availableReplicas": 1},
    }
    found = report_of("apps", "Deployment", copy)
    assert (found.health.status, found.health.reason) == ("False", "Forbidden")
    assert found.health.message == "pods is forbidden: no quota"
    assert found.reported
    assert not found.delivered


def test_a_refusal_is_reported_of_kinds_without_status_too() -> None:
    copy: Raw = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "page", "annotations": {SYNC_ERROR: "NotOurs: it was there before"}},
    }
    found = delivery_of(copy)
    assert not found.delivered
    assert found.health == Health("False", "NotOurs", "it was there before")
    assert delivery_of(applied(copy)).health == found.health


def test_what_has_no_effect_at_its_edge_is_reported_and_is_not_ill_for_that() -> None:
    inert = {CAUSE: "NotEnforced: traffic of pods is not filtered"}
    copy: Raw = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "p", "generation": 1, "annotations": inert},
    }
    wanted = Health("Unknown", "NotEnforced", "traffic of pods is not filtered")
    assert delivery_of(applied(copy)) == Report(delivered=True, health=wanted)
    assert report_of("networking.k8s.io", "Ingress", applied(copy)).health == wanted
    assert report_of("networking.k8s.io", "Ingress", copy).health.reason == "NotApplied"
    # A Service that waits for its load balancer does so in vain, and the reason says why.
    pending = applied({**copy, "spec": {"type": "LoadBalancer"}, "status": {"loadBalancer": {}}})
    assert report_of("", "Service", pending).health == replace(wanted, status="False")
    serving = applied({**copy, "spec": {}, "status": {"loadBalancer": {}}})
    assert report_of("", "Service", serving).health == replace(wanted, status="True")


STUCK = {"replicas": 1, "updatedReplicas": 1, "availableReplicas": 0}
WELL = {"replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}


@pytest.mark.parametrize(
    ("status", "marks", "wanted"),
    [
        (STUCK, {}, ("False", "Unavailable")),
        (STUCK, {CAUSE: "ImagePullBackOff: no such image"}, ("False", "ImagePullBackOff")),
        (WELL, {CAUSE: "ImagePullBackOff: no such image"}, ("True", "")),
        (STUCK, {CAUSE: "OOMKilled: x", SYNC_ERROR: "Rejected: y"}, ("False", "Rejected")),
    ],
)
def test_the_cause_at_the_edge_says_why_a_state_is_not_well(
    status: Raw, marks: dict[str, str], wanted: tuple[str, str]
) -> None:
    metadata = {"name": "web", "generation": 1, "annotations": marks}
    copy: Raw = {**DEPLOYMENT, "metadata": metadata, "status": status}
    found = report_of("apps", "Deployment", copy).health
    assert (found.status, found.reason) == wanted


def test_a_job_that_only_runs_is_as_well_as_its_pods() -> None:
    notes = {CAUSE: "ImagePullBackOff: no such image"}
    job: Raw = {"metadata": {"name": "once", "annotations": notes}, "status": {"active": 1}}
    found = report_of("batch", "Job", job).health
    assert found == Health("False", "ImagePullBackOff", "no such image")
    done = {"conditions": [{"type": "Complete", "status": "True"}]}
    assert report_of("batch", "Job", {**job, "status": done}).health.status == "True"


def test_a_report_has_the_numbers_and_conditions_of_the_status() -> None:
    copy: Raw = {
        **DEPLOYMENT,
        "metadata": {
            "name": "web",
            "generation": 2,
            "managedFields": [
                {"manager": "translator", "time": "2030-01-03T00:00:00Z"},
                {"subresource": "status", "time": "2030-01-01T00:00:00Z"},
                {"subresource": "status", "time": "2030-01-02T00:00:00Z"},
            ],
        },
        "spec": {"replicas": 1},
        "status": {
            "replicas": 1,
            "updatedReplicas": 1,
            "availableReplicas": 1,
            "paused": True,
            "shards": {"total": 7, "names": ["a"], "load": 0.5},
            "conditions": [
                {"type": "Available", "status": "True"},
                {"type": "Odd", "status": "Perhaps"},
                "malformed",
            ],
        },
    }
    report = report_of("apps", "Deployment", applied(copy))
    assert report.delivered
    assert report.reported
    assert report.health.status == "True"
    assert report.time == "2030-01-02T00:00:00Z"
    assert report.numbers == (
        ("availableReplicas", 1),
        ("replicas", 1),
        ("shards.load", 0.5),
        ("shards.total", 7),
        ("updatedReplicas", 1),
    )
    assert report.conditions == (("Available", "True"), ("Odd", "Unknown"))


def test_an_edge_cannot_make_a_report_large() -> None:
    deep: Raw = {"leaf": 1}
    for _ in range(50):
        deep = {"x": deep}
    status = {
        **{f"field-{number}": number for number in range(1000)},
        "n" * 500: 1,
        "deep": deep,
        "conditions": [{"type": f"C{number}", "status": "True"} for number in range(1000)],
    }
    report = report_of("example.org", "Widget", {"metadata": {"name": "x"}, "status": status})
    assert len(report.numbers) == MAX_NUMBERS
    assert len(report.conditions) == MAX_CONDITIONS


def test_a_condition_named_twice_counts_once() -> None:
    status = {"conditions": [{"type": "Ready", "status": "True"}] * 2}
    report = report_of("example.org", "Widget", {"metadata": {"name": "x"}, "status": status})
    assert report.conditions == (("Ready", "True"),)


def test_a_digest_reports_contents_apart_and_not_their_order() -> None:
    assert digest_of({"a": 1, "b": 2}) == digest_of({"b": 2, "a": 1})
    assert digest_of({"a": 1}) != digest_of({"a": 2})
    assert digest_of({}) == digest_of(None) == ""


def test_a_copy_names_the_workspaces_for_which_it_is_no_report() -> None:
    copy: Raw = {"metadata": {"name": "web", "annotations": {WITHHELD_FROM: "one,two"}}}
    for report in (report_of("apps", "Deployment", copy), delivery_of(copy)):
        assert report.withheld_from == ("one", "two")
        assert own_report(report, "two") is TAKEN
        assert own_report(report, "three") is report


HERE = Mailbox("imw", "uid-1")


def _copy(name: str, cluster: str = "m1", labels: Raw | None = None, **more: Any) -> Raw:
    found = {"edge.kcp.io/projected": "yes"} if labels is None else labels
    metadata = {"name": name, "namespace": "shop", "labels": found, "generation": 1}
    return {**DEPLOYMENT, "metadata": metadata, **more}


def test_from_scratch_every_copy_in_a_mailbox_reports_and_nothing_else_does() -> None:
    status = {"replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}
    web, strange = _copy("web", status=status), _copy("strange", labels={})

    def ref(cluster: str, name: str) -> ObjectRef:
        return ObjectRef(cluster, "apps", "deployments", "shop", name)

    copies = {
        ref("m1", "web"): Copy("Deployment", True, web),
        ref("m1", "plain"): Copy("Deployment", False, _copy("plain")),
        ref("m1", "strange"): Copy("Deployment", True, strange),
        ref("elsewhere", "web"): Copy("Deployment", True, web),
    }
    found = reference({"m1": HERE.uid}, copies)
    assert found == {
        (ref("", "web"), HERE.uid): report_of("apps", "Deployment", web),
        (ref("", "plain"), HERE.uid): delivery_of(_copy("plain")),
    }
