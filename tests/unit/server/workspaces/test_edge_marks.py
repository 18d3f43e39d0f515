"""Marks on LogicalClusters: who may set them, and what a revocation takes with it."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from skerry.api.edge_identity import (
    APPROVAL_POLICY,
    AUTO_APPROVAL,
    MANUAL_APPROVAL,
    REVOKED,
    SIGNER,
    BootstrapToken,
    bootstrap_secret,
    bootstrap_secret_name,
)
from skerry.api.errors import Forbidden, Invalid
from skerry.api.keys import ObjectKey
from skerry.api.objects import Object
from skerry.logic.machinery.workspaces.names import ADMIN_GROUP
from skerry.server.access import Attributes, Authorizer, Decision
from skerry.server.admission.operation import Operation
from skerry.server.user import User
from skerry.server.workspaces.edge_marks import EdgeMarks
from tests.kit.machinery.objects import resource
from tests.kit.server.calls import call_of
from tests.kit.server.clock import HandClock
from tests.kit.server.harness import Everybody
from tests.kit.server.mailboxes import BOX, INVENTORY, TARGET, MailboxPlace, mailbox_place
from tests.kit.server.refusing import Except

ANN, ADMIN = User("ann"), User("admin", groups=(ADMIN_GROUP,))
NOBODY = Except("approve signers")


class InInventory(Everybody):
    """Approving is granted where the SyncTargets are, and nowhere else."""

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        return Decision(attributes.cluster == INVENTORY and attributes.name == SIGNER)


def cluster(**notes: str) -> Object:
    names = {"revoked": REVOKED, "approval": APPROVAL_POLICY}
    annotations = {names.get(name, name): value for name, value in notes.items()}
    return {"metadata": {"name": "cluster", "annotations": annotations}, "spec": {}}


async def changed(
    new: Object,
    old: Object | None = None,
    *,
    user: User = ADMIN,
    authorizer: Authorizer | None = None,
    where: str = BOX,
    place: MailboxPlace | None = None,
    **more: Any,
) -> Operation:
    place = place or await mailbox_place()
    base = resource("configmaps")
    info = replace(base.info, group="core.kcp.io", resource="logicalclusters", namespaced=False)
    call = call_of(replace(base, info=info), user=user, cluster=where)
    operation = Operation(call, "UPDATE", deepcopy(new), old or cluster(), **more)
    rule = EdgeMarks(place.mailboxes, authorizer or Everybody(), place.store, HandClock())
    await rule.admit(operation)
    return operation


async def test_a_revocation_has_the_hubs_own_time_whatever_is_written() -> None:
    for text in ("now", "2099-01-01T00:00:00Z", "1970-01-01T00:00:00Z"):
        done = await changed(cluster(revoked=text))
        written = done.obj["metadata"]["annotations"][REVOKED]
        assert written.startswith("2030-01-01T00:00:00")


async def test_a_revocation_deletes_what_would_let_the_edge_in_again_and_nothing_else() -> None:
    place = await mailbox_place()
    token = BootstrapToken("abcdef", "0" * 32)
    made = bootstrap_secret(
        token, sync_target=TARGET, expiration="2030-01-02T00:00:00Z", approved=True
    )
    credential = ObjectKey("", "secrets", BOX, "default", bootstrap_secret_name("abcdef"))
    await place.put(credential, made)
    await place.put(ObjectKey("", "secrets", BOX, "default", "mine"), {"type": "Opaque"})
    requests = ("certificates.k8s.io", "certificatesigningrequests", BOX, "")
    waiting = ObjectKey(*requests, "waiting")
    await place.put(waiting, {"spec": {"signerName": SIGNER}})
    await place.put(ObjectKey(*requests, "other"), {"spec": {"signerName": "example.org/any"}})
    done = await changed(cluster(revoked="now"), place=place)
    assert {write.key for write in done.writes} == {credential.path(), waiting.path()}
    assert all(write.value is None and write.expected for write in done.writes)
    lifted = await changed(cluster(), cluster(revoked="x"), place=place)
    assert lifted.writes == []


async def test_who_approves_an_inventorys_edges_may_revoke_and_not_take_it_back() -> None:
    await changed(cluster(revoked="now"), user=ANN, authorizer=InInventory())
    with pytest.raises(Forbidden, match="administrators"):
        await changed(cluster(), cluster(revoked="x"), user=ANN, authorizer=InInventory())
    with pytest.raises(Forbidden):
        await changed(cluster(revoked="now"), user=ANN, authorizer=NOBODY)
    await changed(cluster(), cluster(revoked="x"), user=ADMIN, authorizer=NOBODY)


@pytest.mark.parametrize(
    "more",
    [
        {"labels": {"a": "b"}},
        {"finalizers": ["x/y"]},
        {"ownerReferences": [{"uid": "u"}]},
        {"annotations": {REVOKED: "now", "note": "x"}},
    ],
)
async def test_who_revokes_without_being_an_administrator_writes_nothing_else(more: Object) -> None:
    new = cluster(revoked="now")
    new["metadata"].update(more)
    with pytest.raises(Forbidden, match="may be written"):
        await changed(new, user=ANN, authorizer=InInventory())
    await changed(new, user=ADMIN)


async def test_a_workspace_that_is_no_mailbox_has_no_edge_to_revoke() -> None:
    with pytest.raises(Invalid, match="no mailbox"):
        await changed(cluster(revoked="now"), where=INVENTORY)


async def test_whether_edges_need_a_person_is_for_who_approves_there() -> None:
    for policy in (AUTO_APPROVAL, MANUAL_APPROVAL):
        await changed(cluster(approval=policy), user=ANN, where=INVENTORY)
        with pytest.raises(Forbidden, match="approve"):
            await changed(cluster(approval=policy), user=ANN, where=INVENTORY, authorizer=NOBODY)
    with pytest.raises(Invalid, match="Unsupported value"):
        await changed(cluster(approval="perhaps"), where=INVENTORY)
    # Taking it off changes the policy as well.
    with pytest.raises(Forbidden):
        await changed(
            cluster(), cluster(approval=AUTO_APPROVAL), user=ANN, where=INVENTORY,
            authorizer=NOBODY,
        )  # fmt: skip


async def test_what_leaves_the_marks_alone_is_no_concern_in_a_workspace() -> None:
    new = cluster(approval=AUTO_APPROVAL, note="x")
    old = cluster(approval=AUTO_APPROVAL)
    await changed(new, old, user=ANN, where=INVENTORY, authorizer=NOBODY)
