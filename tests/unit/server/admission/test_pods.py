"""What a pod gets from its surroundings: account and token, priority, tolerations."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.errors import Forbidden
from skerry.api.keys import ObjectKey
from skerry.api.objects import Object
from skerry.server.admission.operation import Admission, Operation, Verb
from skerry.server.admission.pods import (
    DefaultTolerations,
    PriorityAdmission,
    ServiceAccountAdmission,
)
from skerry.server.codec import encode
from skerry.server.observed import ObservedObjects
from skerry.store.base import Write
from skerry.store.memory import MemoryStore
from tests.kit.machinery.objects import pod, resource
from tests.kit.server.calls import call_of
from tests.kit.server.harness import serving
from tests.kit.server.objects import CORE
from tests.kit.server.objects import pod as served_pod
from tests.kit.sim.loop import virtual

_PODS, _ACCOUNT = f"{CORE}/pods", f"{CORE}/serviceaccounts"
TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"


async def admitted(
    rule: Admission, spec: Object | None = None, verb: Verb = "CREATE", **metadata: Any
) -> Object:
    obj = pod(spec)
    obj["metadata"].update(uid="u-1", **metadata)
    call = call_of(resource("pods"), cluster="root", namespace="default")
    await rule.admit(Operation(call, verb, obj))
    found: Object = obj["spec"]
    return found


# -- accounts ------------------------------------------------------------------------------------


async def accounts(name: str = "default", cluster: str = "root", **more: Any) -> Admission:
    store = MemoryStore("test")
    obj = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}, **more}
    key = ObjectKey("", "serviceaccounts", cluster, "default", name)
    await store.commit([Write(key.path(), encode(obj))])
    return ServiceAccountAdmission(store)


def token_mounts(spec: Object) -> list[str]:
    return [
        mount["name"]
        for container in spec["containers"]
        for mount in container.get("volumeMounts") or []
        if mount["mountPath"] == TOKEN_PATH
    ]


async def test_a_pod_runs_under_the_default_account_and_every_container_has_its_token() -> None:
    two = [{"name": "a", "image": "i"}, {"name": "b", "image": "i"}]
    spec = await admitted(await accounts(), {"containers": two, "initContainers": [{"name": "i"}]})
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("default", "default")
    [volume] = spec["volumes"]
    assert token_mounts(spec) == [volume["name"]] * 2
    assert spec["initContainers"][0]["volumeMounts"][0]["name"] == volume["name"]
    sources = [next(iter(source)) for source in volume["projected"]["sources"]]
    assert sources == ["serviceAccountToken", "configMap", "downwardAPI"]


async def test_a_second_look_adds_nothing() -> None:
    rule = await accounts()
    once = await admitted(rule)
    assert await admitted(rule, once) == once


async def test_an_account_that_is_not_there_is_refused_also_if_another_cluster_has_it() -> None:
    for rule in (await accounts("other"), await accounts(cluster="away")):
        with pytest.raises(Forbidden, match='serviceaccount "default" not found'):
            await admitted(rule)


@pytest.mark.parametrize(
    ("of_pod", "of_account", "mounted"),
    [(None, None, True), (None, False, False), (True, False, True), (False, True, False)],
)
async def test_the_pod_says_whether_it_wants_the_token_and_else_its_account(
    of_pod: bool | None, of_account: bool | None, mounted: bool
) -> None:
    said: Any = {} if of_account is None else {"automountServiceAccountToken": of_account}
    asked = {} if of_pod is None else {"automountServiceAccountToken": of_pod}
    spec = await admitted(await accounts(**said), asked)
    assert bool(token_mounts(spec)) is mounted
    assert bool(spec.get("volumes")) is mounted


async def test_a_container_that_has_something_at_the_path_of_the_token_keeps_it() -> None:
    own = {"name": "mine", "mountPath": TOKEN_PATH}
    containers = [{"name": "c", "image": "i", "volumeMounts": [own]}]
    spec = await admitted(await accounts(), {"containers": containers})
    assert token_mounts(spec) == ["mine"]
    assert "volumes" not in spec


async def test_pull_secrets_are_the_accounts_unless_the_pod_has_its_own() -> None:
    rule = await accounts(imagePullSecrets=[{"name": "theirs"}])
    assert (await admitted(rule))["imagePullSecrets"] == [{"name": "theirs"}]
    own = [{"name": "own"}]
    assert (await admitted(rule, {"imagePullSecrets": own}))["imagePullSecrets"] == own


async def test_a_mirror_of_a_pod_that_a_node_runs_by_itself_is_left_as_it_is() -> None:
    notes = {"kubernetes.io/config.mirror": "x"}
    assert "serviceAccountName" not in await admitted(await accounts(), annotations=notes)


async def test_a_pod_that_is_there_gets_no_other_account_and_no_other_priority() -> None:
    for rule in (await accounts("other"), await priorities()):
        assert await admitted(rule, verb="UPDATE") == pod()["spec"]


# -- priorities ----------------------------------------------------------------------------------


def priority_class(name: str, value: int, **more: Any) -> Object:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        **more,
    }


async def priorities(*classes: Object, stored: tuple[Object, ...] = ()) -> PriorityAdmission:
    """Classes that are known here, and those that are only *stored*."""
    observed, store = ObservedObjects("scheduling.k8s.io", "priorityclasses"), MemoryStore("test")
    observed.by_place["root", ""] = {each["metadata"]["name"]: each for each in classes}
    for each in stored:
        key = ObjectKey(
            "scheduling.k8s.io", "priorityclasses", "root", "", each["metadata"]["name"]
        )
        await store.commit([Write(key.path(), encode(each))])
    return PriorityAdmission(observed, store)


async def test_a_class_is_resolved_to_its_number_and_policy() -> None:
    rule = await priorities(priority_class("high", 100, preemptionPolicy="Never"))
    spec = await admitted(rule, {"priorityClassName": "high"})
    assert (spec["priority"], spec["preemptionPolicy"]) == (100, "Never")


async def test_a_pod_without_a_class_gets_the_lowest_default_or_nothing() -> None:
    assert (await admitted(await priorities(priority_class("high", 100))))["priority"] == 0
    both = [priority_class(f"p{value}", value, globalDefault=True) for value in (7, 5, 9)]
    spec = await admitted(await priorities(*both))
    assert (spec["priorityClassName"], spec["priority"]) == ("p5", 5)


async def test_a_class_that_is_not_there_is_refused() -> None:
    with pytest.raises(Forbidden, match="no PriorityClass with name high was found"):
        await admitted(await priorities(), {"priorityClassName": "high"})


async def test_a_class_that_another_server_has_just_written_counts() -> None:
    rule = await priorities(stored=(priority_class("high", 100),))
    assert (await admitted(rule, {"priorityClassName": "high"}))["priority"] == 100


async def test_the_classes_of_the_system_are_there_even_if_nobody_wrote_them() -> None:
    spec = await admitted(await priorities(), {"priorityClassName": "system-node-critical"})
    assert spec["priority"] == 2000001000


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"priority": 7}, r"the integer value of priority \(7\) must not be provided in pod spec"),
        ({"preemptionPolicy": "Never"}, r"the string value of PreemptionPolicy \(Never\) must not"),
    ],
)
async def test_nobody_takes_another_priority_than_that_of_the_class(
    asked: Object, why: str
) -> None:
    rule = await priorities(priority_class("high", 100))
    with pytest.raises(Forbidden, match=why):
        await admitted(rule, {"priorityClassName": "high", **asked})
    same = {
        "priorityClassName": "high",
        "priority": 100,
        "preemptionPolicy": "PreemptLowerPriority",
    }
    assert (await admitted(rule, same))["priority"] == 100


# -- tolerations ---------------------------------------------------------------------------------

_KEYS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_tolerations = st.fixed_dictionaries(
    {},
    optional={
        "key": st.sampled_from([*_KEYS, "", "other"]),
        "effect": st.sampled_from(["", "NoExecute", "NoSchedule"]),
        "operator": st.just("Exists"),
    },
)


@given(st.lists(_tolerations, max_size=3))
async def test_a_pod_tolerates_both_taints_once_and_keeps_what_it_said(own: list[Object]) -> None:
    found = (await admitted(DefaultTolerations(), {"tolerations": own}))["tolerations"]
    assert found[: len(own)] == own
    added = found[len(own) :]
    for key in _KEYS:
        said = any(
            each.get("key", "") in ("", key) and each.get("effect", "") in ("", "NoExecute")
            for each in own
        )
        assert [each["tolerationSeconds"] for each in added if each["key"] == key] == (
            [] if said else [300]
        )


# -- updates -------------------------------------------------------------------------------------


@virtual
async def test_a_pod_put_without_what_admission_filled_in_keeps_it() -> None:
    async with serving() as server:
        await server.create(_ACCOUNT, {"metadata": {"name": "default"}})
        made = (await server.create(_PODS, served_pod("p"))).body
        sent = copy.deepcopy(made)
        for name in ("priority", "preemptionPolicy", "tolerations"):
            del sent["spec"][name]
        sent["metadata"]["labels"] = {"a": "b"}
        put = await server.put(f"{_PODS}/p", sent)
        assert put.status == 200, put.body
        assert put.body["spec"] == made["spec"]


@virtual
async def test_a_priority_that_an_update_names_is_not_overwritten() -> None:
    async with serving() as server:
        await server.create(_ACCOUNT, {"metadata": {"name": "default"}})
        await server.create(_PODS, served_pod("p"))
        refused = await server.patch(f"{_PODS}/p", {"spec": {"priority": 7}})
        assert refused.status == 422
        assert "spec.priority" in refused.body["message"]
