"""Parameters of a policy are read by those who may read them, and shown to nobody else."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.errors import Invalid
from skerry.api.keys import ObjectKey
from skerry.api.objects import Object
from skerry.server.admission.operation import Operation, Verb
from skerry.server.admission.policy_rights import PolicyRights
from skerry.server.codec import encode
from skerry.server.security.authorization import RbacAuthorizer
from skerry.server.user import User
from skerry.store.base import Write
from skerry.store.memory import MemoryStore
from tests.kit.machinery import roles
from tests.kit.machinery.objects import resource
from tests.kit.machinery.policies import binding, policy
from tests.kit.server.calls import call_of

GROUP = "admissionregistration.k8s.io"
SECRETS = {"apiVersion": "v1", "kind": "Secret"}
UNKNOWN = {"apiVersion": "example.org/v1", "kind": "Thing"}
READER: Object = {"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"]}
EVERYTHING: Object = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}


async def admit(
    obj: Object,
    *rules: Object,
    old: Object | None = None,
    verb: Verb = "CREATE",
    stored: Object | None = None,
    namespace: str = "",
    **more: Any,
) -> None:
    """Have ann, who has *rules* (in *namespace*), write *obj* beside a *stored* policy."""
    rbac, store = RbacAuthorizer(), MemoryStore("test")
    rbac.put("root", "ClusterRole", roles.role("mine", *rules))
    bound = roles.binding("b", "ClusterRole", "mine", roles.user("ann"), namespace=namespace)
    rbac.put("root", bound["kind"], bound)
    kinds = f"{obj['kind'].lower()[:-1]}ies" if obj["kind"].endswith("y") else "bindings"
    plural = "validatingadmissionpolicybindings" if kinds == "bindings" else kinds
    if stored is not None:
        key = ObjectKey(
            GROUP, "validatingadmissionpolicies", "root", "", stored["metadata"]["name"]
        )
        await store.commit([Write(key.path(), encode(stored))])
    call = call_of(
        resource(plural, GROUP), user=User("ann"), cluster="root", types=(resource("secrets"),)
    )
    await PolicyRights(rbac, store).admit(Operation(call, verb, obj, old, **more))


def secrets(**reference: Any) -> Object:
    return binding(paramRef={"parameterNotFoundAction": "Deny", **reference})


OF_SECRETS = policy("p", "true", paramKind=SECRETS)


async def refused(obj: Object, *rules: Object, **more: Any) -> str:
    with pytest.raises(Invalid) as caught:
        await admit(obj, *rules, **more)
    [cause] = caught.value.status()["details"]["causes"]
    return str(cause["field"])


async def test_a_policy_of_parameters_one_may_not_read_is_refused_by_its_field() -> None:
    assert await refused(OF_SECRETS) == "spec.paramKind"
    await admit(OF_SECRETS, READER)


async def test_to_read_some_of_a_kind_is_not_to_read_all() -> None:
    await refused(OF_SECRETS, {**READER, "resourceNames": ["a"]})
    await refused(OF_SECRETS, READER, namespace="ns")


async def test_a_policy_without_parameters_or_with_those_it_had_asks_for_nothing() -> None:
    await admit(policy("p", "true"))
    await admit(OF_SECRETS, old=OF_SECRETS, verb="UPDATE")
    await refused(OF_SECRETS, old=policy("p", "true"), verb="UPDATE")
    await admit(OF_SECRETS, verb="DELETE")
    await admit(OF_SECRETS, old=policy("p", "true"), verb="UPDATE", subresource="status")


async def test_a_kind_that_nobody_serves_is_for_those_who_may_read_everything() -> None:
    unknown = policy("p", "true", paramKind=UNKNOWN)
    await refused(unknown, READER)
    await admit(unknown, EVERYTHING)


async def test_a_binding_needs_the_right_to_the_object_it_names() -> None:
    one = secrets(name="a", namespace="ns")
    assert await refused(one, stored=OF_SECRETS) == "spec.paramRef"
    await admit(one, {**READER, "resourceNames": ["a"]}, stored=OF_SECRETS, namespace="ns")
    await refused(one, {**READER, "resourceNames": ["b"]}, stored=OF_SECRETS)
    await refused(one, READER, stored=OF_SECRETS, namespace="other")


async def test_a_binding_that_selects_needs_the_right_to_list() -> None:
    some = secrets(selector={"matchLabels": {"a": "b"}}, namespace="ns")
    await refused(some, READER, stored=OF_SECRETS)
    await admit(some, {**READER, "verbs": ["list"]}, stored=OF_SECRETS, namespace="ns")


async def test_without_a_namespace_a_binding_needs_the_right_in_all() -> None:
    anywhere = secrets(name="a")
    await refused(anywhere, READER, stored=OF_SECRETS, namespace="ns")
    await admit(anywhere, READER, stored=OF_SECRETS)


async def test_a_binding_to_another_policy_is_asked_about_anew() -> None:
    one = secrets(name="a", namespace="ns")
    await admit(one, old=one, verb="UPDATE", stored=OF_SECRETS)
    before = {**one, "spec": {**one["spec"], "policyName": "another"}}
    await refused(one, old=before, verb="UPDATE", stored=OF_SECRETS)


async def test_a_binding_to_a_policy_that_is_not_there_yet_needs_the_right_to_everything() -> None:
    one = secrets(name="a", namespace="ns")
    await refused(one, READER)
    await admit(one, EVERYTHING)


@pytest.mark.parametrize("named", [{}, {"kind": "Secret"}, {"apiVersion": "v1"}])
async def test_parameters_that_name_no_kind_are_left_to_who_finds_that_wrong(named: Object) -> None:
    made = policy("p", "true")
    made["spec"]["paramKind"] = named
    await admit(made, EVERYTHING)
    nameless = secrets(name="s")
    del nameless["spec"]["policyName"]
    await admit(nameless, EVERYTHING, stored=made)
