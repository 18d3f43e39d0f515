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
