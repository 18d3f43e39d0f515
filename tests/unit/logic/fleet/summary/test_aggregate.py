"""What tools read from an aggregated status is what the summary says."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.fleet.summary.aggregate import MAX_MESSAGE_LENGTH, aggregated
from skerry.logic.fleet.summary.gathered import Gathered, gathered
from skerry.logic.fleet.summary.health import Health, health
from skerry.logic.fleet.summary.report import Report
from skerry.logic.fleet.summary.tally import ConditionTotal, Tally
from skerry.logic.machinery.builtin.resources import builtin_resources
from tests.kit.chain.aggregate_model import (
    CLUSTER,
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    KINDS,
    STATEFUL_SET,
    WIDGET,
    Kind,
    There,
    details,
    is_healthy,
    places,
    source,
    specs,
)
from tests.kit.judges.argo import argo_health
from tests.kit.judges.kstatus import kstatus

Object = dict[str, Any]
NOW, LATER = "2030-01-01T00:00:00Z", "2030-01-01T01:00:00Z"
HEALTHY = Report(delivered=True, reported=True, health=Health("True"))


def given_status(kind: Kind, obj: Object, found: list[There], now: str = NOW) -> Object:
    """Return *obj* with the status that its destinations come to."""
    whole = gathered(Tally(details(found)), CLUSTER)
    status = aggregated(kind.group, kind.kind, obj, whole, now)
    assert status is not None
    return {**obj, "status": status}


def says_finished(found: list[There], generation: int = 2) -> bool:
    """Tell whether the summary says that everything heard of is delivered and healthy."""
    heard = [there for there in found if there.known]
    return bool(heard) and all(
        is_healthy(there) and there.generation == generation for there in heard
    )


@st.composite
def histories(draw: st.DrawFn) -> tuple[Kind, Object, list[list[There]]]:
    kind = draw(st.sampled_from(KINDS))
    spec = draw(specs(kind))
    return kind, spec, draw(st.lists(places(kind, spec), min_size=1, max_size=3))


def conditions(obj: Object) -> dict[str, Object]:
    return {each["type"]: each for each in obj["status"].get("conditions", ())}


@given(histories())
def test_over_any_history_tools_call_a_source_finished_exactly_when_the_summary_does(
    history: tuple[Kind, Object, list[list[There]]],
) -> None:
    kind, spec, moments = history
    obj = source(kind, spec)
    ended = False
    for found in moments:
        obj = given_status(kind, obj, found)
        # A Job that has ended stays so.
        finished = not ended and says_finished(found)
        if not ended:
            assert (kstatus(obj) == "Current") == finished
        if kind != WIDGET and kind != JOB:
            assert (argo_health(obj) == "Healthy") == finished
        elif kind == JOB:
            ended = argo_health(obj) != "Progressing"


@given(histories())
def test_a_status_is_valid_for_its_kind_after_any_history(
    history: tuple[Kind, Object, list[list[There]]],
) -> None:
    kind, spec, moments = history
    served = {each.info.kind: each for each in builtin_resources()}
    obj = source(kind, spec)
    for found in moments:
        new = given_status(kind, obj, found)
        if kind.kind in served:
            assert not served[kind.kind].validate_status(copy.deepcopy(new), obj)
        obj = new


@given(histories())
def test_what_is_said_already_stays_as_it_is(
    history: tuple[Kind, Object, list[list[There]]],
) -> None:
    kind, spec, moments = history
    once = given_status(kind, source(kind, spec), moments[0])
    assert given_status(kind, once, moments[0], LATER) == once


@given(histories())
def test_one_destination_gives_the_verdict_that_its_own_status_would(
    history: tuple[Kind, Object, list[list[There]]],
) -> None:
    kind, spec, moments = history
    for there in moments[0]:
        report = replace(there.report, delivered=True)
        obj = given_status(kind, source(kind, spec), [There(True, 2, report)])
        found = health(kind.group, kind.kind, obj)
        # Which revision is being rolled out is not said; that it is, kstatus sees in the numbers.
        if not report.reported or (kind == STATEFUL_SET and report.health.reason == "RollingOut"):
            assert kstatus(obj) != "Current" or report.health.status != "False"
        else:
            assert found.status == report.health.status


@given(histories(), st.integers(0, 3))
def test_an_unknown_destination_changes_nothing_but_what_is_counted(
    history: tuple[Kind, Object, list[list[There]]], at: int
) -> None:
    kind, spec, moments = history
    found = moments[0]
    lost = There(False, 0, Report())
    obj = source(kind, spec)
    before = given_status(kind, obj, found)["status"]
    after = given_status(kind, obj, [*found[:at], lost, *found[at:]])["status"]
    assert _without_words(before) == _without_words(after)


def _without_words(status: Object) -> Object:
    found = [(each["type"], each["status"]) for each in status.get("conditions", ())]
    return {**status, "conditions": found}


# -- what people read --------------------------------------------------------------------------


def well(**numbers: int) -> There:
    return There(True, 2, replace(HEALTHY, numbers=tuple(sorted(numbers.items()))))


def ill(**numbers: int) -> There:
    health = Health("False", "ImagePullBackOff", "no such image")
    return There(True, 2, Report(True, True, health, "", tuple(sorted(numbers.items()))))


def test_a_deployment_shows_the_worst_destination_and_why() -> None:
    obj = source(DEPLOYMENT, {"replicas": 3, "progressDeadlineSeconds": 600})
    three = well(replicas=3, updatedReplicas=3, readyReplicas=3, availableReplicas=3)
    lost = There(False, 0, Report())
    worst = ill(replicas=3, updatedReplicas=3, readyReplicas=1, availableReplicas=1)
    obj = given_status(DEPLOYMENT, obj, [three, worst, lost])
    status = obj["status"]
    assert (status["readyReplicas"], status["unavailableReplicas"]) == (1, 2)
    assert status["observedGeneration"] == 2
    progressing = conditions(obj)["Progressing"]
    assert (progressing["status"], progressing["reason"]) == ("True", "ReplicaSetUpdated")
    assert progressing["message"] == "1 of 2 destinations, 1 unknown; loc1: no such image"
    obj = given_status(DEPLOYMENT, obj, [three, three, lost], LATER)
    assert obj["status"]["readyReplicas"] == 3
    assert conditions(obj)["Progressing"]["reason"] == "NewReplicaSetAvailable"
    assert conditions(obj)["Progressing"]["lastTransitionTime"] == NOW


def test_copies_of_an_older_generation_count_as_not_delivered() -> None:
    obj = source(DEPLOYMENT, {"replicas": 1, "progressDeadlineSeconds": 600}, generation=3)
    one = well(replicas=1, updatedReplicas=1, readyReplicas=1, availableReplicas=1)
    obj = given_status(DEPLOYMENT, obj, [one])
    assert obj["status"]["observedGeneration"] == 2
    text = "1 of 1 destinations; the present content is not in every mailbox yet"
    assert conditions(obj)["Progressing"]["message"] == text


def test_a_customized_number_of_replicas_is_measured_by_what_its_destination_wants() -> None:
    obj = source(DEPLOYMENT, {"replicas": 2, "progressDeadlineSeconds": 600})
    few = well(replicas=1, updatedReplicas=1, readyReplicas=1, availableReplicas=1)
    many = well(replicas=5, updatedReplicas=5, readyReplicas=5, availableReplicas=5)
    obj = given_status(DEPLOYMENT, obj, [few, many])
    assert obj["status"]["readyReplicas"] == obj["status"]["replicas"] == 2
    assert kstatus(obj) == "Current"


def test_a_deployment_that_made_no_progress_anywhere_has_failed() -> None:
    obj = source(DEPLOYMENT, {"replicas": 1, "progressDeadlineSeconds": 600})
    stuck = ill()
    stuck = stuck._replace(report=replace(stuck.report, conditions=(("Progressing", "False"),)))
    obj = given_status(DEPLOYMENT, obj, [well(), stuck])
    assert kstatus(obj) == "Failed"
    assert argo_health(obj) == "Degraded"


def test_a_daemon_set_counts_the_nodes_of_one_destination() -> None:
    numbers = ("currentNumberScheduled", "updatedNumberScheduled", "numberReady", "numberAvailable")
    big = well(desiredNumberScheduled=5, **dict.fromkeys(numbers, 5))
    small = ill(desiredNumberScheduled=2, **dict.fromkeys(numbers, 1))
    obj = given_status(DAEMON_SET, source(DAEMON_SET, {}), [big, small])
    assert (obj["status"]["numberReady"], obj["status"]["desiredNumberScheduled"]) == (1, 2)


def test_a_job_is_complete_when_it_is_everywhere_and_failed_when_it_is_anywhere() -> None:
    done = replace(HEALTHY, conditions=(("Complete", "True"),), numbers=(("succeeded", 1),))
    running = replace(HEALTHY, numbers=(("active", 1),))
    failed = replace(HEALTHY, health=Health("False", "BackoffLimitExceeded", "no more tries"))
    failed = replace(failed, conditions=(("Failed", "True"),), numbers=(("failed", 7),))
    job = source(JOB, {})
    obj = given_status(JOB, job, [There(True, 2, done), There(True, 2, running)])
    assert argo_health(obj) == "Progressing"
    assert obj["status"] == {"active": 1, "startTime": NOW}
    obj = given_status(JOB, obj, [There(True, 2, done), There(True, 2, done)], LATER)
    assert argo_health(obj) == "Healthy"
    assert (obj["status"]["startTime"], obj["status"]["completionTime"]) == (NOW, LATER)
    assert obj["status"]["succeeded"] == 1
    obj = given_status(JOB, job, [There(True, 2, done), There(True, 2, failed)])
    [condition] = obj["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("Failed", "BackoffLimitExceeded")
    assert condition["message"] == "1 of 2 destinations; loc1: no more tries"


def test_with_nobody_heard_of_nothing_is_called_finished() -> None:
    for found in ([], [There(False, 0, Report())]):
        obj = given_status(WIDGET, source(WIDGET, {}), found)
        assert obj["status"]["observedGeneration"] == 1
        assert conditions(obj)["Reconciling"]["reason"] == "NoDestinationHeardOf"


@pytest.mark.parametrize(
    ("group", "kind"),
    [("", "Service"), ("networking.k8s.io", "Ingress"), ("policy", "PodDisruptionBudget")],
)
def test_of_kinds_that_are_judged_by_something_else_nothing_is_said(group: str, kind: str) -> None:
    found = Gathered(1, healthy=1, delivered=1, conditions=(ConditionTotal("Ready", 1, 0, 0),))
    assert aggregated(group, kind, {"metadata": {}}, found, NOW) is None


@pytest.mark.parametrize(("healthy", "phase"), [(2, "Bound"), (1, "Pending")])
def test_a_claim_is_bound_when_it_is_everywhere(healthy: int, phase: str) -> None:
    found = Gathered(2, delivered=2, healthy=healthy)
    status = aggregated("", "PersistentVolumeClaim", {"metadata": {}}, found, NOW)
    assert status is not None
    assert status["phase"] == phase


def test_a_pod_runs_or_has_succeeded_when_it_does_everywhere() -> None:
    found = Gathered(2, delivered=2, healthy=2)
    done = aggregated("", "Pod", {"metadata": {}}, found, NOW)
    assert done is not None
    assert done["phase"] == "Succeeded"
    ready = replace(found, conditions=(ConditionTotal("Ready", 2, 0, 0),))
    running = aggregated("", "Pod", {"metadata": {}}, ready, NOW)
    assert running is not None
    assert running["phase"] == "Running"
    assert kstatus({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "status": running}) == (
        "Current"
    )


# -- hostile edges -----------------------------------------------------------------------------


def test_what_a_hostile_edge_reports_is_cut_to_size() -> None:
    kinds = [f"T{number:03}" for number in range(200)] + ["no word", "\u00e9", "x" * 64]
    report = Report(
        True,
        True,
        Health("False", "not a word", "x" * 100_000),
        "",
        (("replicas", 10**30), ("readyReplicas", -5), ("availableReplicas", 1.5)),
        tuple((kind, "False") for kind in sorted(kinds)),
    )
    obj = source(DEPLOYMENT, {"replicas": 3, "progressDeadlineSeconds": 600})
    status = given_status(DEPLOYMENT, obj, [There(True, 2, report)])["status"]
    assert len(status["conditions"]) <= 35
    assert all(len(each["message"]) <= MAX_MESSAGE_LENGTH for each in status["conditions"])
    assert {each["reason"] for each in status["conditions"]} <= {
        "DestinationNotHealthy",
        "ReplicaSetUpdated",
    }
    assert status["replicas"] == 2**31 - 1
    assert (status["readyReplicas"], status["availableReplicas"]) == (0, 0)
