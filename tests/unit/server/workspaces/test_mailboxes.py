"""Mailboxes: whose they are, when they are closed, and what their edge may still do."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from skerry.api.edge_identity import (
    AUTO_APPROVAL,
    EDGE_GROUPS,
    MAILBOX_NAMESPACE,
    EdgeName,
    account_name,
)
from skerry.api.keys import ObjectKey
from skerry.logic.machinery.edges.scope import NOTHING
from skerry.server.user import User
from skerry.server.workspaces.records import Binding, Claim
from skerry.store.base import Write
from tests.kit.server.mailboxes import (
    BOX,
    EDGE,
    INVENTORY,
    MAILBOX,
    PROVIDER,
    SYNC_TARGET,
    TARGET,
    UID,
    MailboxPlace,
    mailbox_place,
)

NOW = datetime(2030, 1, 1, tzinfo=UTC)
CONFIG = ObjectKey("edge.kcp.io", "syncerconfigs:identity", BOX, "", "the-one")
MAPS = {"apiGroup": "", "resources": ["configmaps"], "namespaces": ["up"], "names": ["*"]}


async def followed(place: MailboxPlace, *writes: Write) -> None:
    """Commit *writes* and have them followed."""
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(place.dispatcher.run())
        if writes:
            await place.store.commit(writes)
        await place.dispatcher.reached(await place.store.revision())
        running.cancel()


async def test_a_mailbox_is_one_by_its_name_below_a_workspace_with_the_export() -> None:
    place = await mailbox_place()
    found = place.mailboxes
    assert found.mailbox(BOX) == MAILBOX
    assert found.mailbox(INVENTORY) is None
    assert found.mailbox("nowhere") is None
    assert (found.sync_target(MAILBOX), found.cluster_of(MAILBOX)) == (TARGET, BOX)
    assert found.named(INVENTORY, TARGET) == MAILBOX
    assert found.named("other", TARGET) is None
    # Somebody's workspace of such a name is none.
    place.change(BOX, path=f"root:other:{MAILBOX.workspace}")
    assert found.mailbox(BOX) is None
    assert not found.is_closed_cluster(BOX)
    assert found.is_shut(BOX)


async def test_a_mailbox_whose_sync_target_goes_is_closed_and_opens_for_no_other() -> None:
    place = await mailbox_place()
    assert not place.mailboxes.is_closed_cluster(BOX)
    await followed(place, Write(SYNC_TARGET.path(), None))
    assert place.mailboxes.is_closed_cluster(BOX)
    assert place.closed == [BOX]
    assert not place.mailboxes.admits(EDGE, NOW)
    # One of the same name is another, by its UID.
    await place.put(SYNC_TARGET, {"metadata": {"uid": UID.replace("0a", "0b")}})
    await followed(place)
    assert place.mailboxes.is_closed_cluster(BOX)


async def test_a_sync_target_that_is_being_deleted_is_gone() -> None:
    place = await mailbox_place()
    terminating = {"uid": UID, "deletionTimestamp": "2030-01-01T00:00:00Z"}
    await place.put(SYNC_TARGET, {"metadata": terminating})
    await followed(place)
    assert place.mailboxes.is_closed_cluster(BOX)
    assert place.mailboxes.all_named(TARGET) == ()


async def test_a_certificate_from_before_a_revocation_does_not_count_and_one_from_after_does() -> (
    None
):
    place = await mailbox_place()
    admits = place.mailboxes.admits
    assert admits(EDGE, NOW)
    assert not admits(EdgeName(BOX, UID.replace("0a", "0b")), NOW)
    assert not admits(EdgeName(INVENTORY, UID), NOW)
    place.change(BOX, revoked="2030-01-01T00:00:00.000000Z")
    assert place.mailboxes.is_closed_cluster(BOX)
    assert not admits(EDGE, NOW)
    assert admits(EDGE, NOW.replace(microsecond=1))
    # Whoever writes something else means a revocation too.
    place.change(BOX, revoked="yes")
    assert not admits(EDGE, datetime(2999, 1, 1, tzinfo=UTC))


async def test_who_watches_through_a_claim_of_a_closed_mailbox_is_notified() -> None:
    place = await mailbox_place()
    notified: list[tuple[str, str]] = []
    place.state.claims_changed = lambda cluster, name: notified.append((cluster, name))
    claim = Claim("", "configmaps", "", True)
    place.state.bindings[BOX] = {
        "with": Binding("shop", "widgets", (), (claim,)),
        "without": Binding("shop", "gadgets", ()),
    }
    await followed(place, Write(SYNC_TARGET.path(), None))
    assert notified == [("shop", "widgets")]


async def test_the_scope_is_what_all_configurations_cover_and_nothing_without_one() -> None:
    place = await mailbox_place()
    assert place.mailboxes.scope(BOX) == NOTHING
    await place.put(CONFIG, {"spec": {"upsync": [MAPS]}})
    await followed(place)
    one = place.mailboxes.scope(BOX)
    assert one != NOTHING
    other = CONFIG._replace(name="other")
    await place.put(other, {"spec": {"upsync": [{**MAPS, "namespaces": ["down"]}]}})
    await followed(place)
    assert place.mailboxes.scope(BOX) not in (one, NOTHING)
    await followed(place, Write(other.path(), None))
    assert place.mailboxes.scope(BOX) == one
    await followed(place, Write(CONFIG.path(), None))
    assert place.mailboxes.scope(BOX) == NOTHING


@pytest.mark.parametrize("spec", [5, [], {"upsync": 5}, {"upsync": [5]}, None])
async def test_a_configuration_that_is_not_of_its_form_covers_nothing(spec: Any) -> None:
    place = await mailbox_place()
    await place.put(CONFIG, {"spec": spec})
    await followed(place)
    assert place.mailboxes.scope(BOX) == NOTHING


async def test_the_account_that_an_edge_had_is_an_edge_and_any_other_is_itself() -> None:
    place = await mailbox_place()
    prefix = f"system:serviceaccount:{MAILBOX_NAMESPACE}:"
    groups = ("system:serviceaccounts", "system:masters")
    old = User(f"{prefix}{account_name(TARGET)}", groups=groups, home=BOX)
    assert place.mailboxes.of_account(old).groups == EDGE_GROUPS
    for other in (
        User(f"{prefix}robot", groups=groups, home=BOX),
        User(old.name, groups=groups, home=INVENTORY),
        User(old.name, groups=groups),
    ):
        assert place.mailboxes.of_account(other) is other


async def test_an_inventory_says_whether_its_edges_need_a_person() -> None:
    place = await mailbox_place()
    assert not place.mailboxes.approves_by_itself(MAILBOX)
    place.change(PROVIDER, edge_approval=AUTO_APPROVAL)
    assert not place.mailboxes.approves_by_itself(MAILBOX)
    for policy, wanted in ((AUTO_APPROVAL, True), ("Manual", False), ("auto", False)):
        place.change(INVENTORY, edge_approval=policy)
        assert place.mailboxes.approves_by_itself(MAILBOX) is wanted, policy
