"""Who may do what where: the door of a workspace, what is inside, and what exporters allow."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from skerry.api.edge_identity import SIGNER
from skerry.api.objects import Object
from skerry.logic.machinery.workspaces.names import ADMIN_GROUP, SYSTEM_ADMIN
from skerry.server.access import Attributes
from skerry.server.security.authorization import RbacAuthorizer
from skerry.server.user import User
from skerry.server.workspaces.authorization import HubAuthorizer, in_required_groups
from skerry.server.workspaces.records import Binding, BoundType
from tests.kit.machinery import roles
from tests.kit.server.mailboxes import BOX, INVENTORY, MailboxPlace, mailbox_place

ANN = User("ann", groups=("system:authenticated",))
ADMIN = User("admin", groups=(ADMIN_GROUP,))
MASTER = User("root", groups=("system:masters",))
ENTER: Object = {"verbs": ["access"], "nonResourceURLs": ["/"]}
ALL: Object = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
PODS = Attributes("other", "get", "", "v1", "pods", "", "ns", "p")


class Place:
    """A hub, and who was granted what in it."""

    def __init__(self, mailboxes: MailboxPlace) -> None:
        self.mailboxes, self.state = mailboxes, mailboxes.state
        self.rbac = RbacAuthorizer(SYSTEM_ADMIN)
        self.authorizer = HubAuthorizer(self.rbac, self.state, mailboxes.mailboxes)
        self._numbers = 0
        self.grant(SYSTEM_ADMIN, [ALL, ENTER], roles.group(ADMIN_GROUP))

    def grant(self, cluster: str, rules: list[Object], *subjects: Object) -> None:
        self._numbers += 1
        name = f"r{self._numbers}"
        self.rbac.put(cluster, "ClusterRole", roles.role(name, *rules))
        bound = roles.binding(name, "ClusterRole", name, *subjects)
        self.rbac.put(cluster, "ClusterRoleBinding", bound)

    def may(self, user: User, asked: Attributes = PODS) -> bool:
        return self.authorizer.authorize(user, asked).allowed


async def hub() -> Place:
    return Place(await mailbox_place())


# -- the door ------------------------------------------------------------------------------------


async def test_a_right_inside_is_worth_nothing_to_who_may_not_enter() -> None:
    place = await hub()
    place.grant("other", [ALL], roles.user("ann"))
    assert not place.may(ANN)
    place.grant("other", [ENTER], roles.user("ann"))
    assert place.may(ANN)
    assert not place.may(ANN, replace(PODS, cluster=INVENTORY))


@pytest.mark.parametrize(
    ("phase", "entered"),
    [("Ready", True), ("Initializing", True), ("Scheduling", False), ("", False)],
)
async def test_a_workspace_is_entered_once_it_is_being_initialized(
    phase: str, entered: bool
) -> None:
    place = await hub()
    place.grant("other", [ALL, ENTER], roles.user("ann"))
    place.mailboxes.change("other", phase=phase)
    assert place.may(ANN) is entered


async def test_nobody_but_masters_is_anywhere_that_is_not_or_everywhere() -> None:
    place = await hub()
    for cluster in ("nowhere", "*", ""):
        for user, wanted in ((ANN, False), (ADMIN, False), (MASTER, True)):
            assert place.may(user, replace(PODS, cluster=cluster)) is wanted, (cluster, user.name)
    assert not place.may(ADMIN, replace(PODS, cluster="*", deep=True))


async def test_a_refusal_does_not_say_which_roles_there_are() -> None:
    place = await hub()
    decision = place.authorizer.authorize(ANN, PODS)
    assert (decision.allowed, decision.reason) == (False, "access denied")


_groups = st.frozensets(st.sampled_from("abc"), min_size=1, max_size=3)


@given(st.lists(_groups, min_size=1, max_size=3), st.frozensets(st.sampled_from("abcd")))
def test_required_groups_are_alternatives_of_what_is_demanded_together(
    alternatives: list[frozenset[str]], held: frozenset[str]
) -> None:
    text = ";".join(",".join(sorted(each)) for each in alternatives)
    assert in_required_groups(text, held) == any(each <= held for each in alternatives)
    assert in_required_groups(None, held)
    assert in_required_groups(text, [ADMIN_GROUP])


async def test_groups_that_a_workspace_requires_are_asked_for_at_its_door() -> None:
    place = await hub()
    place.grant("other", [ALL, ENTER], roles.user("ann"))
    place.mailboxes.change("other", required_groups="staff")
    assert not place.may(ANN)
    assert place.may(replace(ANN, groups=("staff",)))


# -- principals of one workspace -----------------------------------------------------------------


async def test_an_account_enters_its_own_workspace_and_is_a_stranger_in_any_other() -> None:
    place = await hub()
    robot = User("system:serviceaccount:ns:robot", groups=("system:authenticated",), home="other")
    account = {"kind": "ServiceAccount", "name": "robot", "namespace": "ns"}
    for cluster in ("other", INVENTORY):
        place.grant(cluster, [ALL, ENTER], account, roles.group("system:authenticated"))
    assert place.may(robot)
    assert not place.may(robot, replace(PODS, cluster=INVENTORY))


@pytest.mark.parametrize("name", ["system:masters", "system:kcp:admin", "system:edge:x", "ann"])
async def test_names_that_the_hub_decides_by_are_not_impersonated_by_a_workspaces_administrator(
    name: str,
) -> None:
    place = await hub()
    place.grant("other", [ALL, ENTER], roles.user("ann"))
    asked = Attributes("other", "impersonate", "", "v1", "groups", "", "", name)
    assert place.may(ANN, asked) is (name == "ann")
    assert place.may(MASTER, asked)


async def test_a_right_to_impersonate_ends_with_the_workspace_that_gave_it() -> None:
    place = await hub()
    home = place.authorizer.impersonation_home
    assert home(ANN, User("ben"), "other") == "other"
    assert home(MASTER, User("ben"), "other") == ""
    place.grant(SYSTEM_ADMIN, [{**ALL, "verbs": ["impersonate"]}], roles.user("ann"))
    assert home(ANN, User("ben"), "other") == ""
    assert home(MASTER, User("system:serviceaccount:ns:robot"), "other") == "other"


# -- exporters -----------------------------------------------------------------------------------

THINGS = Attributes("other", "update", "g", "v1", "things", "", "", "x")


def bound(place: Place, *, policy: bool) -> None:
    """Have ``other`` bind things of an export in the inventory workspace."""
    kind = BoundType(INVENTORY, "s", "u", "identity", "g", "things")
    place.state.bindings["other"] = {"b": Binding(INVENTORY, "things", (kind,))}
    spec: Object = {"maximalPermissionPolicy": {"local": {}}} if policy else {}
    export = {"metadata": {"name": "things"}, "spec": spec, "status": {"identityHash": "identity"}}
    place.state.exports[INVENTORY, "things"] = export
    place.state._by_export_identity["identity"] = {(INVENTORY, "things"): None}


async def test_what_an_exporter_does_not_allow_nobody_may_do_to_its_types() -> None:
    place = await hub()
    place.grant("other", [ALL, ENTER], roles.user("ann"))
    bound(place, policy=False)
    assert place.may(ANN, THINGS)
    bound(place, policy=True)
    for name in ("things", "things:identity"):
        assert not place.may(ANN, replace(THINGS, resource=name))
        assert not place.may(ADMIN, replace(THINGS, resource=name))
    assert place.may(ANN, PODS), "of other types it says nothing"
    place.grant(INVENTORY, [ALL], roles.user("apis.kcp.io:binding:ann"))
    assert place.may(ANN, THINGS)


async def test_a_claim_needs_every_exporter_of_its_identity_and_one_at_least() -> None:
    place = await hub()
    bound(place, policy=True)
    claimed = replace(THINGS, claimed="identity")
    assert not place.may(ANN, claimed)
    place.grant(INVENTORY, [ALL], roles.user("apis.kcp.io:binding:ann"))
    assert place.may(ANN, claimed)
    assert not place.may(ANN, replace(THINGS, claimed="nobodys"))


@pytest.mark.parametrize("kind", ["apibindings", "apiexports"])
async def test_nobody_writes_what_the_server_says_of_exports_and_bindings(kind: str) -> None:
    place = await hub()
    place.grant("other", [ALL, ENTER], roles.user("ann"))
    status = Attributes("other", "update", "apis.kcp.io", "v1alpha1", kind, "status", "", "x")
    assert not place.may(ANN, status)
    assert not place.may(ADMIN, status)
    assert place.may(ANN, replace(status, verb="get"))
    assert place.may(ANN, replace(status, subresource=""))


async def test_a_question_of_one_cluster_to_another_is_about_rights_inside_alone() -> None:
    place = await hub()
    place.grant("other", [ALL], roles.user("ann"))
    assert place.may(ANN, replace(PODS, deep=True))
    assert not place.may(User("ben"), replace(PODS, deep=True))


# -- mailboxes -----------------------------------------------------------------------------------


async def test_from_a_closed_mailbox_all_but_administrators_are_shut_out() -> None:
    place = await hub()
    place.grant(BOX, [ALL, ENTER], roles.user("ann"))
    inside = replace(PODS, cluster=BOX)
    robot = User("system:serviceaccount:ns:robot", home=BOX)
    place.grant(BOX, [ALL], {"kind": "ServiceAccount", "name": "robot", "namespace": "ns"})
    for user in (ANN, robot):
        assert place.may(user, inside)
    place.mailboxes.change(BOX, revoked="2030-01-01T00:00:00Z")
    for asked in (inside, replace(inside, deep=True)):
        for user in (ANN, robot):
            assert not place.may(user, asked)
        assert place.may(ADMIN, asked)


async def test_who_may_let_edges_in_decides_about_requests_in_their_mailboxes_only() -> None:
    place = await hub()
    approver: Object = {"verbs": ["approve"], "apiGroups": ["certificates.k8s.io"],
                        "resources": ["signers"], "resourceNames": [SIGNER]}  # fmt: skip
    place.grant(INVENTORY, [approver, ENTER], roles.user("ann"))
    request: dict[str, Any] = {"group": "certificates.k8s.io", "version": "v1",
                               "resource": "certificatesigningrequests", "name": "r"}  # fmt: skip
    approve = Attributes(cluster=BOX, verb="update", subresource="approval", **request)
    assert place.may(ANN, approve)
    assert place.may(ANN, Attributes(cluster=BOX, verb="get", **request))
    assert not place.may(ANN, Attributes(cluster=BOX, verb="delete", **request))
    assert not place.may(ANN, replace(approve, cluster="other"))
    assert not place.may(ANN, replace(PODS, cluster=BOX))
    assert not place.may(User("ben"), approve)
