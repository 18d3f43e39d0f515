"""Pod specs: what is refused of containers among each other, of DNS, and of annotations."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.objects import Object
from skerry.logic.machinery.builtin.pod_defaults import default_pod_spec
from skerry.logic.machinery.builtin.pod_spec import (
    image_space_errors,
    pod_annotation_errors,
    pod_spec_errors,
    template_errors,
)

PROBE: Object = {"exec": {"command": ["true"]}}


def container(name: str = "c", **fields: Any) -> Object:
    return {"name": name, "image": "nginx:1.25", **fields}


def wrong(is_pod: bool = False, **spec: Any) -> list[str]:
    whole: Object = {"containers": [container()], **spec}
    default_pod_spec(whole)
    return [str(error) for error in pod_spec_errors(whole, "s", is_pod=is_pod)]


def test_a_spec_that_says_nothing_lacks_what_defaults_would_fill_in() -> None:
    errors = pod_spec_errors({}, "s")
    assert [(error.field, error.type) for error in errors] == [
        ("s.terminationGracePeriodSeconds", "FieldValueRequired"),
        ("s.containers", "FieldValueRequired"),
        ("s.restartPolicy", "FieldValueRequired"),
        ("s.dnsPolicy", "FieldValueRequired"),
    ]
    assert wrong() == []


def test_containers_share_no_name_with_any_other_of_the_pod() -> None:
    assert wrong(containers=[container(), container()]) == [
        's.containers[1].name: Duplicate value: "c"'
    ]
    assert wrong(initContainers=[container()]) == ['s.initContainers[0].name: Duplicate value: "c"']
    assert wrong(initContainers=[container("i")], ephemeralContainers=[container("i")]) == [
        's.ephemeralContainers[0].name: Duplicate value: "i"'
    ]


def test_only_init_containers_have_a_restart_policy_and_it_is_always() -> None:
    assert wrong(initContainers=[container("i", restartPolicy="Always")]) == []
    (text,) = wrong(initContainers=[container("i", restartPolicy="Never")])
    assert text.startswith('s.initContainers[0].restartPolicy: Unsupported value: "Never"')
    assert wrong(containers=[container(restartPolicy="Always")]) == [
        "s.containers[0].restartPolicy: Forbidden: may not be set for non-init containers"
    ]


def test_an_init_container_is_probed_only_when_it_stays() -> None:
    (text,) = wrong(initContainers=[container("i", livenessProbe=PROBE)])
    assert text.endswith("may not be set for init containers without restartPolicy=Always")
    assert wrong(initContainers=[container("i", livenessProbe=PROBE, restartPolicy="Always")]) == []


def test_two_init_containers_may_use_one_port_of_the_node_one_after_the_other() -> None:
    ports = [{"containerPort": 80, "hostPort": 80}]
    one, two = container("a", ports=ports), container("b", ports=ports)
    assert wrong(initContainers=[one, two]) == []
    assert wrong(containers=[one, two])


@pytest.mark.parametrize("field", ["ports", "resources", "livenessProbe", "lifecycle"])
def test_an_ephemeral_container_has_nothing_that_lasts(field: str) -> None:
    values: Object = {
        "ports": [{"containerPort": 1}],
        "resources": {"limits": {"cpu": "1"}},
        "livenessProbe": PROBE,
        "lifecycle": {"preStop": PROBE},
    }
    assert wrong(ephemeralContainers=[container("e", **{field: values[field]})]) == [
        f"s.ephemeralContainers[0].{field}: Forbidden: cannot be set for an Ephemeral Container"
    ]


def test_an_ephemeral_container_joins_one_of_the_pod_and_mounts_whole_volumes() -> None:
    assert wrong(ephemeralContainers=[container("e", targetContainerName="c")]) == []
    assert wrong(ephemeralContainers=[container("e", targetContainerName="x")]) == [
        's.ephemeralContainers[0].targetContainerName: Not found: "x"'
    ]
    mounts = [{"name": "v", "mountPath": "/v", "subPath": "a"}]
    (text,) = wrong(
        volumes=[{"name": "v"}], ephemeralContainers=[container("e", volumeMounts=mounts)]
    )
    assert text.startswith("s.ephemeralContainers[0].volumeMounts[0].subPath: Forbidden")


def test_images_are_not_padded() -> None:
    found = image_space_errors([{"image": "a"}, {"image": " a"}, {}], "cs")
    assert [error.field for error in found] == ["cs[1].image"]


def test_on_the_network_of_the_node_every_port_is_one_of_the_node() -> None:
    def of(port: Object, *, is_pod: bool) -> list[str]:
        return wrong(is_pod, hostNetwork=True, containers=[container(ports=[port])])

    assert of({"containerPort": 80, "hostPort": 80}, is_pod=True) == []
    # A template may leave it to the pod's defaults.
    assert of({"containerPort": 80}, is_pod=False) == []
    for port, is_pod in (
        ({"containerPort": 80, "hostPort": 81}, False),
        ({"containerPort": 80}, True),
    ):
        (text,) = of(port, is_pod=is_pod)
        assert text.endswith("must match `containerPort` when `hostNetwork` is true")


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"serviceAccountName": "UP"}, "serviceAccountName"),
        ({"nodeName": "a/b"}, "nodeName"),
        ({"hostname": "a.b"}, "hostname"),
        ({"subdomain": "a.b"}, "subdomain"),
        ({"priorityClassName": "a_b"}, "priorityClassName"),
        ({"runtimeClassName": "a_b"}, "runtimeClassName"),
        ({"restartPolicy": "Maybe"}, "restartPolicy"),
        ({"dnsPolicy": "Maybe"}, "dnsPolicy"),
        ({"nodeSelector": {"a b": "c"}}, "nodeSelector"),
        ({"imagePullSecrets": [{"name": "a", "namespace": "b"}]}, "imagePullSecrets[0]"),
        ({"readinessGates": [{"conditionType": "a b"}]}, "readinessGates[0].conditionType"),
        ({"activeDeadlineSeconds": 0}, "activeDeadlineSeconds"),
        ({"activeDeadlineSeconds": 2**31}, "activeDeadlineSeconds"),
        ({"hostAliases": [{"ip": "300.1.1.1"}]}, "hostAliases[0].ip"),
        (
            {"hostAliases": [{"ip": "1.1.1.1", "hostnames": ["a", "B"]}]},
            "hostAliases[0].hostnames[1]",
        ),
        ({"preemptionPolicy": "Maybe"}, "preemptionPolicy"),
        ({"overhead": {"cpu": "-1"}}, "overhead.limits[cpu]"),
        ({"os": {}}, "os.name"),
        ({"os": {"name": "plan9"}}, "os"),
        ({"hostUsers": False, "hostPID": True}, "HostPID"),
        ({"hostUsers": False, "hostIPC": True}, "HostIPC"),
    ],
)
def test_each_field_has_its_form(spec: Object, field: str) -> None:
    assert [text.split(": ")[0] for text in wrong(**spec)] == [f"s.{field}"]


@pytest.mark.parametrize(
    "spec",
    [
        {"activeDeadlineSeconds": 1},
        {"os": {"name": "windows"}},
        {"preemptionPolicy": "Never"},
        {"hostUsers": True, "hostPID": True},
        {"hostname": "web-0", "subdomain": "web"},
        {"imagePullSecrets": [{"name": "a"}, {}]},
    ],
)
def test_what_is_in_form_passes(spec: Object) -> None:
    assert wrong(**spec) == []


def test_without_a_policy_for_dns_the_pod_names_its_servers() -> None:
    (text,) = wrong(dnsPolicy="None")
    assert text == "s.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"
    (text,) = wrong(dnsPolicy="None", dnsConfig={"searches": ["a"]})
    assert text.startswith("s.dnsConfig.nameservers: Required value")
    assert wrong(dnsPolicy="None", dnsConfig={"nameservers": ["1.1.1.1"]}) == []


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"nameservers": ["1.1.1.1"] * 4}, "nameservers"),
        ({"nameservers": ["dns.example"]}, "nameservers[0]"),
        ({"searches": ["a"] * 33}, "searches"),
        ({"searches": [f"{'a' * 60}.{'b' * 60}.{'c' * 60}.{'d' * 60}"] * 9}, "searches"),
        ({"searches": ["a", "-"]}, "searches[1]"),
        ({"options": [{"value": "x"}]}, "options[0]"),
    ],
)
def test_a_resolver_takes_only_so_much(config: Object, field: str) -> None:
    assert [t.split(": ")[0] for t in wrong(dnsConfig=config)] == [f"s.dnsConfig.{field}"]


def test_a_search_domain_may_be_absolute() -> None:
    assert wrong(dnsConfig={"searches": ["cluster.local."]}) == []


def test_only_a_pod_on_a_node_mirrors_one_of_the_node() -> None:
    annotations = {"kubernetes.io/config.mirror": "x"}
    assert pod_annotation_errors(annotations, {"nodeName": "n"}, "a") == []
    (error,) = pod_annotation_errors(annotations, {}, "a")
    assert error.message.endswith("must set spec.nodeName if mirror pod annotation is set")


@pytest.mark.parametrize(
    ("cost", "good"),
    [
        ("0", True),
        ("-5", True),
        ("2147483647", True),
        ("-2147483648", True),
        ("2147483648", False),
        ("+1", False),
        ("01", False),
        ("", False),
        ("-", False),
        ("٣", False),
        ("9" * 5000, False),
    ],
)
def test_the_cost_of_deleting_a_pod_is_a_plain_number(cost: str, good: bool) -> None:
    key = "controller.kubernetes.io/pod-deletion-cost"
    assert (pod_annotation_errors({key: cost}, {}, "a") == []) is good


def test_a_template_is_judged_as_its_pods_will_be() -> None:
    spec: Object = {"containers": [container()]}
    default_pod_spec(spec)
    metadata = {"labels": {"a b": "c"}, "annotations": {"a b": "c"}}
    fields = [e.field for e in template_errors({"metadata": metadata, "spec": spec}, "t")]
    assert fields == ["t.labels", "t.annotations"]
    spec["ephemeralContainers"] = [container("e")]
    default_pod_spec(spec)
    (error,) = template_errors({"spec": spec}, "t")
    assert str(error) == (
        "t.spec.ephemeralContainers: Forbidden: ephemeral containers not allowed in pod template"
    )
