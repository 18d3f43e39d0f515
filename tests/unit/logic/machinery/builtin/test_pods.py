"""Pods: what is filled in, what is refused, what may change."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.objects import Object
from skerry.logic.machinery.builtin.pod_defaults import pull_policy
from skerry.logic.machinery.builtin.pods import quality_of_service
from tests.kit.machinery.objects import (
    container,
    created,
    errors_of,
    pod,
    resource,
    update_errors,
)

PODS = resource("pods")


def test_a_minimal_pod_is_filled_in_as_kubernetes_does() -> None:
    new = created(PODS, pod())
    assert new["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert new["spec"] == {
        "containers": [
            {
                "name": "c",
                "image": "nginx:1.25",
                "imagePullPolicy": "IfNotPresent",
                "resources": {},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
            }
        ],
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": True,
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
    }


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1.25", "IfNotPresent"),
        ("registry:5000/a/b", "Always"),
        ("registry:5000/a/b:v1", "IfNotPresent"),
        ("nginx@sha256:" + "a" * 64, "IfNotPresent"),
        ("nginx:latest@sha256:" + "a" * 64, "Always"),
        ("UPPER", "IfNotPresent"),
        ("", "IfNotPresent"),
    ],
)
def test_images_whose_tag_may_move_are_always_pulled(image: str, policy: str) -> None:
    assert pull_policy(image) == policy


def test_probes_ports_and_references_are_filled_in() -> None:
    new = created(
        PODS,
        pod(
            container(
                ports=[{"containerPort": 80}],
                livenessProbe={"httpGet": {"port": 80}},
                readinessProbe={"grpc": {"port": 80}},
                env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            )
        ),
    )
    (one,) = new["spec"]["containers"]
    assert one["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    assert one["livenessProbe"] == {
        "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
    assert one["readinessProbe"]["grpc"] == {"port": 80, "service": ""}
    assert one["env"][0]["valueFrom"]["fieldRef"]["apiVersion"] == "v1"


def test_volumes_are_filled_in() -> None:
    volumes: list[Object] = [
        {"name": "a"},
        {"name": "b", "secret": {"secretName": "s"}},
        {"name": "c", "hostPath": {"path": "/x"}},
        {"name": "d", "emptyDir": {"sizeLimit": "1024Mi"}},
        {
            "name": "e",
            "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]},
        },
    ]
    new = created(PODS, pod({"volumes": volumes, "serviceAccountName": "sa"}))
    a, b, c, d, e = new["spec"]["volumes"]
    assert a == {"name": "a", "emptyDir": {}}
    assert b["secret"]["defaultMode"] == 0o644
    assert c["hostPath"]["type"] == ""
    assert d["emptyDir"]["sizeLimit"] == "1Gi"
    assert e["projected"]["sources"][0]["serviceAccountToken"]["expirationSeconds"] == 3600
    assert new["spec"]["serviceAccount"] == "sa"


def test_requests_follow_limits_in_pods_and_quantities_become_canonical() -> None:
    new = created(PODS, pod(container(resources={"limits": {"cpu": "0.5", "memory": "1024Mi"}})))
    resources = new["spec"]["containers"][0]["resources"]
    assert resources["limits"] == {"cpu": "500m", "memory": "1Gi"} == resources["requests"]
    assert new["status"]["qosClass"] == "Guaranteed"


def test_host_network_pods_listen_on_the_nodes_ports() -> None:
    new = created(PODS, pod({"hostNetwork": True, **container(ports=[{"containerPort": 80}])}))
    assert new["spec"]["containers"][0]["ports"][0]["hostPort"] == 80


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "0"}}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        (
            {
                "limits": {"cpu": "1", "memory": "1Gi"},
                "requests": {"cpu": "1000m", "memory": "1024Mi"},
            },
            "Guaranteed",
        ),
        (
            {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m", "memory": "1Gi"}},
            "Burstable",
        ),
    ],
)
def test_quality_of_service(resources: Object, expected: str) -> None:
    assert quality_of_service(pod(container(resources=resources))) == expected


def test_a_gated_pod_says_why_it_is_not_scheduled() -> None:
    new = created(PODS, pod({"schedulingGates": [{"name": "example.com/gate"}]}))
    assert new["status"]["conditions"][0]["reason"] == "SchedulingGated"


CONTAINER = "spec.containers[0]"


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"name": ""}, f"{CONTAINER}.name: Required value"),
        ({"image": ""}, f"{CONTAINER}.image: Required value"),
        (
            {"image": " nginx"},
            (
                f'{CONTAINER}.image: Invalid value: " nginx": must not have leading or trailing '
                "whitespace"
            ),
        ),
        (
            {"imagePullPolicy": "Sometimes"},
            (
                f'{CONTAINER}.imagePullPolicy: Unsupported value: "Sometimes": supported values: '
                '"Always", "IfNotPresent", "Never"'
            ),
        ),
        ({"ports": [{}]}, f"{CONTAINER}.ports[0].containerPort: Required value"),
        (
            {"ports": [{"containerPort": 70000}]},
            (
                f"{CONTAINER}.ports[0].containerPort: Invalid value: 70000: must be between 1 and "
                "65535, inclusive"
            ),
        ),
        (
            {"ports": [{"containerPort": 80, "name": "a"}, {"containerPort": 81, "name": "a"}]},
            f'{CONTAINER}.ports[1].name: Duplicate value: "a"',
        ),
        (
            {"ports": [{"containerPort": 80, "protocol": "ICMP"}]},
            (
                f'{CONTAINER}.ports[0].protocol: Unsupported value: "ICMP": supported values: '
                '"SCTP", '
                '"TCP", "UDP"'
            ),
        ),
        (
            {"ports": [{"containerPort": n, "hostPort": 80} for n in (80, 81)]},
            f'{CONTAINER}.ports[1].hostPort: Duplicate value: "TCP//80"',
        ),
        ({"env": [{"value": "x"}]}, f"{CONTAINER}.env[0].name: Required value"),
        (
            {"env": [{"name": "A", "valueFrom": {}}]},
            (
                f'{CONTAINER}.env[0].valueFrom: Invalid value: "": must specify one of: '
                "`fieldRef`, "
                "`resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
            ),
        ),
        (
            {
                "env": [
                    {
                        "name": "A",
                        "value": "b",
                        "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}},
                    }
                ]
            },
            (
                f'{CONTAINER}.env[0].valueFrom: Invalid value: "": may not be specified when '
                "`value` "
                "is not empty"
            ),
        ),
        (
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.nope"}}}]},
            (
                f'{CONTAINER}.env[0].valueFrom.fieldRef.fieldPath: Invalid value: "spec.nope": '
                "error "
                "converting fieldPath: field label not supported: spec.nope"
            ),
        ),
        (
            {"env": [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.gpu"}}}]},
            (
                f"{CONTAINER}.env[0].valueFrom.resourceFieldRef.resource: Unsupported value: "
                '"limits.gpu": supported values: "limits.cpu", "limits.ephemeral-storage", '
                '"limits.memory", "requests.cpu", "requests.ephemeral-storage", "requests.memory"'
            ),
        ),
        (
            {"envFrom": [{}]},
            (
                f'{CONTAINER}.envFrom: Invalid value: "": must specify one of: `configMapRef` or '
                "`secretRef`"
            ),
        ),
        (
            {"volumeMounts": [{"name": "v", "mountPath": "/x"}]},
            f'{CONTAINER}.volumeMounts[0].name: Not found: "v"',
        ),
        (
            {"resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}},
            (
                f'{CONTAINER}.resources.requests: Invalid value: "2": must be less than or equal '
                "to "
                "cpu limit of 1"
            ),
        ),
        (
            {"resources": {"limits": {"cpu": "-1"}}},
            (
                f'{CONTAINER}.resources.limits[cpu]: Invalid value: "-1": must be greater than or '
                "equal to 0"
            ),
        ),
        (
            {"resources": {"requests": {"example.com/gpu": "1"}}},
            (
                f"{CONTAINER}.resources.limits: Required value: Limit must be set for non "
                "overcommitable resources"
            ),
        ),
        (
            {"resources": {"limits": {"disk": "1"}}},
            (
                f'{CONTAINER}.resources.limits[disk]: Invalid value: "disk": must be a standard '
                "resource for containers"
            ),
        ),
        (
            {"livenessProbe": {}},
            f"{CONTAINER}.livenessProbe: Required value: must specify a handler type",
        ),
        (
            {"livenessProbe": {"exec": {"command": ["x"]}, "successThreshold": 2}},
            f"{CONTAINER}.livenessProbe.successThreshold: Invalid value: 2: must be 1",
        ),
        (
            {"readinessProbe": {"exec": {"command": ["x"]}, "tcpSocket": {"port": 1}}},
            (
                f"{CONTAINER}.readinessProbe.tcpSocket: Forbidden: may not specify more than 1 "
                "handler "
                "type"
            ),
        ),
        (
            {"readinessProbe": {"exec": {}}},
            f"{CONTAINER}.readinessProbe.exec.command: Required value",
        ),
        (
            {"startupProbe": {"httpGet": {"port": 0}}},
            (
                f"{CONTAINER}.startupProbe.httpGet.port: Invalid value: 0: must be between 1 and "
                "65535, inclusive"
            ),
        ),
        (
            {"lifecycle": {"preStop": {"sleep": {"seconds": 60}}}},
            (
                f"{CONTAINER}.lifecycle.preStop.sleep: Invalid value: 60: must be greater than 0 "
                "and "
                "less than terminationGracePeriodSeconds (30). Enable "
                "AllowPodLifecycleSleepActionZeroValue feature gate for zero sleep."
            ),
        ),
        (
            {"securityContext": {"runAsUser": -1}},
            (
                f"{CONTAINER}.securityContext.runAsUser: Invalid value: -1: must be between 0 and "
                "2147483647, inclusive"
            ),
        ),
        (
            {"restartPolicy": "Always"},
            f"{CONTAINER}.restartPolicy: Forbidden: may not be set for non-init containers",
        ),
    ],
)
def test_bad_containers_are_refused(fields: dict[str, Any], error: str) -> None:
    assert error in errors_of(PODS, pod(container(**fields)))


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ({"containers": []}, "spec.containers: Required value"),
        (
            {"containers": [{"name": "c", "image": "i"}] * 2},
            'spec.containers[1].name: Duplicate value: "c"',
        ),
        (
            {"restartPolicy": "Perhaps"},
            (
                'spec.restartPolicy: Unsupported value: "Perhaps": supported values: "Always", '
                '"OnFailure", "Never"'
            ),
        ),
        (
            {"dnsPolicy": "None"},
            "spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None",
        ),
        (
            {"initContainers": [{"name": "i", "image": "x", "livenessProbe": {}}]},
            (
                "spec.initContainers[0].livenessProbe: Forbidden: may not be set for init "
                "containers "
                "without restartPolicy=Always"
            ),
        ),
        (
            {"volumes": [{"name": "v", "secret": {"secretName": "a"}, "emptyDir": {}}]},
            "spec.volumes[0].emptyDir: Forbidden: may not specify more than 1 volume type",
        ),
        (
            {"volumes": [{"name": "v", "configMap": {}}]},
            "spec.volumes[0].configMap.name: Required value",
        ),
        (
            {"volumes": [{"name": "v", "emptyDir": {}}] * 2},
            'spec.volumes[1].name: Duplicate value: "v"',
        ),
        (
            {"volumes": [{"name": "v", "hostPath": {"path": "/a/../b"}}]},
            "spec.volumes[0].hostPath.path: Invalid value: \"/a/../b\": must not contain '..'",
        ),
        (
            {"nodeSelector": {"a b": ""}},
            'spec.nodeSelector: Invalid value: "a b": name part must consist of alphanumeric',
        ),
        (
            {"tolerations": [{"operator": "Equal"}]},
            (
                'spec.tolerations[0].operator: Invalid value: "Equal": operator must be Exists '
                "when "
                '`key` is empty, which means "match all values and all keys"'
            ),
        ),
        (
            {"activeDeadlineSeconds": 0},
            (
                "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, "
                "inclusive"
            ),
        ),
        ({"hostname": "A"}, 'spec.hostname: Invalid value: "A": a lowercase RFC 1123 label'),
        (
            {"topologySpreadConstraints": [{"maxSkew": 0, "topologyKey": "z"}]},
            (
                "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater "
                "than zero"
            ),
        ),
        (
            {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}},
            (
                "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
                "nodeSelectorTerms: Required value: must have at least one node selector term"
            ),
        ),
        (
            {
                "affinity": {
                    "podAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": {}}]
                    }
                }
            },
            (
                "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]."
                "topologyKey: Required value: can not be empty"
            ),
        ),
        (
            {"hostAliases": [{"ip": "300.1.1.1"}]},
            (
                'spec.hostAliases[0].ip: Invalid value: "300.1.1.1": must be a valid IP address, '
                "(e.g. 10.9.8.7 or 2001:db8::ffff)"
            ),
        ),
        (
            {"ephemeralContainers": [{"name": "e", "image": "x"}]},
            "spec.ephemeralContainers: Forbidden: cannot be set on create",
        ),
        (
            {"nodeName": "n", "schedulingGates": [{"name": "g"}]},
            "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared",
        ),
        (
            {
                "volumes": [
                    {
                        "name": "v",
                        "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]},
                    }
                ]
            },
            (
                "spec.volumes[0].projected.sources[0].serviceAccountToken: Forbidden: must not be "
                "specified when serviceAccountName is not set"
            ),
        ),
        ({"os": {"name": "beos"}}, 'spec.os: Unsupported value: "beos"'),
        (
            {"securityContext": {"sysctls": [{"name": "a b"}]}},
            'spec.securityContext.sysctls[0].name: Invalid value: "a b": must have at most 253',
        ),
    ],
)
def test_bad_pod_specs_are_refused(spec: Object, error: str) -> None:
    assert any(found.startswith(error) for found in errors_of(PODS, pod(spec)))


def test_mounts_are_checked_against_volumes_and_each_other() -> None:
    mounts = [{"name": "v", "mountPath": "/x"}, {"name": "v", "mountPath": "/x", "subPath": "../y"}]
    spec = {"volumes": [{"name": "v", "emptyDir": {}}], **container(volumeMounts=mounts)}
    assert errors_of(PODS, pod(spec)) == [
        f'{CONTAINER}.volumeMounts[1].mountPath: Invalid value: "/x": must be unique',
        f"{CONTAINER}.volumeMounts.subPath: Invalid value: \"../y\": must not contain '..'",
    ]


def test_sidecars_may_have_probes() -> None:
    sidecar = {
        "name": "s",
        "image": "x",
        "restartPolicy": "Always",
        "startupProbe": {"exec": {"command": ["x"]}},
    }
    assert errors_of(PODS, pod({"initContainers": [sidecar]})) == []


@pytest.mark.parametrize(
    "change",
    [
        container(image="nginx:1.26"),
        {"activeDeadlineSeconds": 5},
        {"tolerations": [{"key": "a", "operator": "Exists"}]},
    ],
)
def test_a_running_pod_may_change_a_little(change: Object) -> None:
    new = created(PODS, pod())["spec"]["containers"][0]
    spec = dict(change)
    if "containers" in spec:
        spec["containers"] = [{**new, **spec["containers"][0]}]
    assert update_errors(PODS, pod(), {"spec": spec}) == []


def test_a_running_pod_may_not_change_much() -> None:
    (error,) = update_errors(PODS, pod(), {"spec": {"nodeSelector": {"a": "b"}}})
    assert error.startswith(
        "spec: Forbidden: pod updates may not change fields other than "
        "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
        "`spec.tolerations` (only additions to existing tolerations)"
    )
    assert 'spec.nodeSelector: null -> {"a":"b"}' in error
    more = {"containers": [{"name": n, "image": "nginx:1.25"} for n in "cd"]}
    assert update_errors(PODS, pod(), {"spec": more}) == [
        "spec.containers: Forbidden: pod updates may not add or remove containers"
    ]


def test_tolerations_are_added_never_taken_away() -> None:
    old = pod({"tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute"}]})
    timed = {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    assert update_errors(PODS, old, {"spec": {"tolerations": [timed]}}) == []
    assert update_errors(PODS, old, {"spec": {"tolerations": []}}) == [
        (
            "spec.tolerations: Forbidden: existing toleration can not be modified except its "
            "tolerationSeconds"
        )
    ]


def test_a_gated_pod_may_become_pickier_about_nodes() -> None:
    old = pod({"schedulingGates": [{"name": "g"}], "nodeSelector": {"a": "b"}})
    assert update_errors(PODS, old, {"spec": {"nodeSelector": {"c": "d"}}}) == []
    (error,) = update_errors(PODS, old, {"spec": {"nodeSelector": {"a": "z"}}})
    assert "only additions to spec.nodeSelector are allowed" in error
    assert update_errors(PODS, old, {"spec": {"schedulingGates": []}}) == []
    (error,) = update_errors(PODS, old, {"spec": {"schedulingGates": [{"name": "h"}]}})
    assert "only deletion is allowed, but found new scheduling gate 'h'" in error


def test_deadlines_are_only_shortened() -> None:
    old = pod({"activeDeadlineSeconds": 10})
    assert update_errors(PODS, old, {"spec": {"activeDeadlineSeconds": 5}}) == []
    assert "must be less than or equal to previous value" in str(
        update_errors(PODS, old, {"spec": {"activeDeadlineSeconds": 20}})
    )
    assert "must not update from a positive integer to nil value" in str(
        update_errors(PODS, old, {"spec": {"activeDeadlineSeconds": None}})
    )


def test_status_keeps_what_has_ended() -> None:
    ended = {"name": "c", "state": {"terminated": {"exitCode": 0}}}
    old = {"spec": {"restartPolicy": "Never"}, "status": {"containerStatuses": [ended]}}
    new = {"status": {"containerStatuses": [{"name": "c", "state": {"running": {}}}]}}
    assert [str(e) for e in PODS.validate_status(new, old)] == [
        (
            "status.containerStatuses[0].state: Forbidden: may not be transitioned to "
            "non-terminated "
            "state"
        )
    ]
    twice = {"status": {"podIPs": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}]}}
    assert "may specify no more than one IP for each IP family" in str(
        PODS.validate_status(twice, {})[0]
    )


def test_a_pod_is_given_time_only_where_a_kubelet_runs_it() -> None:
    new = created(PODS, pod())
    assert PODS.grace_seconds(new) == 0
    new["spec"]["nodeName"] = "n"
    assert PODS.grace_seconds(new) == 30
    new["status"]["phase"] = "Succeeded"
    assert PODS.grace_seconds(new) == 0


def test_pods_are_selected_by_the_fields_kubectl_uses() -> None:
    new = created(PODS, pod({"nodeName": "n", "hostNetwork": True}))
    new["status"]["podIPs"] = [{"ip": "10.0.0.9"}]
    read = {field: get(new) for field, get in PODS.selectable_fields.items()}
    assert read == {
        "spec.nodeName": "n",
        "spec.restartPolicy": "Always",
        "spec.schedulerName": "default-scheduler",
        "spec.serviceAccountName": "",
        "spec.hostNetwork": "true",
        "status.phase": "Pending",
        "status.podIP": "10.0.0.9",
        "status.nominatedNodeName": "",
    }


def test_surprises_earn_warnings() -> None:
    spec = {
        "nodeSelector": {"beta.kubernetes.io/os": "linux"},
        "volumes": [{"name": "g", "gitRepo": {"repository": "r"}}],
        **container(
            env=[{"name": "A", "value": "1"}, {"name": "A", "value": "2"}],
            resources={"requests": {"memory": "100m"}},
            ports=[{"containerPort": 80, "protocol": "TCP"}] * 2,
        ),
    }
    assert list(PODS.warnings(pod(spec))) == [
        (
            "spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "
            '"kubernetes.io/os" '
            "instead"
        ),
        "spec.volumes[0].gitRepo: deprecated in v1.11",
        (
            'spec.containers[0].resources.requests[memory]: fractional byte value "100m" is '
            "invalid, "
            "must be an integer"
        ),
        (
            'spec.containers[0].env[1]: hides previous definition of "A", which may be '
            "dropped when "
            "using apply"
        ),
        "spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]",
    ]
