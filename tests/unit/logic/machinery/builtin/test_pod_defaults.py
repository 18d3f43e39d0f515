"""What is filled in where a pod says nothing, and what only a pod gets and no template."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.objects import Object
from skerry.logic.machinery.builtin.pod_defaults import (
    default_claim_spec,
    default_container,
    default_pod,
    default_pod_spec,
    default_template,
    default_volume,
    pull_policy,
)


def volume(**source: Any) -> Object:
    made: Object = {"name": "v", **source}
    default_volume(made)
    return {key: value for key, value in made.items() if key != "name"}


def container(**fields: Any) -> Object:
    made: Object = {"name": "c", "image": "a:1", **fields}
    default_container(made)
    return made


def test_empty_words_are_filled_in_like_missing_ones() -> None:
    spec: Object = {"restartPolicy": "", "dnsPolicy": None, "schedulerName": "mine"}
    default_pod_spec(spec)
    assert spec == {
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "mine",
        "terminationGracePeriodSeconds": 30,
        "securityContext": {},
    }


def test_no_grace_at_all_is_a_choice() -> None:
    spec: Object = {"terminationGracePeriodSeconds": 0}
    default_pod_spec(spec)
    assert spec["terminationGracePeriodSeconds"] == 0


def test_less_grace_than_none_is_a_second_of_pods_and_stays_in_templates() -> None:
    pod: Object = {"spec": {"terminationGracePeriodSeconds": -1}}
    default_pod(pod)
    assert pod["spec"]["terminationGracePeriodSeconds"] == 1
    template: Object = {"template": {"spec": {"terminationGracePeriodSeconds": -1}}}
    default_template(template)
    assert template["template"]["spec"]["terminationGracePeriodSeconds"] == -1


@pytest.mark.parametrize("field", ["serviceAccount", "serviceAccountName"])
def test_the_old_and_the_new_name_of_the_account_say_the_same(field: str) -> None:
    spec: Object = {field: "a"}
    default_pod_spec(spec)
    assert spec["serviceAccount"] == spec["serviceAccountName"] == "a"


def test_the_new_name_of_the_account_wins() -> None:
    spec: Object = {"serviceAccount": "old", "serviceAccountName": "new"}
    default_pod_spec(spec)
    assert spec["serviceAccount"] == spec["serviceAccountName"] == "new"


@pytest.mark.parametrize(
    ("given_", "filled"),
    [
        ({}, {"emptyDir": {}}),
        ({"configMap": {"name": "m"}}, {"configMap": {"name": "m", "defaultMode": 0o644}}),
        ({"secret": {"defaultMode": 0o400}}, {"secret": {"defaultMode": 0o400}}),
        ({"hostPath": {"path": "/"}}, {"hostPath": {"path": "/", "type": ""}}),
        ({"hostPath": {"type": "File"}}, {"hostPath": {"type": "File"}}),
        ({"iscsi": {"iscsiInterface": ""}}, {"iscsi": {"iscsiInterface": "default"}}),
        ({"emptyDir": {"sizeLimit": "1024Mi"}}, {"emptyDir": {"sizeLimit": "1Gi"}}),
        ({"nfs": {"server": "s"}}, {"nfs": {"server": "s"}}),
        (
            {"ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
            {"ephemeral": {"volumeClaimTemplate": {"spec": {"volumeMode": "Filesystem"}}}},
        ),
        (
            {"downwardAPI": {"items": [{"fieldRef": {"fieldPath": "metadata.name"}}]}},
            {
                "downwardAPI": {
                    "items": [{"fieldRef": {"fieldPath": "metadata.name", "apiVersion": "v1"}}],
                    "defaultMode": 0o644,
                }
            },
        ),
        (
            {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
            {
                "projected": {
                    "sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}}],
                    "defaultMode": 0o644,
                }
            },
        ),
    ],
)
def test_a_volume_is_filled_in_by_its_source(given_: Object, filled: Object) -> None:
    assert volume(**given_) == filled


def test_a_claim_is_for_a_file_system_unless_it_says() -> None:
    spec: Object = {"resources": {"requests": {"storage": "1024Mi"}}}
    default_claim_spec(spec)
    assert spec == {"volumeMode": "Filesystem", "resources": {"requests": {"storage": "1Gi"}}}
    block: Object = {"volumeMode": "Block"}
    default_claim_spec(block)
    assert block == {"volumeMode": "Block"}


def test_amounts_are_printed_as_the_server_does() -> None:
    made = container(resources={"limits": {"cpu": "0.5"}, "requests": {"memory": "1e3"}})
    assert made["resources"] == {"limits": {"cpu": "500m"}, "requests": {"memory": "1e3"}}


def test_a_divisor_nobody_wrote_is_zero() -> None:
    reference = {"resource": "limits.cpu"}
    made = container(env=[{"name": "A", "valueFrom": {"resourceFieldRef": reference}}])
    assert made["env"][0]["valueFrom"]["resourceFieldRef"]["divisor"] == "0"


def test_hooks_and_probes_ask_for_the_root_over_http() -> None:
    made = container(
        lifecycle={"preStop": {"httpGet": {"port": 1}}},
        startupProbe={"httpGet": {"port": 1, "scheme": "HTTPS"}, "timeoutSeconds": 0},
        livenessProbe={"grpc": {"port": 1}},
    )
    assert made["lifecycle"]["preStop"]["httpGet"] == {"port": 1, "path": "/", "scheme": "HTTP"}
    assert made["startupProbe"]["httpGet"]["scheme"] == "HTTPS"
    # No time at all is no choice: Kubernetes takes it for an unset one.
    assert made["startupProbe"]["timeoutSeconds"] == 1
    assert made["livenessProbe"]["grpc"]["service"] == ""


def test_only_a_pod_gets_requests_from_limits_and_links_to_services() -> None:
    spec: Object = {
        "containers": [
            {"image": "a", "resources": {"limits": {"cpu": "1", "memory": "2"},
                                         "requests": {"cpu": "500m"}}}
        ]
    }  # fmt: skip
    pod: Object = {"spec": deepcopy(spec)}
    default_pod(pod)
    resources = pod["spec"]["containers"][0]["resources"]
    assert resources["requests"] == {"cpu": "500m", "memory": "2"}
    assert pod["spec"]["enableServiceLinks"] is True
    holder: Object = {"template": {"spec": deepcopy(spec)}}
    default_template(holder)
    made = holder["template"]["spec"]
    assert made["containers"][0]["resources"]["requests"] == {"cpu": "500m"}
    assert "enableServiceLinks" not in made


def test_only_on_the_network_of_the_node_ports_are_the_nodes() -> None:
    def port_of(**spec: Any) -> Object:
        pod: Object = {
            "spec": {"containers": [{"image": "a", "ports": [{"containerPort": 80}]}], **spec}
        }
        default_pod(pod)
        port: Object = pod["spec"]["containers"][0]["ports"][0]
        return port

    assert port_of(hostNetwork=True)["hostPort"] == 80
    assert "hostPort" not in port_of()


def test_a_workload_without_a_template_gets_one_that_can_be_judged() -> None:
    holder: Object = {}
    default_template(holder)
    assert holder["template"]["spec"]["restartPolicy"] == "Always"
    pod: Object = {}
    default_pod(pod)
    assert pod["spec"]["restartPolicy"] == "Always"


@given(st.text(max_size=40))
def test_any_text_has_one_of_two_pull_policies(image: str) -> None:
    assert pull_policy(image) in ("Always", "IfNotPresent")


@given(
    st.sampled_from(["nginx", "a/b", "host.io:5000/a/b-c", "[::1]:80/x"]),
    st.from_regex(r"\A[A-Za-z0-9_][-.A-Za-z0-9_]{0,20}\Z").filter(lambda tag: tag != "latest"),
)
def test_a_tag_that_does_not_move_is_pulled_once(path: str, tag: str) -> None:
    assert pull_policy(f"{path}:{tag}") == "IfNotPresent"
    assert pull_policy(path) == pull_policy(f"{path}:latest") == "Always"


def test_a_very_long_image_is_not_read() -> None:
    assert pull_policy("a" * 2049) == "IfNotPresent"


@given(st.booleans(), st.sampled_from([{}, {"cpu": "1"}, {"cpu": "0.5", "memory": "1Ki"}]))
def test_filling_in_twice_changes_nothing_more(host: bool, limits: Object) -> None:
    pod: Object = {
        "spec": {
            "hostNetwork": host,
            "containers": [
                {
                    "image": "a",
                    "resources": {"limits": dict(limits)},
                    "ports": [{"containerPort": 1}],
                    "readinessProbe": {"httpGet": {"port": 1}},
                }
            ],
            "volumes": [{"name": "a"}, {"name": "b", "projected": {"sources": []}}],
        }
    }
    default_pod(pod)
    once = deepcopy(pod)
    default_pod(pod)
    assert pod == once
