"""Nobody hands out rights they do not hold, and nobody else is asked."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.errors import Forbidden
from skerry.api.objects import Object
from skerry.server.admission.operation import Operation, Verb
from skerry.server.admission.rbac import EscalationGuard
from skerry.server.security.authorization import RbacAuthorizer
from skerry.server.user import User
from tests.kit.machinery.objects import resource
from tests.kit.machinery.roles import READ_PODS, binding, role, user
from tests.kit.server.calls import call_of

GROUP = "rbac.authorization.k8s.io"
ANN = User("ann", groups=("system:authenticated",))
MORE: Object = {**READ_PODS, "resources": ["secrets"]}


def guard() -> EscalationGuard:
    """Ann may read pods in one cluster, and everything in another."""
    rbac = RbacAuthorizer()
    everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    rbac.put("root", "ClusterRole", role("secrets", MORE))
    for cluster, rule in (("root", READ_PODS), ("away", everything)):
        rbac.put(cluster, "ClusterRole", role("mine", rule))
        rbac.put(cluster, "ClusterRoleBinding", binding("b", "ClusterRole", "mine", user("ann")))
    return EscalationGuard(rbac)


async def admit(
    obj: Object,
    kind: str = "clusterroles",
    verb: Verb = "CREATE",
    old: Object | None = None,
    **more: Any,
) -> None:
    call = call_of(resource(kind, GROUP), cluster="root", user=more.pop("user", ANN))
    await guard().admit(Operation(call, verb, obj, old, **more))


async def test_a_role_of_rights_one_holds_passes() -> None:
    await admit(role("r", READ_PODS))


async def test_a_role_of_more_is_refused_also_where_one_holds_it_elsewhere() -> None:
    with pytest.raises(Forbidden, match="secrets"):
        await admit(role("r", MORE))
    with pytest.raises(Forbidden, match="secrets"):
        await admit(role("r", READ_PODS, MORE), verb="UPDATE", old=role("r", READ_PODS))


async def test_a_binding_to_more_is_refused() -> None:
    with pytest.raises(Forbidden, match="secrets"):
        await admit(binding("b", "ClusterRole", "secrets", user("ann")), "clusterrolebindings")


async def test_what_grants_nothing_new_passes() -> None:
    wide = role("r", MORE)
    await admit(role("r", MORE, labels={"a": "b"}), verb="UPDATE", old=wide)
    await admit(wide, verb="DELETE")


async def test_masters_hand_out_anything() -> None:
    await admit(role("r", MORE), user=User("root", groups=("system:masters",)))


async def test_objects_of_other_types_are_no_matter_for_it() -> None:
    call = call_of(resource("configmaps"), cluster="root", user=ANN)
    await guard().admit(Operation(call, "CREATE", role("r", MORE)))
