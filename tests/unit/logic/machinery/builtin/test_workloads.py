"""Deployments and their kin."""

from __future__ import annotations

import pytest

from skerry.api.objects import Object
from tests.kit.machinery.objects import (
    TEMPLATE,
    created,
    errors_of,
    merged,
    named,
    resource,
    update_errors,
    workload,
)

DEPLOYMENTS = resource("deployments", "apps")
REPLICA_SETS = resource("replicasets", "apps")
STATEFUL_SETS = resource("statefulsets", "apps")
DAEMON_SETS = resource("daemonsets", "apps")
CONTROLLERS = resource("replicationcontrollers")
MISMATCH = "`selector` does not match template `labels`"


def test_a_deployment_is_filled_in() -> None:
    new = created(DEPLOYMENTS, workload("deployments"))
    spec = {k: v for k, v in new["spec"].items() if k not in ("selector", "template")}
    assert spec == {
        "replicas": 1,
        "strategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"},
        },
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
    }
    assert new["status"] == {}
    assert new["spec"]["template"]["spec"]["restartPolicy"] == "Always"
    assert "enableServiceLinks" not in new["spec"]["template"]["spec"]


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ({"replicas": -1}, "spec.replicas: Invalid value: -1: must be greater than or equal to 0"),
        ({"selector": None}, "spec.selector: Required value"),
        (
            {"selector": {"matchLabels": None}},
            "spec.selector: Invalid value: {}: empty selector is invalid for deployment",
        ),
        (
            {"selector": {"matchLabels": {"app": "y"}}},
            'spec.template.metadata.labels: Invalid value: {"app":"x"}: ' + MISMATCH,
        ),
        (
            {"template": {"spec": {"restartPolicy": "Never"}}},
            (
                'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: '
                '"Always"'
            ),
        ),
        (
            {"template": {"spec": {"activeDeadlineSeconds": 3}}},
            (
                "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in "
                "ReplicaSet is not Supported"
            ),
        ),
        (
            {"template": {"spec": {"containers": []}}},
            "spec.template.spec.containers: Required value",
        ),
        (
            {"strategy": {"type": "Recreate", "rollingUpdate": {}}},
            (
                "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy "
                "`type` is "
                "'Recreate'"
            ),
        ),
        (
            {"strategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 0}}},
            (
                "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when "
                "`maxSurge` is 0"
            ),
        ),
        (
            {"strategy": {"rollingUpdate": {"maxUnavailable": "110%"}}},
            (
                'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "110%": must not be '
                "greater than 100%"
            ),
        ),
        (
            {"minReadySeconds": 600},
            (
                "spec.progressDeadlineSeconds: Invalid value: 600: must be greater than "
                "minReadySeconds"
            ),
        ),
        (
            {"strategy": {"type": "Big"}},
            (
                'spec.strategy: Unsupported value: {"type":"Big"}: supported values: "Recreate", '
                '"RollingUpdate"'
            ),
        ),
    ],
)
def test_bad_deployments_are_refused(spec: Object, error: str) -> None:
    assert error in errors_of(DEPLOYMENTS, workload("deployments", spec))


@pytest.mark.parametrize("name", ["deployments", "replicasets", "daemonsets"])
def test_selectors_do_not_change(name: str) -> None:
    labels = {"app": "x", "tier": "y"}
    old = workload(name, {"template": {"metadata": {"labels": labels}}})
    change = {"spec": {"selector": {"matchLabels": labels}}}
    (error,) = update_errors(resource(name, "apps"), old, change)
    assert error == (
        'spec.selector: Invalid value: {"matchLabels":{"app":"x","tier":"y"}}: field is immutable'
    )
    assert update_errors(resource(name, "apps"), old, {}) == []


def test_selectors_with_expressions_select_their_template() -> None:
    selector = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["x"]}]}
    spec = {"selector": {"matchLabels": None, **selector}}
    assert errors_of(DEPLOYMENTS, workload("deployments", spec)) == []


def test_status_numbers_make_sense() -> None:
    old: Object = {"status": {"collisionCount": 2}}
    new: Object = {"status": {"replicas": 1, "readyReplicas": 2, "availableReplicas": 3}}
    assert [str(error) for error in DEPLOYMENTS.validate_status(new, old)] == [
        "status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas",
        "status.availableReplicas: Invalid value: 3: cannot be greater than status.replicas",
        "status.availableReplicas: Invalid value: 3: cannot be greater than readyReplicas",
        "status.collisionCount: Invalid value: 0: cannot be decremented",
    ]
    assert REPLICA_SETS.validate_status(new, old)
    assert STATEFUL_SETS.validate_status(new, old)
    assert DAEMON_SETS.validate_status({"status": {"numberReady": -1}}, {})


def test_a_stateful_set_is_filled_in_and_mostly_fixed() -> None:
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    old = workload("statefulsets", {"volumeClaimTemplates": [claim]})
    new = created(STATEFUL_SETS, old)
    assert new["spec"]["podManagementPolicy"] == "OrderedReady"
    assert new["spec"]["updateStrategy"]["rollingUpdate"] == {"partition": 0}
    assert new["spec"]["volumeClaimTemplates"][0]["spec"]["volumeMode"] == "Filesystem"
    assert update_errors(STATEFUL_SETS, old, {"spec": {"replicas": 5}}) == []
    (error,) = update_errors(STATEFUL_SETS, old, {"spec": {"serviceName": "other"}})
    assert error.startswith("spec: Forbidden: updates to statefulset spec for fields other than")


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ({"podManagementPolicy": "Loose"}, "spec.podManagementPolicy: Invalid value"),
        (
            {"updateStrategy": {"type": "OnDelete", "rollingUpdate": {}}},
            "spec.updateStrategy.rollingUpdate: Invalid value: {}: only allowed for",
        ),
        ({"updateStrategy": {"type": "Odd"}}, "spec.updateStrategy: Invalid value"),
        (
            {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 0}}},
            "spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: 0: cannot be 0",
        ),
        ({"ordinals": {"start": -1}}, "spec.ordinals.start: Invalid value: -1"),
        (
            {"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Keep"}},
            'spec.persistentVolumeClaimRetentionPolicy.whenScaled: Unsupported value: "Keep"',
        ),
    ],
)
def test_bad_stateful_sets_are_refused(spec: Object, error: str) -> None:
    errors = errors_of(STATEFUL_SETS, workload("statefulsets", spec))
    assert any(found.startswith(error) for found in errors)


def test_a_daemon_set_counts_the_changes_of_its_template() -> None:
    old = created(DAEMON_SETS, workload("daemonsets"))
    key = "deprecated.daemonset.template.generation"
    assert old["metadata"]["annotations"][key] == "1"
    assert old["spec"]["updateStrategy"]["rollingUpdate"] == {"maxUnavailable": 1, "maxSurge": 0}
    new = merged(old, {"spec": {"template": {"spec": {"hostPID": True}}}})
    DAEMON_SETS.prepare_update(new, old)
    assert new["metadata"]["annotations"][key] == "2"


@pytest.mark.parametrize(
    ("rolling", "error"),
    [
        ({"maxSurge": 1}, "maxSurge: Invalid value: 1: may not be set when maxUnavailable is non"),
        ({"maxUnavailable": 0}, "maxUnavailable: Required value: cannot be 0 when maxSurge is 0"),
        ({"maxUnavailable": "x"}, 'maxUnavailable: Invalid value: "x": a valid percent string'),
    ],
)
def test_bad_daemon_set_strategies_are_refused(rolling: Object, error: str) -> None:
    spec = {"updateStrategy": {"rollingUpdate": rolling}}
    errors = errors_of(DAEMON_SETS, workload("daemonsets", spec))
    assert any(f"spec.updateStrategy.rollingUpdate.{error}" in found for found in errors)


def test_a_replication_controller_takes_its_labels_from_its_template() -> None:
    new = created(CONTROLLERS, named(CONTROLLERS, spec={"template": TEMPLATE}))
    assert new["spec"]["selector"] == new["metadata"]["labels"] == {"app": "x"}
    assert "spec.selector: Required value" in errors_of(
        CONTROLLERS, named(CONTROLLERS, spec={"template": {"spec": {}}})
    )


def test_a_name_no_host_can_bear_earns_a_warning() -> None:
    deployment = merged(workload("deployments"), {"metadata": {"name": "a.b"}})
    assert list(DEPLOYMENTS.warnings(deployment)) == [
        (
            "metadata.name: this is used in Pod names and hostnames, which can result in "
            "surprising "
            "behavior; a DNS label is recommended: [must not contain dots]"
        )
    ]


def test_replicas_select_replica_sets() -> None:
    assert REPLICA_SETS.selectable_fields["status.replicas"]({"status": {}}) == "0"
    assert REPLICA_SETS.selectable_fields["status.replicas"]({"status": {"replicas": 2}}) == "2"


def test_revisions_are_objects_that_never_change() -> None:
    kind = resource("controllerrevisions", "apps")
    assert errors_of(kind, named(kind, data={"a": 1}, revision=1)) == []
    assert errors_of(kind, named(kind)) == ["data: Required value: data is mandatory"]
    assert update_errors(kind, named(kind, data={"a": 1}), {"data": {"a": 2}})
