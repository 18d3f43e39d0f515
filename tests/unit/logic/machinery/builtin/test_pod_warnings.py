"""Pods that are accepted, with a warning: each surprise, and its absence."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.objects import Object
from skerry.logic.machinery.builtin.pod_warnings import pod_warnings, template_warnings


def of(**spec: Any) -> list[str]:
    return pod_warnings({"spec": spec})


def of_ports(*ports: Object) -> list[str]:
    return of(containers=[{"name": "c", "ports": list(ports)}])


def of_env(*variables: Object) -> list[str]:
    return of(containers=[{"name": "c", "env": list(variables)}])


def test_an_ordinary_pod_earns_no_warning() -> None:
    assert pod_warnings({}) == []
    assert of(nodeSelector={"kubernetes.io/os": "linux"}, volumes=[{"emptyDir": {}}]) == []


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (
            {"nodeSelector": {"beta.kubernetes.io/os": "linux"}},
            (
                "spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "
                '"kubernetes.io/os" instead'
            ),
        ),
        (
            {"volumes": [{"name": "a"}, {"name": "v", "gitRepo": {}}]},
            "spec.volumes[1].gitRepo: deprecated in v1.11",
        ),
        (
            {"hostAliases": [{"ip": "1.1.1.1"}, {"ip": "1.1.1.1"}]},
            'spec.hostAliases[1].ip: duplicate ip "1.1.1.1"',
        ),
        (
            {"imagePullSecrets": [{"name": "a"}, {"name": "a"}]},
            'spec.imagePullSecrets[1].name: duplicate name "a"',
        ),
        (
            {"overhead": {"memory": "500m"}},
            'spec.overhead[memory]: fractional byte value "500m" is invalid, must be an integer',
        ),
        (
            {"terminationGracePeriodSeconds": -1},
            (
                "spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and "
                "will be treated as 1"
            ),
        ),
        (
            {"topologySpreadConstraints": [{"topologyKey": "zone"}]},
            (
                "spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in "
                "matching no pod"
            ),
        ),
    ],
)
def test_what_will_surprise_is_named_with_its_field(spec: Object, text: str) -> None:
    assert of(**spec) == [text]


def test_a_spread_over_a_label_that_is_gone_is_named() -> None:
    key = "failure-domain.beta.kubernetes.io/zone"
    (text,) = of(topologySpreadConstraints=[{"topologyKey": key, "labelSelector": {}}])
    assert text.startswith(f"spec.topologySpreadConstraints[0].topologyKey: {key} is deprecated")


def test_annotations_that_do_nothing_any_more_are_named() -> None:
    metadata = {"annotations": {"security.alpha.kubernetes.io/sysctls": "x", "fine": "y"}}
    (text,) = pod_warnings({"metadata": metadata})
    assert text.startswith("metadata.annotations[security.alpha.kubernetes.io/sysctls]: non-")


def test_fractions_of_bytes_are_named_in_every_container_and_no_other_fraction_is() -> None:
    odd = {"limits": {"memory": "1500m", "cpu": "500m"}, "requests": {"memory": "1Gi"}}
    texts = of(initContainers=[{"resources": odd}], containers=[{"resources": odd}])
    assert [text.split(": ")[0] for text in texts] == [
        "spec.initContainers[0].resources.limits[memory]",
        "spec.containers[0].resources.limits[memory]",
    ]
    # What is no quantity is refused elsewhere.
    assert of(containers=[{"resources": {"limits": {"memory": "lots"}}}]) == []


@pytest.mark.parametrize(
    ("second", "warned"),
    [
        ({"name": "A", "value": "2"}, True),
        ({"name": "A", "value": "$(A)"}, True),
        ({"name": "A", "value": "$(A):more"}, False),
        ({"name": "A", "valueFrom": {"fieldRef": {}}}, True),
        ({"name": "B", "value": "2"}, False),
    ],
)
def test_a_variable_may_extend_an_earlier_one_and_not_hide_it(second: Object, warned: bool) -> None:
    texts = of_env({"name": "A", "value": "1"}, second)
    assert bool(texts) is warned
    assert all("spec.containers[0].env[1]: hides previous" in text for text in texts)


PORT: Object = {"containerPort": 80, "protocol": "TCP"}


@pytest.mark.parametrize(
    ("second", "word"),
    [
        ({}, "overlapping"),
        ({"hostPort": 8080}, "duplicate"),
        ({"hostPort": 8080, "hostIP": "1.1.1.1"}, "dangerously ambiguous"),
        ({"hostPort": 9090}, ""),
        ({"protocol": "UDP", "hostPort": 8080}, ""),
    ],
)
def test_ports_that_are_alike_are_named_by_how_alike(second: Object, word: str) -> None:
    texts = of_ports({**PORT, "hostPort": 8080}, {**PORT, **second})
    wanted = f"spec.containers[0].ports[1]: {word} port definition with spec.containers[0].ports[0]"
    assert texts == [wanted] * bool(word)


def test_many_equal_ports_are_not_all_compared_with_each_other() -> None:
    assert len(of_ports(*[PORT] * 100)) < 100 * 8


def test_terms_that_match_no_pod_are_named() -> None:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    affinity = {
        "podAffinity": {required: [{"topologyKey": "zone"}, {"labelSelector": {}}]},
        "podAntiAffinity": {preferred: [{"podAffinityTerm": {}}]},
    }
    assert [text.split(": ")[0] for text in of(affinity=affinity)] == [
        f"spec.affinity.podAffinity.{required}[0].labelSelector",
        f"spec.affinity.podAntiAffinity.{preferred}[0].podAffinityTerm.labelSelector",
    ]


def test_a_template_is_named_by_where_it_stands() -> None:
    (text,) = template_warnings({"spec": {"terminationGracePeriodSeconds": -1}}, "spec.template")
    assert text.startswith("spec.template.spec.terminationGracePeriodSeconds: ")
