"""Containers: what of their ports, environment, resources and probes is refused, field by field."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.objects import Object
from skerry.logic.machinery.builtin.containers import (
    container_errors,
    handler_and_probe_errors,
    host_port_errors,
    port_reference_errors,
    resource_errors,
)

SOUND: Object = {
    "name": "c",
    "image": "nginx:1.25",
    "terminationMessagePolicy": "File",
    "imagePullPolicy": "Always",
}


def wrong(restart_policy: str = "Always", claims: tuple[str, ...] = (), **fields: Any) -> list[str]:
    errors = container_errors({**SOUND, **fields}, "c", {}, restart_policy, claims)
    return [str(error) for error in errors]


def of_probe(name: str = "livenessProbe", grace: int | None = 30, **probe: Any) -> list[str]:
    whole = {"successThreshold": 1, "exec": {"command": ["true"]}, **probe}
    return [str(error) for error in handler_and_probe_errors({name: whole}, "c", grace)]


def of_hook(grace: int | None = 30, **handler: Any) -> list[str]:
    hooks = {"lifecycle": {"preStop": handler}}
    return [str(error) for error in handler_and_probe_errors(hooks, "c", grace)]


def test_a_sound_container_has_nothing_wrong() -> None:
    assert wrong() == []


def test_an_empty_container_lacks_its_four_required_fields() -> None:
    errors = container_errors({}, "c", {}, "Always")
    assert [(error.field, error.type) for error in errors] == [
        ("c.name", "FieldValueRequired"),
        ("c.image", "FieldValueRequired"),
        ("c.terminationMessagePolicy", "FieldValueRequired"),
        ("c.imagePullPolicy", "FieldValueRequired"),
    ]


def test_names_and_policies_are_of_closed_forms() -> None:
    fields = [
        text.split(":")[0]
        for text in wrong(name="UP", terminationMessagePolicy="x", imagePullPolicy="x")
    ]
    assert fields == ["c.name", "c.terminationMessagePolicy", "c.imagePullPolicy"]


@pytest.mark.parametrize(
    ("port", "fields"),
    [
        ({"containerPort": 80, "protocol": "TCP"}, []),
        ({"protocol": "TCP"}, ["c.ports[0].containerPort"]),
        ({"containerPort": 65536, "protocol": "TCP"}, ["c.ports[0].containerPort"]),
        ({"containerPort": 80, "hostPort": 70000, "protocol": "TCP"}, ["c.ports[0].hostPort"]),
        ({"containerPort": 80, "protocol": "ICMP"}, ["c.ports[0].protocol"]),
        ({"containerPort": 80}, ["c.ports[0].protocol"]),
        ({"containerPort": 80, "protocol": "TCP", "name": "1"}, ["c.ports[0].name"]),
    ],
)
def test_a_port_has_a_number_a_protocol_and_a_good_name(port: Object, fields: list[str]) -> None:
    assert [text.split(": ")[0] for text in wrong(ports=[port])] == fields


def test_two_ports_of_a_container_share_no_name() -> None:
    port = {"containerPort": 80, "protocol": "TCP", "name": "web"}
    assert wrong(ports=[port, port]) == ['c.ports[1].name: Duplicate value: "web"']


def test_a_port_of_the_node_is_taken_once_per_protocol_and_address() -> None:
    tcp: Object = {"hostPort": 80, "protocol": "TCP"}
    free = [{**tcp, "protocol": "UDP"}, {**tcp, "hostIP": "10.0.0.1"}, {"containerPort": 1}]
    assert host_port_errors([{"ports": [tcp, *free]}], "cs") == []
    (error,) = host_port_errors([{"ports": [tcp]}, {"ports": [*free, tcp]}], "cs")
    assert str(error) == 'cs[1].ports[3].hostPort: Duplicate value: "TCP//80"'


@pytest.mark.parametrize(
    ("variable", "texts"),
    [
        ({"name": "A", "value": "x"}, []),
        ({"value": "x"}, ["c.env[0].name: Required value"]),
        (
            {"name": "A", "valueFrom": {}},
            [
                (
                    'c.env[0].valueFrom: Invalid value: "": must specify one of: `fieldRef`, '
                    "`resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
                )
            ],
        ),
        (
            {"name": "A", "value": "x", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
            [
                (
                    'c.env[0].valueFrom: Invalid value: "": may not be specified when `value` is '
                    "not empty"
                )
            ],
        ),
        (
            {
                "name": "A",
                "valueFrom": {
                    "secretKeyRef": {"name": "s", "key": "k"},
                    "configMapKeyRef": {"name": "s", "key": "k"},
                },
            },
            [
                (
                    'c.env[0].valueFrom: Invalid value: "": may not have more than one field '
                    "specified at a time"
                )
            ],
        ),
        (
            {"name": "A", "valueFrom": {"secretKeyRef": {"name": "s"}}},
            ["c.env[0].valueFrom.secretKeyRef.key: Required value"],
        ),
    ],
)
def test_a_variable_has_a_name_and_one_source(variable: Object, texts: list[str]) -> None:
    assert wrong(env=[variable]) == texts


def test_a_key_of_a_config_map_looks_like_a_file_name() -> None:
    source = {"configMapKeyRef": {"name": "s", "key": "a/b"}}
    (text,) = wrong(env=[{"name": "A", "valueFrom": source}])
    assert text.startswith('c.env[0].valueFrom.configMapKeyRef.key: Invalid value: "a/b"')


@pytest.mark.parametrize(
    ("source", "fields"),
    [
        ({"configMapRef": {"name": "m"}}, []),
        ({"configMapRef": {}}, ["c.envFrom[0].configMapRef.name"]),
        ({"secretRef": {"name": "UP"}}, ["c.envFrom[0].secretRef.name"]),
        ({"secretRef": {"name": "s"}, "prefix": "a=b"}, ["c.envFrom[0].prefix"]),
        # Kubernetes names the list, not the element, for these two.
        ({}, ["c.envFrom"]),
        ({"configMapRef": {"name": "m"}, "secretRef": {"name": "s"}}, ["c.envFrom"]),
    ],
)
def test_variables_come_from_one_object_each(source: Object, fields: list[str]) -> None:
    assert [text.split(": ")[0] for text in wrong(envFrom=[source])] == fields


@pytest.mark.parametrize(
    ("limits", "requests", "text"),
    [
        ({"cpu": "1"}, {"cpu": "500m"}, ""),
        ({"cpu": "1"}, {"cpu": "1000m"}, ""),
        ({}, {"cpu": "1"}, ""),
        ({"cpu": "1"}, {"cpu": "2"}, "must be less than or equal to cpu limit of 1"),
        ({}, {"a.com/gpu": 1}, "Limit must be set for non overcommitable resources"),
        ({"a.com/gpu": 2}, {"a.com/gpu": 1}, "must be equal to a.com/gpu limit of 2"),
        ({"a.com/gpu": 2}, {"a.com/gpu": "2"}, ""),
        ({"hugepages-2Mi": "2Mi"}, {}, "HugePages require cpu or memory"),
        ({"hugepages-2Mi": "2Mi", "memory": "1Gi"}, {}, ""),
        ({"cpu": "one"}, {"cpu": "1"}, "quantities must match the regular expression"),
        ({"cpu": "-1"}, {}, "must be greater than or equal to 0"),
    ],
)
def test_requests_fit_into_limits(limits: Object, requests: Object, text: str) -> None:
    found = resource_errors({"limits": limits, "requests": requests}, "r")
    assert len(found) == bool(text)
    assert all(text in error.message for error in found)


def test_a_container_claims_what_its_pod_claims_and_once() -> None:
    def of(*claims: Object) -> list[str]:
        return wrong(resources={"claims": list(claims)}, claims=("gpu", "nic"))

    path = "c.resources.claims"
    assert of({"name": "gpu"}, {"name": "nic"}) == []
    assert of({"name": "gpu", "request": "a"}, {"name": "gpu", "request": "b"}) == []
    assert of({"name": "gpu"}, {"name": "gpu", "request": "a"}) == [
        f'{path}[1]: Duplicate value: "gpu/a"'
    ]
    assert of({}) == [f"{path}[0]: Required value"]
    missing = 'Not found: "x": must be one of the names in pod.spec.resourceClaims'
    assert of({"name": "x"}) == [f"{path}[0]: {missing}: gpu, nic"]
    assert wrong(resources={"claims": [{"name": "x"}]}) == [f"{path}[0]: {missing} which is empty"]


def test_a_container_that_never_restarts_is_not_restarted_to_be_resized() -> None:
    policy = {"resourceName": "cpu", "restartPolicy": "RestartContainer"}
    assert wrong(resizePolicy=[policy]) == []
    (text,) = wrong("Never", resizePolicy=[policy])
    assert text.endswith("must be 'NotRequired' when `restartPolicy` is 'Never'")
    assert wrong(resizePolicy=[policy, policy]) == ['c.resizePolicy[1]: Duplicate value: "cpu"']
    assert len(wrong(resizePolicy=[{"resourceName": "disk", "restartPolicy": "x"}])) == 2


@pytest.mark.parametrize(
    ("handler", "fields"),
    [
        ({"exec": {"command": ["x"]}}, []),
        ({"exec": {}}, ["exec.command"]),
        ({"httpGet": {"path": "/", "port": 80, "scheme": "HTTP"}}, []),
        ({"httpGet": {"port": 80, "scheme": "HTTP"}}, ["httpGet.path"]),
        (
            {"httpGet": {"path": "/", "port": 0, "scheme": "FTP"}},
            ["httpGet.port", "httpGet.scheme"],
        ),
        (
            {
                "httpGet": {
                    "path": "/",
                    "port": 1,
                    "scheme": "HTTP",
                    "httpHeaders": [{"name": "a b"}],
                }
            },
            ["httpGet.httpHeaders"],
        ),
        ({"tcpSocket": {"port": "http"}}, []),
        ({"tcpSocket": {"port": "1"}}, ["tcpSocket.port"]),
        ({"exec": {"command": ["x"]}, "tcpSocket": {"port": 0}}, ["tcpSocket"]),
        ({}, [""]),
    ],
)
def test_a_handler_does_one_well_formed_thing(handler: Object, fields: list[str]) -> None:
    found = [text.split(": ")[0] for text in of_hook(**handler)]
    assert found == [f"c.lifecycle.preStop.{field}".rstrip(".") for field in fields]


@pytest.mark.parametrize(("seconds", "good"), [(0, False), (1, True), (30, True), (31, False)])
def test_a_hook_sleeps_within_the_grace_period(seconds: int, good: bool) -> None:
    assert (of_hook(sleep={"seconds": seconds}) == []) is good


def test_a_sleep_without_a_grace_period_is_no_handler() -> None:
    assert of_hook(None, sleep={"seconds": 1}) == [
        "c.lifecycle.preStop: Required value: must specify a handler type"
    ]


def test_numbers_of_a_probe_are_not_negative() -> None:
    assert of_probe(periodSeconds=-1, failureThreshold=-1) == [
        "c.livenessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0",
        "c.livenessProbe.failureThreshold: Invalid value: -1: must be greater than or equal to 0",
    ]


def test_only_readiness_may_want_several_successes() -> None:
    assert of_probe("readinessProbe", successThreshold=3) == []
    for name in ("livenessProbe", "startupProbe"):
        assert of_probe(name, successThreshold=3) == [
            f"c.{name}.successThreshold: Invalid value: 3: must be 1"
        ]


def test_only_what_can_kill_a_container_has_a_grace_period() -> None:
    assert of_probe(terminationGracePeriodSeconds=1) == []
    (text,) = of_probe(terminationGracePeriodSeconds=0)
    assert text.endswith("must be greater than 0")
    (text,) = of_probe("readinessProbe", terminationGracePeriodSeconds=1)
    assert text.endswith("must not be set for readinessProbes")


def test_a_port_is_referred_to_by_number_or_by_name() -> None:
    assert port_reference_errors(80, "p") == port_reference_errors("http", "p") == []
    assert port_reference_errors(None, "p")
    assert port_reference_errors("", "p")
    assert port_reference_errors(0, "p")
