"""Specs that nothing was found in are recognised, and no others."""

from __future__ import annotations

from typing import Any

from skerry.logic.machinery.builtin.known_specs import KnownSpecs, essence_of, token_volume_name
from skerry.logic.machinery.builtin.resources import builtin_resources

UID = "0a1b2c3d-0000-4000-8000-000000000000"


def pod(uid: str = UID, *, mounted: str = "", **spec: Any) -> dict[str, Any]:
    name = token_volume_name(uid)
    mounts = [{"name": mounted or name, "mountPath": "/token"}]
    return {
        "metadata": {"name": f"pod-{uid[:5]}", "namespace": "default", "uid": uid},
        "spec": {
            "containers": [
                {
                    "name": "c",
                    "image": "i",
                    "imagePullPolicy": "Always",
                    "terminationMessagePolicy": "File",
                    "volumeMounts": mounts,
                }
            ],
            "restartPolicy": "Always",
            "dnsPolicy": "ClusterFirst",
            "terminationGracePeriodSeconds": 30,
            "volumes": [{"name": name, "emptyDir": {}}],
            **spec,
        },
    }


def test_pods_of_one_template_have_one_essence() -> None:
    assert essence_of(pod()) == essence_of(pod("ffffffff-1111-4000-8000-000000000000"))


def test_a_name_that_only_looks_like_that_of_the_token_volume_counts() -> None:
    assert essence_of(pod()) != essence_of(pod(mounted="kube-api-access-fffff"))
    assert essence_of(pod()) != essence_of(pod(mounted="kube-api-access"))


def test_true_is_not_one() -> None:
    assert essence_of(pod(hostNetwork=True)) != essence_of(pod(hostNetwork=1))


def test_volumes_that_must_fit_the_name_of_the_pod_are_looked_at_each_time() -> None:
    claims = [{"name": "v", "ephemeral": {"volumeClaimTemplate": {}}}]
    assert essence_of(pod(volumes=claims)) == b""
    known = KnownSpecs()
    known.add(b"")
    assert not known.has(b"")


def test_a_wrong_pod_is_refused_however_many_good_ones_came_before() -> None:
    rules = next(each for each in builtin_resources() if each.info.kind == "Pod")
    good, wrong = pod(), pod(mounted="kube-api-access-fffff")
    assert [list(rules.validate_create(good)) for _ in range(2)] == [[], []]
    for _ in range(2):
        assert [error.field for error in rules.validate_create(wrong)] == [
            "spec.containers[0].volumeMounts[0].name"
        ]
