"""What is said of pods that are there when a level is raised, and which changes matter."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.objects import Object
from skerry.logic.machinery.pod_security.namespaces import (
    ExistingPods,
    exemption_warning,
    prioritized,
    tightens,
)
from skerry.logic.machinery.pod_security.policy import PREFIX, LevelVersion, Policy, policy_of
from skerry.logic.machinery.pod_security.subjects import is_significant, template_of
from tests.kit.machinery.pods import container, spec_of

RESTRICTED = LevelVersion("restricted", None)
BASELINE = LevelVersion("baseline", None)


def pod(name: str, owner: str = "", **spec: Any) -> Object:
    metadata: Object = {"name": name}
    if owner:
        metadata["ownerReferences"] = [{"uid": owner, "controller": True}]
    return {"metadata": metadata, "spec": spec_of(container("a"), **spec)}


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        (BASELINE, BASELINE, False),
        (LevelVersion(), RESTRICTED, False),
        (BASELINE, RESTRICTED, False),
        (RESTRICTED, BASELINE, True),
        (LevelVersion("baseline", 30), BASELINE, True),
        (LevelVersion("baseline", 30), LevelVersion("restricted", 30), False),
    ],
)
def test_only_a_tighter_level_is_tried_on_existing_pods(
    new: LevelVersion, old: LevelVersion, expected: bool
) -> None:
    assert tightens(new, old) is expected


def test_pods_that_break_a_level_alike_are_counted_together() -> None:
    found = ExistingPods("web", BASELINE)
    for item in (
        pod("c", hostNetwork=True),
        pod("a", hostNetwork=True),
        pod("b", hostNetwork=True),
        pod("z", hostPID=True, volumes=[{"name": "v", "hostPath": {}}]),
        pod("good"),
    ):
        found.check(item)
    assert found.warnings(5) == [
        (
            'existing pods in namespace "web" violate the new PodSecurity enforce level '
            '"baseline:latest"'
        ),
        "a (and 2 other pods): host namespaces",
        "z: host namespaces, hostPath volumes",
    ]


def test_two_pods_alike_are_one_and_one_other() -> None:
    found = ExistingPods("web", BASELINE)
    found.check(pod("b", hostIPC=True))
    found.check(pod("a", hostIPC=True))
    assert found.warnings(2)[1] == "a (and 1 other pod): host namespaces"


def test_pods_that_keep_the_level_are_not_mentioned() -> None:
    found = ExistingPods("web", BASELINE)
    found.check(pod("a"))
    assert found.warnings(1) == []
    assert found.warnings(9) == [
        "new PodSecurity enforce level only checked against the first 1 of 9 existing pods"
    ]


def test_one_pod_of_each_controller_comes_first() -> None:
    pods = [pod("a1", "a"), pod("a2", "a"), pod("own"), pod("b1", "b"), pod("other")]
    names = [item["metadata"]["name"] for item in prioritized(pods, ())]
    assert names == ["a1", "own", "b1", "other", "a2"]
    exempt = [*pods, pod("vm", runtimeClassName="kata")]
    assert len(prioritized(exempt, {"kata"})) == 5


def test_labels_of_an_exempt_namespace_are_said_to_be_ignored() -> None:
    labels = {f"{PREFIX}enforce": "restricted", f"{PREFIX}audit": "baseline"}
    policy, _ = policy_of(labels)
    assert exemption_warning("kube-system", policy, labels, Policy()) == (
        'namespace "kube-system" is exempt from Pod Security, and the policy '
        "(enforce=restricted:latest, audit=baseline:latest) will be ignored"
    )
    assert exemption_warning("kube-system", Policy(), {}, Policy()) == ""


@pytest.mark.parametrize(
    ("kind", "obj"),
    [
        (("apps", "deployments"), {"spec": {"template": {"spec": {"x": 1}}}}),
        (("", "podtemplates"), {"template": {"spec": {"x": 1}}}),
        (
            ("batch", "cronjobs"),
            {"spec": {"jobTemplate": {"spec": {"template": {"spec": {"x": 1}}}}}},
        ),
    ],
)
def test_the_template_is_found_where_its_kind_has_it(kind: tuple[str, str], obj: Object) -> None:
    template = template_of(kind, obj)
    assert template is not None
    assert template["spec"] == {"x": 1}


def test_what_has_no_template_has_nothing_to_check() -> None:
    assert template_of(("", "replicationcontrollers"), {"spec": {}}) is None
    assert template_of(("", "configmaps"), {"spec": {"template": {}}}) is None
    assert template_of(("batch", "cronjobs"), {"spec": {"jobTemplate": None}}) is None


def test_only_images_and_added_containers_matter_in_a_running_pod() -> None:
    old = pod("a", hostNetwork=True)
    labelled = {**old, "metadata": {"name": "a", "labels": {"x": "y"}}}
    assert not is_significant(labelled, old)
    other = {"metadata": {"name": "a"}, "spec": spec_of({**container("a"), "image": "other"})}
    assert is_significant(other, old)
    added = {**old, "spec": {**old["spec"], "ephemeralContainers": [container("debug")]}}
    assert is_significant(added, old)
    assert not is_significant(added, added)
    more = {**old, "spec": spec_of(container("a"), container("b"))}
    assert is_significant(more, old)
