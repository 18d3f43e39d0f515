from __future__ import annotations

from typing import Any

import pytest

from skerry.api.errors import Forbidden, NotFound
from skerry.api.keys import PLAIN
from skerry.kit.steps import finished
from skerry.logic.machinery.rbac.bootstrap import bootstrap_objects
from skerry.logic.machinery.rbac.policy import MAX_LOOKED_AT
from skerry.server.access import Attributes
from skerry.server.security.authorization import RbacAuthorizer, forbidden
from skerry.server.user import User
from tests.kit.machinery.roles import READ_PODS, binding, group, role, user

BOB = User("bob", groups=("system:authenticated",))


def authorizer(*objects: dict[str, Any], cluster: str = PLAIN) -> RbacAuthorizer:
    built = RbacAuthorizer()
    for obj in objects:
        built.put(cluster, obj["kind"], obj)
    return built


def check(a: RbacAuthorizer, *written: Any) -> None:
    finished(a.check_write(*written))


def get_pod(name: str = "x", cluster: str = PLAIN) -> Attributes:
    return Attributes(cluster, "get", "", "v1", "pods", "", "default", name)


def test_masters_may_do_everything_even_without_any_objects() -> None:
    assert RbacAuthorizer().authorize(User("x", groups=("system:masters",)), get_pod()).allowed


def test_objects_of_one_cluster_do_not_count_in_another() -> None:
    a = authorizer(role("r", READ_PODS), binding("b", "ClusterRole", "r", user("bob")), cluster="c")
    assert a.authorize(BOB, get_pod(cluster="c")).allowed
    assert not a.authorize(BOB, get_pod(cluster="d")).allowed
    a.remove_cluster("c")
    assert not a.authorize(BOB, get_pod(cluster="c")).allowed


def test_decisions_change_with_the_objects_though_they_are_remembered() -> None:
    a = authorizer(role("r", READ_PODS))
    assert not a.authorize(BOB, get_pod()).allowed
    a.put(PLAIN, "ClusterRoleBinding", binding("b", "ClusterRole", "r", user("bob")))
    assert a.authorize(BOB, get_pod()).allowed
    finished(a.removing(PLAIN, "ClusterRole", "", "r"))
    decision = a.authorize(BOB, get_pod())
    assert not decision.allowed
    assert decision.reason == 'RBAC: clusterrole.rbac.authorization.k8s.io "r" not found'


def test_names_are_distinguished_where_rules_name_them() -> None:
    only = {**READ_PODS, "resourceNames": ["mine"]}
    a = authorizer(role("r", only), binding("b", "ClusterRole", "r", group("system:authenticated")))
    for _ in range(2):
        assert a.authorize(BOB, get_pod("mine")).allowed
        assert not a.authorize(BOB, get_pod("yours")).allowed
        assert not a.authorize(BOB, get_pod("")).allowed


def test_a_thousand_names_leave_one_decision() -> None:
    a = authorizer(role("r", READ_PODS), binding("b", "ClusterRole", "r", user("bob")))
    for number in range(1000):
        assert a.authorize(BOB, get_pod(str(number))).allowed
    assert len(a._clusters[PLAIN].decisions) == 1


def test_decisions_are_kept_within_a_size_however_many_are_made() -> None:
    a = RbacAuthorizer(decisions_bytes=10_000)
    a.put(PLAIN, "ClusterRole", role("r", READ_PODS))
    everybody = group("all")
    a.put(PLAIN, "ClusterRoleBinding", binding("b", "ClusterRole", "r", everybody))
    for number in range(1000):
        assert a.authorize(User(f"user-{number}", groups=("all",)), get_pod()).allowed
    assert 0 < len(a._clusters[PLAIN].decisions) < 25


def test_refusals_are_kept_within_a_size_of_their_own() -> None:
    a = authorizer(role("r", READ_PODS), binding("b", "ClusterRole", "r", user("bob")))
    a._refusals_limit = 10_000
    assert a.authorize(BOB, get_pod()).allowed
    for number in range(1000):
        assert not a.authorize(User("eve"), get_pod(f"pod-{number}")).allowed
    assert 0 < len(a._refusals) < 25
    assert len(a._clusters[PLAIN].decisions) == 1


@pytest.mark.parametrize("allowed", [True, False])
def test_decisions_about_very_long_names_are_not_kept(allowed: bool) -> None:
    a = authorizer(role("r", READ_PODS), binding("b", "ClusterRole", "r", user("bob")))
    who = BOB if allowed else User("eve")
    for number in range(10):
        long = Attributes(PLAIN, "get", "", "v1", "pods", "", "n" * 30_000, f"{number}")
        assert a.authorize(who, long).allowed is allowed
    assert not a._clusters[PLAIN].decisions
    assert not a._refusals


def test_a_refusal_ends_with_the_policy_it_was_made_under() -> None:
    a = authorizer(role("r", READ_PODS))
    assert not a.authorize(BOB, get_pod("x")).allowed
    a.put(PLAIN, "ClusterRoleBinding", binding("b", "ClusterRole", "r", user("bob")))
    assert a.authorize(BOB, get_pod("x")).allowed


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        (
            Attributes(PLAIN, "list", "", "v1", "pods", "", "default"),
            (
                'pods is forbidden: User "bob" cannot list resource "pods" in API group "" '
                'in the namespace "default"'
            ),
        ),
        (
            Attributes(PLAIN, "get", "apps", "v1", "deployments", "scale", "ns", "web"),
            (
                'deployments.apps "web" is forbidden: User "bob" cannot get resource '
                '"deployments/scale" in API group "apps" in the namespace "ns"'
            ),
        ),
        (
            Attributes(PLAIN, "list", "", "v1", "nodes"),
            (
                'nodes is forbidden: User "bob" cannot list resource "nodes" in API group "" '
                "at the cluster scope"
            ),
        ),
        (
            Attributes(PLAIN, "get", path="/foo"),
            'forbidden: User "bob" cannot get path "/foo"',
        ),
    ],
)
def test_denials_are_worded_as_in_kubernetes(attributes: Attributes, message: str) -> None:
    assert forbidden(BOB, attributes).message == message
    assert forbidden(BOB, attributes, "RBAC: x").message == f"{message}: RBAC: x"


def test_nobody_creates_a_role_with_more_than_they_hold() -> None:
    a = authorizer(role("r", READ_PODS), binding("b", "ClusterRole", "r", user("bob")))
    check(a, BOB, PLAIN, role("mine", READ_PODS), None)
    with pytest.raises(Forbidden) as error:
        check(a, BOB, PLAIN, role("more", {**READ_PODS, "verbs": ["delete"]}), None)
    assert error.value.message == (
        'clusterroles.rbac.authorization.k8s.io "more" is forbidden: user "bob" '
        '(groups=["system:authenticated"]) is attempting to grant RBAC permissions not '
        'currently held:\n{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}'
    )


def test_an_update_that_grants_nothing_new_passes() -> None:
    strong = role("strong", {**READ_PODS, "verbs": ["*"]})
    check(authorizer(), BOB, PLAIN, {**strong, "extra": 1}, strong)


def test_escalate_lets_through_what_is_not_held() -> None:
    escalate = {
        "verbs": ["escalate"],
        "apiGroups": ["rbac.authorization.k8s.io"],
        "resources": ["clusterroles"],
        "resourceNames": ["more"],
    }
    a = authorizer(role("r", escalate), binding("b", "ClusterRole", "r", user("bob")))
    strong = {**READ_PODS, "verbs": ["*"]}
    check(a, BOB, PLAIN, role("more", strong), None)
    with pytest.raises(Forbidden):
        check(a, BOB, PLAIN, role("other", strong), None)


def test_aggregation_needs_full_authority() -> None:
    a = authorizer(*bootstrap_objects())
    aggregated = role("agg", aggregationRule={"clusterRoleSelectors": [{}]})
    with pytest.raises(Forbidden, match="must have cluster-admin privileges"):
        check(a, BOB, PLAIN, aggregated, None)
    a.put(PLAIN, "ClusterRoleBinding", binding("b", "ClusterRole", "cluster-admin", user("bob")))
    check(a, BOB, PLAIN, aggregated, None)


def test_nobody_binds_a_role_they_do_not_hold_unless_they_may_bind_it() -> None:
    a = authorizer(*bootstrap_objects())
    wanted = binding("mine", "ClusterRole", "view", user("eve"), namespace="ns")
    with pytest.raises(Forbidden, match="attempting to grant RBAC permissions not currently held"):
        check(a, BOB, PLAIN, wanted, None)
    held = binding("held", "ClusterRole", "edit", user("bob"), namespace="ns")
    a.put(PLAIN, "RoleBinding", held)
    check(a, BOB, PLAIN, wanted, None)
    with pytest.raises(Forbidden):
        check(a, BOB, PLAIN, {**wanted, "metadata": {"name": "m", "namespace": "o"}}, None)
    may_bind = {
        "verbs": ["bind"],
        "apiGroups": ["rbac.authorization.k8s.io"],
        "resources": ["clusterroles"],
        "resourceNames": ["admin"],
    }
    a.put(PLAIN, "ClusterRole", role("binder", may_bind))
    a.put(PLAIN, "ClusterRoleBinding", binding("b", "ClusterRole", "binder", user("bob")))
    check(a, BOB, PLAIN, binding("x", "ClusterRole", "admin", user("e"), namespace="o"), None)


def test_a_binding_to_a_role_that_does_not_exist_is_not_found_for_who_may_not_bind_it() -> None:
    with pytest.raises(NotFound):
        check(authorizer(), BOB, PLAIN, binding("x", "ClusterRole", "gone", user("e")), None)


def test_rules_of_a_master_include_everything() -> None:
    a = RbacAuthorizer()
    found = a.rules_for(User("m", groups=("system:masters",)), PLAIN, "ns")
    assert found.rules[0].verbs == ("*",)


def test_a_role_that_gathers_too_much_is_not_bound_without_the_right_to_bind() -> None:
    everything: Any = {"clusterRoleSelectors": [{}]}
    parts = [role(f"r{i:05}", READ_PODS) for i in range(MAX_LOOKED_AT + 10)]
    a = authorizer(
        *parts,
        role("all", aggregationRule=everything),
        binding("b", "ClusterRole", "r00000", user("bob")),
    )
    with pytest.raises(Forbidden, match="gathers too much"):
        check(a, BOB, PLAIN, binding("x", "ClusterRole", "all", user("eve")), None)
