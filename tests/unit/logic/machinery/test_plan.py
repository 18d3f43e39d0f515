"""Plans and their targets, as logs and errors name them."""

from __future__ import annotations

import pytest

from skerry.api.kinds import GroupVersionResource
from skerry.logic.machinery.plan import Create, Delete, Plan, Target

PODS = GroupVersionResource("", "v1", "pods")


@pytest.mark.parametrize(
    ("target", "text"),
    [
        (Target(PODS, "a"), "pods a"),
        (Target(PODS, "a", "ns"), "pods ns/a"),
        (Target(PODS, "a", "ns", "root"), "pods root|ns/a"),
        (
            Target(GroupVersionResource("apps", "v1", "deployments"), "a", cluster="root"),
            "deployments.apps root|a",
        ),
    ],
)
def test_a_target_says_type_cluster_namespace_and_name(target: Target, text: str) -> None:
    assert str(target) == text


def test_a_plan_is_its_actions_in_order_and_an_empty_one_is_false() -> None:
    made = Create(Target(PODS, "a"), {}, reason="Missing")
    removed = Delete(Target(PODS, "b"), reason="Surplus")
    plan = Plan([made, removed])
    assert list(plan) == [made, removed]
    assert plan
    assert not Plan([])
