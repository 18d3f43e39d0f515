"""Whatever a cluster's policy says: a foreign principal has what its qualified name was given."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from skerry.server.access import Attributes
from skerry.server.security.authorization import RbacAuthorizer
from skerry.server.user import User

RBAC = "rbac.authorization.k8s.io"
HERE, ELSEWHERE = "here", "elsewhere"
GROUPS = ("system:serviceaccounts", "system:serviceaccounts:ci", "system:authenticated", "devs")
ROBOT = User("system:serviceaccount:ci:robot", groups=GROUPS, home=ELSEWHERE)
BOB = User("bob", groups=("devs", "system:authenticated"), home=ELSEWHERE)

plain_subjects = st.one_of(
    st.sampled_from(
        [
            {"kind": "ServiceAccount", "namespace": "ci", "name": "robot"},
            {"kind": "User", "name": "system:serviceaccount:ci:robot"},
            {"kind": "User", "name": "bob"},
            {"kind": "User", "name": f"system:kcp:serviceaccount:{HERE}:ci:robot"},
            {"kind": "User", "name": f"system:kcp:user:{HERE}:bob"},
            {"kind": "Group", "name": ROBOT.principal},
            {"kind": "Group", "name": BOB.principal},
        ]
    ),
    st.sampled_from(GROUPS).map(lambda name: {"kind": "Group", "name": name}),
)
verbs = st.sampled_from(["get", "list", "bind", "use", "*"])
namespaces = st.sampled_from(["", "ci"])
foreign = st.sampled_from([ROBOT, BOB])


@st.composite
def policies(draw: st.DrawFn, subjects: st.SearchStrategy[dict[str, str]]) -> RbacAuthorizer:
    """A policy of this cluster, and the same for all clusters."""
    authorizer = RbacAuthorizer(shared="shared")
    for number in range(draw(st.integers(1, 4))):
        name = f"r{number}"
        rule = {"verbs": [draw(verbs)], "apiGroups": ["*"], "resources": ["*"]}
        pages = {"verbs": ["*"], "nonResourceURLs": ["*"]}
        role: dict[str, Any] = {"metadata": {"name": name}, "rules": [rule, pages]}
        binding: dict[str, Any] = {
            "metadata": {"name": name},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
            "subjects": draw(st.lists(subjects, min_size=1, max_size=3)),
        }
        cluster = draw(st.sampled_from([HERE, "shared"]))
        namespace = draw(namespaces)
        kind = "ClusterRoleBinding"
        if namespace:
            kind = "RoleBinding"
            binding["metadata"]["namespace"] = namespace
        authorizer.put(cluster, "ClusterRole", role)
        authorizer.put(cluster, kind, binding)
    return authorizer


def actions(verb: str, namespace: str) -> list[Attributes]:
    resource = Attributes(HERE, verb, "apis.kcp.io", "v1alpha1", "apiexports", "", namespace, "x")
    return [resource, Attributes(HERE, "access", path="/")]


@given(policies(plain_subjects), foreign, verbs, namespaces)
def test_nothing_granted_to_others_is_a_foreign_principals(
    policy: RbacAuthorizer, user: User, verb: str, namespace: str
) -> None:
    for action in actions(verb, namespace):
        assert not policy.authorize(user, action).allowed
    assert policy.rules_for(user, HERE, namespace).rules == ()


qualified = st.one_of(plain_subjects, st.just({"kind": "User", "name": ROBOT.principal}))


@given(policies(qualified), verbs, namespaces)
def test_it_has_what_somebody_of_that_name_and_no_groups_had(
    policy: RbacAuthorizer, verb: str, namespace: str
) -> None:
    stranger = User(ROBOT.principal)
    for action in actions(verb, namespace):
        asked = [policy.authorize(who, action).allowed for who in (ROBOT, stranger, ROBOT)]
        assert asked[0] == asked[1] == asked[2]


@given(policies(plain_subjects), verbs, namespaces)
def test_what_is_remembered_of_one_is_not_believed_of_its_twin(
    policy: RbacAuthorizer, verb: str, namespace: str
) -> None:
    twin = User(ROBOT.name, groups=GROUPS, home=HERE)
    for action in actions(verb, namespace):
        at_home = policy.authorize(twin, action)
        assert not policy.authorize(ROBOT, action).allowed
        assert policy.authorize(twin, action) == at_home
