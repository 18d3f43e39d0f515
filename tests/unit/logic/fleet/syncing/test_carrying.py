"""What of an object travels."""

from __future__ import annotations

from skerry.api.objects import Object
from skerry.logic.fleet.syncing.carrying import carried
from tests.kit.chain.synced_objects import whole_object


def test_content_travels_and_what_belongs_to_the_place_stays() -> None:
    assert carried(whole_object()) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "page",
            "namespace": "shop",
            "labels": {"app": "x"},
            "annotations": {"mine": "yes"},
        },
        "data": {"a": "1"},
    }


def test_a_job_leaves_its_generated_selector_behind() -> None:
    labels = {"controller-uid": "u", "job-name": "j", "app": "x"}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {
            "selector": {"matchLabels": {"controller-uid": "u"}},
            "template": {"metadata": {"labels": labels, "creationTimestamp": None}, "spec": {}},
        },
    }
    assert carried(job)["spec"] == {"template": {"metadata": {"labels": {"app": "x"}}, "spec": {}}}
    job["spec"]["manualSelector"] = True  # type: ignore[index]
    assert "selector" in carried(job)["spec"]


def test_a_service_keeps_its_wish_for_no_address_but_no_address() -> None:
    def service(address: str) -> Object:
        spec = {"clusterIP": address, "clusterIPs": [address], "ports": []}
        return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": spec}

    assert carried(service("10.0.0.1"))["spec"] == {"ports": []}
    assert carried(service("None"))["spec"]["clusterIP"] == "None"


def test_notes_of_tools_stay_with_the_source_and_pod_templates_are_content() -> None:
    tracked = {"argocd.argoproj.io/instance": "shop", "app.kubernetes.io/instance": "shop"}
    deployment: Object = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "web",
            "labels": {**tracked, "kustomize.toolkit.fluxcd.io/name": "shop"},
            "annotations": {"meta.helm.sh/release-name": "shop", "note": "n"},
        },
        "spec": {
            "selector": {"matchLabels": tracked},
            "template": {"metadata": {"labels": tracked, "annotations": tracked}},
        },
    }
    made = carried(deployment)
    assert made["metadata"] == {
        "name": "web",
        "labels": {"app.kubernetes.io/instance": "shop"},
        "annotations": {"note": "n"},
    }
    assert made["spec"] == deployment["spec"]


def of(api_version: str, kind: str, **content: object) -> Object:
    return carried({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, **content})


def test_a_pod_is_scheduled_where_it_runs() -> None:
    assert of("v1", "Pod", spec={"nodeName": "here", "containers": []})["spec"] == {
        "containers": []
    }


def test_a_service_account_leaves_its_tokens_and_a_namespace_its_finalizers() -> None:
    assert "secrets" not in of("v1", "ServiceAccount", secrets=[{"name": "t"}])
    assert "spec" not in of("v1", "Namespace", spec={"finalizers": ["kubernetes"]})


def test_the_null_time_stamp_of_typed_clients_is_left_out_of_templates() -> None:
    stamped = {"metadata": {"creationTimestamp": None, "labels": {"a": "b"}}, "spec": {}}
    found = of("apps/v1", "Deployment", spec={"replicas": 1, "template": stamped})
    assert found["spec"]["template"]["metadata"] == {"labels": {"a": "b"}}
    others: list[object] = ["odd", {"template": "odd"}, {"template": {"metadata": {"labels": {}}}}]
    for spec in others:
        assert of("apps/v1", "StatefulSet", spec=spec)["spec"] == spec, "left as it is"


def test_a_job_whose_template_says_nothing_else_has_no_metadata_left() -> None:
    template = {"metadata": {"labels": {"job-name": "j"}}, "spec": {}}
    assert of("batch/v1", "Job", spec={"template": template})["spec"] == {"template": {"spec": {}}}
    assert of("batch/v1", "Job")["spec"] == {"template": {}}


def test_what_is_taken_out_of_a_copy_stays_in_the_original() -> None:
    service: Object = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "x"},
        "spec": {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ports": []},
    }
    assert carried(service)["spec"] == {"ports": []}
    assert service["spec"]["clusterIP"] == "10.0.0.1"
