"""The first heartbeat by certificate takes away what the edge was let in by."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.edge_identity import (
    EDGE_GROUPS,
    BootstrapToken,
    account_name,
    bootstrap_secret,
    bootstrap_secret_name,
)
from skerry.api.keys import ObjectKey
from skerry.server.admission.operation import Operation
from skerry.server.security.client_certificates import CREDENTIAL
from skerry.server.user import User
from skerry.server.workspaces.edge_arrival import EdgeArrival
from tests.kit.machinery.objects import resource
from tests.kit.server.calls import call_of
from tests.kit.server.mailboxes import BOX, EDGE, TARGET, MailboxPlace, mailbox_place

RBAC = "rbac.authorization.k8s.io"
LEASES = resource("leases", "coordination.k8s.io")
ACCOUNT = account_name(TARGET)
SECRETS = ("", "secrets", BOX, "default")


def edge(credential: str = "one", groups: tuple[str, ...] = EDGE_GROUPS) -> User:
    return User(EDGE.user, EDGE.uid, groups, {CREDENTIAL: (credential,)}, BOX)


async def furnished() -> tuple[MailboxPlace, set[str]]:
    """Return a mailbox with what goes and what stays; and the keys of what goes."""
    place = await mailbox_place()
    going: list[ObjectKey] = []
    staying: list[ObjectKey] = []
    for number, redeemed in ((1, True), (2, False)):
        token = BootstrapToken(f"token{number}", "0" * 32)
        made = bootstrap_secret(
            token, sync_target=TARGET, expiration="2030-01-02T00:00:00Z", approved=True
        )
        if redeemed:
            made["data"]["key-digest"] = "MDAw"
        key = ObjectKey(*SECRETS, bootstrap_secret_name(token.id))
        await place.put(key, made)
        (going if redeemed else staying).append(key)
    notes = {"kubernetes.io/service-account.name": ACCOUNT}
    others: list[tuple[ObjectKey, Any, bool]] = [
        (ObjectKey("", "serviceaccounts", BOX, "default", ACCOUNT), {}, True),
        (ObjectKey(RBAC, "clusterroles", BOX, "", ACCOUNT), {}, True),
        (ObjectKey(RBAC, "clusterrolebindings", BOX, "", ACCOUNT), {}, True),
        (ObjectKey(*SECRETS, f"{ACCOUNT}-token-x"), {"metadata": {"annotations": notes}}, True),
        (ObjectKey(*SECRETS, f"{ACCOUNT}-token-y"), {"metadata": {}}, False),
        (ObjectKey("", "serviceaccounts", BOX, "default", "default"), {}, False),
    ]
    for key, obj, goes in others:
        await place.put(key, obj)
        (going if goes else staying).append(key)
    return place, {key.path() for key in going}


async def beat(
    rule: EdgeArrival, user: User, name: str = "syncer-heartbeat", **more: Any
) -> Operation:
    call = call_of(LEASES, user=user, cluster=BOX, namespace="default", name=name)
    operation = Operation(call, "UPDATE", {"metadata": {"name": name}}, **more)
    await rule.admit(operation)
    return operation


async def test_what_the_edge_was_let_in_by_goes_with_the_heartbeat_and_all_else_stays() -> None:
    place, going = await furnished()
    rule = EdgeArrival(place.mailboxes, place.store)
    done = await beat(rule, edge())
    assert {write.key for write in done.writes} == going
    assert all(write.value is None and write.expected for write in done.writes)
    await place.store.commit(done.writes)
    assert (await beat(rule, edge())).writes == []


async def test_it_is_looked_for_once_for_each_certificate() -> None:
    place = await mailbox_place()
    rule = EdgeArrival(place.mailboxes, place.store)
    await beat(rule, edge("one"))
    await place.put(ObjectKey(RBAC, "clusterroles", BOX, "", ACCOUNT), {})
    assert (await beat(rule, edge("one"))).writes == []
    assert len((await beat(rule, edge("two"))).writes) == 1


@pytest.mark.parametrize(
    ("user", "options"),
    [
        (edge(groups=("system:authenticated",)), {}),
        (User("system:serviceaccount:default:x", "", EDGE_GROUPS, {}, BOX), {}),
        (edge(), {"name": "another-lease"}),
        (edge(), {"dry_run": True}),
    ],
    ids=["no edge", "by its account", "another lease", "a rehearsal"],
)
async def test_nothing_goes_before_the_edge_is_there_by_its_certificate(
    user: User, options: Any
) -> None:
    place, _ = await furnished()
    assert (await beat(EdgeArrival(place.mailboxes, place.store), user, **options)).writes == []
