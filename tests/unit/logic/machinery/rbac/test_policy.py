"""The index against a naive reading of the same objects, and the stories it must tell."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.api.objects import Object
from skerry.logic.machinery.rbac.bootstrap import bootstrap_objects
from skerry.logic.machinery.rbac.policy import MAX_LOOKED_AT, Action, Policy
from skerry.logic.machinery.rbac.rules import rules_of
from tests.kit.counting import steps
from tests.kit.machinery.roles import READ_PODS, binding, group, role, user


def policy(*objects: Object) -> Policy:
    built = Policy()
    for obj in objects:
        built.put(obj)
    return built


def test_a_cluster_role_bound_in_a_namespace_holds_there_alone() -> None:
    p = policy(role("r", READ_PODS), binding("b", "ClusterRole", "r", user("u"), namespace="ns"))
    assert p.decide("u", (), Action("get", resource="pods", namespace="ns")).allowed
    assert not p.decide("u", (), Action("get", resource="pods", namespace="other")).allowed
    assert not p.decide("u", (), Action("list", resource="pods")).allowed


def test_a_cluster_binding_holds_everywhere() -> None:
    p = policy(role("r", READ_PODS), binding("b", "ClusterRole", "r", group("g")))
    verdict = p.decide("u", ("x", "g"), Action("list", resource="pods"))
    assert verdict.allowed
    assert verdict.reason == (
        'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to Group "g"'
    )
    assert p.decide("u", ("g",), Action("list", resource="pods", namespace="any")).allowed


def test_a_service_account_is_reached_as_the_user_it_acts_as() -> None:
    account = {"kind": "ServiceAccount", "name": "robot", "namespace": "ns"}
    bare = {"kind": "ServiceAccount", "name": "local"}
    p = policy(
        role("r", READ_PODS, namespace="ns"),
        binding("b", "Role", "r", account, bare, namespace="ns"),
    )
    action = Action("get", resource="pods", namespace="ns")
    verdict = p.decide("system:serviceaccount:ns:robot", (), action)
    assert verdict.reason == (
        'RBAC: allowed by RoleBinding "b/ns" of Role "r" to ServiceAccount "robot/ns"'
    )
    assert p.decide("system:serviceaccount:ns:local", (), action).allowed


def test_a_binding_to_a_missing_role_denies_and_says_so() -> None:
    p = policy(binding("b", "ClusterRole", "gone", user("u")))
    verdict = p.decide("u", (), Action("get", resource="pods"))
    assert not verdict.allowed
    assert verdict.reason == 'RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found'
    p.put(role("gone", READ_PODS))
    assert p.decide("u", (), Action("get", resource="pods")).allowed


def test_changed_and_removed_bindings_stop_reaching_their_old_subjects() -> None:
    p = policy(role("r", READ_PODS), binding("b", "ClusterRole", "r", user("u")))
    action = Action("get", resource="pods")
    p.put(binding("b", "ClusterRole", "r", user("v")))
    assert not p.decide("u", (), action).allowed
    assert p.decide("v", (), action).allowed
    p.remove("ClusterRoleBinding", "", "b")
    assert not p.decide("v", (), action).allowed
    p.remove("ClusterRoleBinding", "", "b")


def test_the_generation_moves_exactly_when_something_changed() -> None:
    p = policy(role("r", READ_PODS))
    before = p.generation
    p.put(role("r", READ_PODS))
    p.remove("Role", "ns", "absent")
    assert p.generation == before
    p.put(role("r"))
    assert p.generation > before


def test_aggregation_gathers_the_rules_of_labelled_roles_through_others() -> None:
    selects_a = {"clusterRoleSelectors": [{"matchLabels": {"to": "a"}}]}
    selects_b = {"clusterRoleSelectors": [{"matchLabels": {"to": "b"}}]}
    p = policy(
        role("a", aggregationRule=selects_a),
        role("b", aggregationRule=selects_b, labels={"to": "a"}),
        binding("bind", "ClusterRole", "a", user("u")),
    )
    action = Action("get", resource="pods")
    assert not p.decide("u", (), action).allowed
    p.put(role("part", READ_PODS, labels={"to": "b"}))
    assert p.decide("u", (), action).allowed
    p.put(role("part", READ_PODS))
    assert not p.decide("u", (), action).allowed


def test_roles_that_aggregate_each_other_end() -> None:
    everything: Object = {"clusterRoleSelectors": [{}]}
    p = policy(
        role("a", aggregationRule=everything),
        role("b", aggregationRule=everything),
        role("c", READ_PODS),
        binding("bind", "ClusterRole", "b", user("u")),
    )
    assert p.decide("u", (), Action("get", resource="pods")).allowed


def test_stored_rules_of_an_aggregated_role_do_not_count() -> None:
    aggregation = {"clusterRoleSelectors": [{"matchLabels": {"to": "a"}}]}
    p = policy(
        role("a", READ_PODS, aggregationRule=aggregation),
        binding("bind", "ClusterRole", "a", user("u")),
    )
    assert not p.decide("u", (), Action("get", resource="pods")).allowed


def test_a_selector_that_cannot_be_read_grants_nothing() -> None:
    broken = {"clusterRoleSelectors": [{"matchExpressions": [{"key": "a", "operator": "Near"}]}]}
    p = policy(
        role("a", aggregationRule=broken),
        role("c", READ_PODS),
        binding("bind", "ClusterRole", "a", user("u")),
    )
    assert not p.decide("u", (), Action("get", resource="pods")).allowed


def test_escalation_needs_what_is_granted_to_be_held_in_that_namespace() -> None:
    p = policy(
        role("r", READ_PODS),
        binding("b", "ClusterRole", "r", user("u"), namespace="ns"),
        binding("c", "ClusterRole", "gone", user("u"), namespace="other"),
    )
    wanted = rules_of({"rules": [READ_PODS]})
    assert p.escalation("u", (), "ns", wanted) == ""
    message = p.escalation("u", ("g",), "other", wanted)
    assert message == (
        'user "u" (groups=["g"]) is attempting to grant RBAC permissions not currently held:\n'
        '{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}'
        '; resolution errors: clusterrole.rbac.authorization.k8s.io "gone" not found'
    )


ASKED = Action("get", resource="pods", name="mine")


def other_rules(count: int) -> list[Object]:
    return [{**READ_PODS, "apiGroups": [f"g{i}"]} for i in range(count)]


def test_a_role_counts_by_its_old_text_or_its_new_one_while_it_is_read() -> None:
    labelled = role("part", READ_PODS, labels={"to": "a"})
    selectors = [{"matchLabels": {"to": f"x{i}"}} for i in range(2000)]
    wide = {"clusterRoleSelectors": [*selectors, {"matchLabels": {"to": "a"}}]}
    p = policy(labelled, role("a"), binding("b", "ClusterRole", "a", user("u")))
    widened = [p.decide("u", (), ASKED).allowed for _ in p.putting(role("a", aggregationRule=wide))]
    assert len(widened) > 5
    assert not any(widened)
    assert p.decide("u", (), ASKED).allowed
    narrowed = p.putting(role("a", aggregationRule={"clusterRoleSelectors": selectors}))
    generation = p.generation
    for _ in narrowed:
        assert p.generation == generation
    assert p.generation > generation
    assert not p.decide("u", (), ASKED).allowed


def test_beyond_what_a_decision_looks_at_nothing_is_granted() -> None:
    p = policy(
        role("r", *other_rules(MAX_LOOKED_AT - 2), READ_PODS),
        binding("b", "ClusterRole", "r", user("u")),
    )
    assert p.decide("u", (), ASKED).allowed
    p.put(role("r", *other_rules(MAX_LOOKED_AT + 1), READ_PODS))
    verdict = p.decide("u", (), ASKED)
    assert not verdict.allowed
    assert f"more than {MAX_LOOKED_AT} bindings and rules" in verdict.reason
    found = p.rules_for("u", (), "default")
    assert len(found.rules) < MAX_LOOKED_AT
    assert found.errors


def many_rules(n: int) -> Policy:
    return policy(role("r", *other_rules(n)), binding("b", "ClusterRole", "r", user("u")))


def many_bindings(n: int) -> Policy:
    return policy(*(binding(f"b{i}", "ClusterRole", f"gone{i}", user("u")) for i in range(n)))


def many_gathered(n: int) -> Policy:
    everything: Object = {"clusterRoleSelectors": [{}, {"matchLabels": {"a": "b"}}]}
    return policy(
        *(role(f"r{i}", *other_rules(1)) for i in range(n)),
        role("a", aggregationRule=everything),
        binding("b", "ClusterRole", "a", user("u")),
    )


def many_requirements(n: int) -> Policy:
    absent = [{"key": f"k{i}", "operator": "DoesNotExist"} for i in range(90)]
    selectors: Object = {"clusterRoleSelectors": [{"matchExpressions": absent}]}
    return policy(
        *(role(f"r{i}") for i in range(n)),
        role("a", aggregationRule=selectors),
        binding("b", "ClusterRole", "a", user("u")),
    )


def a_chain(n: int) -> Policy:
    def link(i: int) -> Object:
        selects: Object = {"clusterRoleSelectors": [{"matchLabels": {"link": str(i + 1)}}]}
        return role(f"r{i:05}", aggregationRule=selects, labels={"link": str(i)})

    return policy(*map(link, range(n)), binding("b", "ClusterRole", "r00000", user("u")))


@pytest.mark.parametrize(
    ("built", "size"),
    [
        (many_rules, 12_000),
        (many_bindings, 12_000),
        (many_gathered, 12_000),
        (many_requirements, 1000),
        (a_chain, 1500),
    ],
)
def test_a_decision_takes_no_more_work_however_much_there_is(
    built: Callable[[int], Policy], size: int
) -> None:
    def decided(n: int) -> Callable[[], object]:
        p = built(n)
        return lambda: p.decide("u", (), ASKED)

    assert steps(decided(2 * size)) < 1.1 * steps(decided(size)) < 1_500_000


def test_a_reason_names_the_first_of_many_missing_roles() -> None:
    assert len(many_bindings(1000).decide("u", (), ASKED).reason) < 2000


@pytest.mark.parametrize(
    ("who", "action", "allowed"),
    [
        (("x", "system:authenticated"), Action("get", path="/api"), True),
        (("x", "system:authenticated"), Action("get", path="/metrics"), False),
        (("x", "system:unauthenticated"), Action("get", path="/version"), True),
        (("x", "system:unauthenticated"), Action("get", path="/api"), False),
        (("x", "system:masters"), Action("delete", resource="nodes", name="n"), True),
        (("x", "system:monitoring"), Action("get", path="/metrics"), True),
        (("system:kube-scheduler", ""), Action("create", "", "pods", "binding", "ns", "p"), True),
        (("system:kube-scheduler", ""), Action("create", "", "secrets", "", "ns"), False),
        (
            ("system:serviceaccount:kube-system:namespace-controller", ""),
            Action("deletecollection", "any.group", "things", "", "ns"),
            True,
        ),
        (("x", "system:serviceaccounts"), Action("get", path="/openid/v1/jwks"), True),
    ],
)
def test_bootstrap_roles_reach_whom_kubernetes_gives_them(
    who: tuple[str, str], action: Action, allowed: bool
) -> None:
    p = policy(*bootstrap_objects())
    assert p.decide(who[0], (who[1],), action).allowed is allowed


@pytest.mark.parametrize(
    ("name", "action", "allowed"),
    [
        ("view", Action("list", "apps", "deployments", "", "ns"), True),
        ("view", Action("get", "", "secrets", "", "ns", "s"), False),
        ("view", Action("create", "apps", "deployments", "", "ns"), False),
        ("edit", Action("create", "apps", "deployments", "", "ns"), True),
        ("edit", Action("get", "", "secrets", "", "ns", "s"), True),
        ("edit", Action("create", "rbac.authorization.k8s.io", "roles", "", "ns"), False),
        ("admin", Action("create", "rbac.authorization.k8s.io", "roles", "", "ns"), True),
        ("admin", Action("list", "apps", "deployments", "", "ns"), True),
        ("admin", Action("update", "", "resourcequotas", "", "ns", "q"), False),
    ],
)
def test_view_edit_and_admin_build_on_each_other(name: str, action: Action, allowed: bool) -> None:
    mine = binding("b", "ClusterRole", name, user("u"), namespace="ns")
    p = policy(*bootstrap_objects(), mine)
    assert p.decide("u", (), action).allowed is allowed


def test_bootstrap_objects_are_fresh_every_time() -> None:
    first, second = bootstrap_objects(), bootstrap_objects()
    assert first == second
    first[0]["metadata"]["name"] = "changed"
    assert bootstrap_objects() == second
    names = [(obj["kind"], obj["metadata"]["name"]) for obj in second]
    assert len(names) == len(set(names))


# A naive reference: read every object for every question.

NAMES = st.sampled_from(["a", "b"])
NAMESPACES = st.sampled_from(["", "n1", "n2"])
PLAIN_RULES = st.builds(
    lambda verbs, resources, names: {
        "verbs": verbs,
        "apiGroups": [""],
        "resources": resources,
        "resourceNames": names,
    },
    st.lists(st.sampled_from(["get", "list", "*"]), max_size=2),
    st.lists(st.sampled_from(["pods", "pods/log", "*"]), max_size=2),
    st.lists(st.sampled_from(["x"]), max_size=1),
)
SUBJECTS = st.one_of(
    st.builds(user, NAMES),
    st.builds(group, NAMES),
    st.builds(
        lambda n: {"kind": "ServiceAccount", "name": n, "namespace": "n1"},
        NAMES,
    ),
)
ROLES = st.builds(
    lambda name, rules, namespace: role(name, *rules, namespace=namespace),
    NAMES,
    st.lists(PLAIN_RULES, max_size=2),
    NAMESPACES,
)
BINDINGS = st.builds(
    lambda name, kind, ref, subjects, ns: binding(
        name, kind if ns else "ClusterRole", ref, *subjects, namespace=ns
    ),
    NAMES,
    st.sampled_from(["Role", "ClusterRole"]),
    NAMES,
    st.lists(SUBJECTS, max_size=2),
    NAMESPACES,
)


def identity(obj: Object) -> tuple[str, str, str]:
    metadata = obj["metadata"]
    return obj["kind"], metadata.get("namespace", ""), metadata["name"]


def naive(
    objects: dict[tuple[str, str, str], Object], who: str, groups: list[str], a: Action
) -> bool:
    for (kind, namespace, _), obj in objects.items():
        if kind not in ("RoleBinding", "ClusterRoleBinding"):
            continue
        if namespace not in ("", a.namespace):
            continue
        if not any(_is(subject, who, groups) for subject in obj["subjects"]):
            continue
        ref = obj["roleRef"]
        place = namespace if ref["kind"] == "Role" else ""
        found = objects.get((ref["kind"], place, ref["name"]))
        for rule in (found or {}).get("rules", []):
            wanted = f"{a.resource}/{a.subresource}" if a.subresource else a.resource
            if (
                {a.verb, "*"} & set(rule["verbs"])
                and {wanted, "*"} & set(rule["resources"])
                and (not rule["resourceNames"] or a.name in rule["resourceNames"])
            ):
                return True
    return False


def _is(subject: Object, who: str, groups: list[str]) -> bool:
    if subject["kind"] == "Group":
        return subject["name"] in groups
    if subject["kind"] == "User":
        return bool(subject["name"] == who)
    return who == f"system:serviceaccount:{subject['namespace']}:{subject['name']}"


@settings(max_examples=80)
@given(
    steps=st.lists(st.tuples(st.booleans(), st.one_of(ROLES, BINDINGS)), max_size=12),
    who=st.sampled_from(["a", "b", "system:serviceaccount:n1:a"]),
    groups=st.lists(NAMES, max_size=2, unique=True),
    action=st.builds(
        Action,
        verb=st.sampled_from(["get", "list"]),
        resource=st.just("pods"),
        subresource=st.sampled_from(["", "log"]),
        namespace=NAMESPACES,
        name=st.sampled_from(["", "x", "y"]),
    ),
)
def test_the_index_decides_as_reading_everything_would(
    steps: list[tuple[bool, Object]], who: str, groups: list[str], action: Action
) -> None:
    p = Policy()
    objects: dict[tuple[str, str, str], Object] = {}
    for removed, obj in steps:
        if removed:
            objects.pop(identity(obj), None)
            p.remove(*identity(obj))
        else:
            objects[identity(obj)] = obj
            p.put(obj)
    assert p.decide(who, groups, action).allowed == naive(objects, who, groups, action)
