"""kubectl get in all its forms, describe, explain and the rest that only looks."""

from __future__ import annotations

import json

import yaml

from tests.kit.e2e.manifests import config_map, deployment, pod
from tests.kit.e2e.processes import Kubectl


def test_get_shows_the_columns_people_know(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=[deployment("web", 2), pod("solo"), config_map("c", a="1")])
    head, row = kubectl.rows("get", "deployments")
    assert head == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]
    assert row[:4] == ["web", "0/2", "0", "0"]
    head, row = kubectl.rows("get", "pods")
    assert head == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert row[:4] == ["solo", "0/1", "Pending", "0"]
    kubectl.again("get", "cm/kube-root-ca.crt")
    head, *rows = kubectl.rows("get", "cm")
    assert head == ["NAME", "DATA", "AGE"]
    assert {row[0]: row[1] for row in rows} == {"c": "1", "kube-root-ca.crt": "1"}


def test_get_wide_adds_the_columns_of_wide(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=[deployment("web"), pod("solo")])
    assert kubectl.rows("get", "deployments", "-o", "wide")[0][5:] == [
        "CONTAINERS",
        "IMAGES",
        "SELECTOR",
    ]
    head, row = kubectl.rows("get", "pods", "-o", "wide")
    assert head[5:] == ["IP", "NODE", "NOMINATED NODE", "READINESS GATES"]
    assert row[5:] == ["<none>"] * 4


def test_get_prints_yaml_json_names_jsonpath_and_custom_columns(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=config_map("c", colour="red"))
    assert yaml.safe_load(kubectl("get", "cm", "c", "-o", "yaml").out)["data"] == {"colour": "red"}
    listed = json.loads(kubectl("get", "cm", "-o", "json").out)
    assert listed["kind"] == "List"
    assert kubectl("get", "cm", "c", "-o", "name").out == "configmap/c\n"
    assert kubectl("get", "cm", "c", "-o", "jsonpath={.data.colour}").out == "red"
    columns = "custom-columns=NAME:.metadata.name,COLOUR:.data.colour"
    assert kubectl.rows("get", "cm", "c", "-o", columns) == [["NAME", "COLOUR"], ["c", "red"]]


def test_selectors_choose_and_sorting_orders(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=[pod("a", tier="web"), pod("b", tier="db"), pod("c")])
    names = ("-o", "jsonpath={.items[*].metadata.name}")
    assert kubectl("get", "pods", "-l", "tier=web", *names).out == "a"
    assert kubectl("get", "pods", "-l", "tier!=web", *names).out == "b c"
    assert kubectl("get", "pods", "-l", "tier in (web, db)", *names).out == "a b"
    assert kubectl("get", "pods", "-l", "!tier", *names).out == "c"
    assert kubectl("get", "pods", "--field-selector", "metadata.name=b", *names).out == "b"
    assert kubectl("get", "pods", "--field-selector", "status.phase!=Running", *names).out
    rows = kubectl.rows("get", "pods", "--sort-by", "{.metadata.labels.tier}", "-L", "tier")
    assert [row[0] for row in rows[1:]] == ["c", "b", "a"]


def test_an_unknown_field_label_is_refused_in_kubernetes_words(kubectl: Kubectl) -> None:
    result = kubectl("get", "pods", "--field-selector", "spec.colour=red", fails=1)
    assert "field label not supported: spec.colour" in result.err


def test_large_lists_come_in_pages(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=[config_map(f"c{n:02}") for n in range(25)])
    kubectl.again("get", "cm/kube-root-ca.crt")
    rows = kubectl.rows("get", "cm", "--chunk-size", "7")
    assert [row[0] for row in rows[1:-1]] == [f"c{n:02}" for n in range(25)]


def test_get_watch_follows_changes_with_one_head(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=pod("solo"))
    watching = kubectl.start("get", "pods", "-w", "--output-watch-events")
    assert watching.stdout is not None
    assert watching.stdout.readline().split()[:3] == ["EVENT", "NAME", "READY"]
    assert watching.stdout.readline().split()[:2] == ["ADDED", "solo"]
    kubectl("label", "pod", "solo", "a=b")
    assert watching.stdout.readline().split()[:2] == ["MODIFIED", "solo"]
    kubectl("create", "-f", "-", stdin=pod("other"))
    assert watching.stdout.readline().split()[:2] == ["ADDED", "other"]
    kubectl("delete", "pod", "solo")
    assert watching.stdout.readline().split()[:2] == ["DELETED", "solo"]
    watching.terminate()
    watching.communicate()


def test_watch_only_starts_from_now_and_respects_selectors(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=[pod("mine", a="b"), pod("other")])
    watching = kubectl.start("get", "pods", "-l", "a=b", "-w", "-o", "name")
    assert watching.stdout is not None
    assert watching.stdout.readline() == "pod/mine\n"
    kubectl("label", "pod", "other", "a=b")
    assert watching.stdout.readline() == "pod/other\n"
    watching.terminate()
    watching.communicate()


def test_describe_reports_the_events_of_an_object_from_either_api(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=pod("solo"))
    uid = kubectl("get", "pod", "solo", "-o", "jsonpath={.metadata.uid}").out
    about = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "solo",
        "namespace": kubectl.namespace,
        "uid": uid,
    }
    older = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "solo.old"},
        "involvedObject": about,
        "reason": "Pulled",
        "message": "said the old way",
        "type": "Normal",
        "source": {"component": "kubelet"},
        "count": 1,
        "firstTimestamp": "2030-01-01T00:00:00Z",
        "lastTimestamp": "2030-01-01T00:00:00Z",
    }
    newer = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "solo.new"},
        "regarding": about,
        "reason": "Scheduled",
        "action": "Binding",
        "note": "said the new way",
        "type": "Warning",
        "reportingController": "example.org/scheduler",
        "reportingInstance": "one",
        "eventTime": "2030-01-01T00:00:00.000000Z",
    }
    kubectl("create", "-f", "-", stdin=[older, newer])
    result = kubectl("describe", "pod", "solo").out
    assert "Name:             solo" in result
    assert "said the old way" in result
    assert "said the new way" in result
    head, *rows = kubectl.rows("get", "events")
    assert head == ["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert {row[2] for row in rows} == {"Pulled", "Scheduled"}
    assert "said the new way" in kubectl("events", "--for", "pod/solo").out
    assert "said the old way" in kubectl("get", "events.events.k8s.io", "-o", "yaml").out


def test_describe_knows_every_common_kind(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=[deployment("web"), config_map("c", a="1")])
    kubectl("expose", "deployment", "web", "--port", "80")
    kubectl("create", "secret", "generic", "s", "--from-literal=a=b")
    kubectl("create", "quota", "q", "--hard=pods=3")
    kubectl("create", "ingress", "i", "--rule=example.org/*=web:80")
    kubectl.again("get", "serviceaccount/default")
    for kind, name, expected in (
        ("deployment", "web", "StrategyType: RollingUpdate"),
        ("service", "web", "Type: ClusterIP"),
        ("configmap", "c", "BinaryData"),
        ("secret", "s", "a: 1 bytes"),
        ("resourcequota", "q", "pods"),
        ("ingress", "i", "example.org"),
        ("serviceaccount", "default", "Tokens:"),
        ("namespace", kubectl.namespace, "Status: Active"),
    ):
        # How far apart, is kubectl's own affair and differs between its versions.
        assert expected in " ".join(kubectl("describe", kind, name).out.split())


def test_explain_reads_the_openapi_of_built_in_kinds(kubectl: Kubectl) -> None:
    result = kubectl("explain", "deployment.spec.strategy", "--recursive").out
    assert "KIND:       Deployment" in result
    assert "rollingUpdate	<RollingUpdateDeployment>" in result
    assert "maxSurge	<IntOrString>" in result
    everything = kubectl("explain", "pod", "--recursive").out
    assert "ephemeralContainers" in everything
    assert 'field "nothing" does not exist' in kubectl("explain", "pod.nothing", fails=1).err


def test_api_resources_and_versions_list_what_is_served(admin: Kubectl) -> None:
    rows = {row[0]: row for row in admin.rows("api-resources")}
    assert rows["pods"][1:] == ["po", "v1", "true", "Pod"]
    assert rows["deployments"][1:] == ["deploy", "apps/v1", "true", "Deployment"]
    assert rows["nodes"][1:] == ["no", "v1", "false", "Node"]
    verbs = admin("api-resources", "--api-group", "apps", "-o", "wide").out
    assert "create,delete,deletecollection,get,list,patch,update,watch" in verbs
    assert "namespaces" in admin("api-resources", "--namespaced=false", "-o", "name").out.split()
    versions = admin("api-versions").out.split()
    assert {"v1", "apps/v1", "events.k8s.io/v1", "apiextensions.k8s.io/v1"} <= set(versions)


def test_version_cluster_info_config_and_raw_paths_answer(admin: Kubectl) -> None:
    version = json.loads(admin("version", "-o", "json").out)
    assert version["serverVersion"]["gitVersion"].startswith("v1.32.")
    assert "is running at" in admin("cluster-info").out
    assert admin("config", "current-context").out == "skerry\n"
    assert json.loads(admin("config", "view", "-o", "json").out)["contexts"][0]["name"] == "skerry"
    assert admin("get", "--raw", "/readyz").out == "ok"
    assert "[+]" in admin("get", "--raw", "/readyz?verbose").out
    assert "apiserver_request_total" in admin("get", "--raw", "/metrics").out
    assert "NotFound" in admin("get", "--raw", "/no/such/path", fails=1).err


def test_cluster_info_dump_reads_everything_it_wants(admin: Kubectl) -> None:
    result = admin("cluster-info", "dump", "--namespaces", "kube-system")
    assert '"kind": "NodeList"' in result.out


def test_what_is_not_there_is_reported_in_kubectls_words(kubectl: Kubectl) -> None:
    missing = kubectl("get", "pod", "nobody", fails=1).err
    assert missing == 'Error from server (NotFound): pods "nobody" not found\n'
    assert kubectl("get", "pod", "nobody", "--ignore-not-found").out == ""
    unknown = kubectl("get", "unicorns", fails=1).err
    assert 'the server doesn\'t have a resource type "unicorns"' in unknown
    assert "No resources found" in kubectl("get", "pods").err


def test_logs_and_exec_say_why_they_cannot_be_had(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=pod("solo"))
    result = kubectl("logs", "solo", fails=1).err
    assert "pod solo does not have a host assigned" in result
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "solo"},
        "target": {"kind": "Node", "name": "far-away"},
    }
    kubectl("create", "-f", "-", stdin=binding)
    assert kubectl("get", "pod", "solo", "-o", "jsonpath={.spec.nodeName}").out == "far-away"
    result = kubectl("logs", "solo", fails=1).err
    assert 'error trying to reach node "far-away": no node agent is connected' in result
    result = kubectl("exec", "solo", "--", "true", fails=1).err
    assert "no node agent is connected" in result
