"""From a Location's choice to the copy's health: the first link that breaks, and its reason."""

from __future__ import annotations

import copy as copying
from dataclasses import replace
from typing import Any

import pytest

from skerry.api.edge import APPLIED, OWNER_WORKSPACE, SYNC_ERROR
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef, namespace_ref
from skerry.logic.fleet.explanation.links import Chain, Link
from skerry.logic.fleet.explanation.silence import Silence
from skerry.logic.fleet.explanation.way import Copy, Sent, Surroundings, chosen, way
from skerry.logic.fleet.explanation.what import Subject
from skerry.logic.fleet.placement.explain import Explanation
from skerry.logic.fleet.revision.manifest import content_digest
from skerry.logic.fleet.syncing.delivery import content_mark
from skerry.logic.fleet.translation.copies import copied, labelled
from skerry.logic.fleet.translation.sources import WatchKey, record_of

WEB = ObjectRef("", "apps", "deployments", "shop", "web")
DEPLOYMENT: Object = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"replicas": 1},
}
SUBJECT = Subject(WEB, DEPLOYMENT, {})
MEANT = Link("selection", True)
PLACED = Explanation(True, True, ("st",), (), (), None)
AROUND = Surroundings(
    PLACED,
    {"metadata": {"name": "florin"}},
    in_slice=True,
    mailbox={"metadata": {"name": "m"}, "status": {"phase": "Ready"}},
    sync_target="st",
)


def delivered(subject: Subject = SUBJECT, **status: Any) -> Object:
    """Return the copy as it stands in the mailbox once it was applied."""
    made: Object = copying.deepcopy(labelled(copied(subject.item.group_resource, subject.object)))
    made["metadata"]["generation"] = 1
    made["metadata"].setdefault("annotations", {})[APPLIED] = content_mark(made)
    well = {"replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}
    made["status"] = well | status
    return made


def followed(
    around: Surroundings = AROUND,
    found: Copy | None = None,
    subject: Subject = SUBJECT,
    selection: Link = MEANT,
) -> Chain:
    return way(selection, subject, None, around, found or Copy(delivered(subject)))


def broken(chain: Chain) -> tuple[str, str]:
    link = chain.broken
    assert link is not None
    return link.step, link.reason


def test_when_every_link_holds_the_object_is_healthy() -> None:
    assert followed().outcome == "Healthy"
    assert [link.step for link in followed().links] == [
        "category", "selection", "location", "customization", "mailbox", "copy", "applied",
        "health",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        (replace(PLACED, selected=False, chosen=False), "LocationNotSelected"),
        (replace(PLACED, chosen=False, refused=True), "NotGranted"),
        (replace(PLACED, chosen=False), "PassedOver"),
        (replace(PLACED, sync_targets=()), "NoSyncTarget"),
    ],
)
def test_a_location_that_is_no_destination_says_why(where: Explanation, reason: str) -> None:
    around = replace(AROUND, where=replace(where, reasons=("because",)))
    link = chosen(around)
    assert (link.holds, link.reason, link.messages) == (False, reason, ("because",))
    assert broken(followed(around)) == ("location", reason)


def test_a_destination_that_is_held_is_one_and_says_so() -> None:
    link = chosen(replace(AROUND, where=replace(PLACED, held=True)))
    assert (link.holds, link.reason) == (True, "Held")


def test_a_destination_that_the_scheduler_has_not_written_is_to_come() -> None:
    assert broken(followed(replace(AROUND, in_slice=False))) == ("location", "NotYetScheduled")


def test_what_no_grant_covers_is_withheld_and_held_where_it_is_already() -> None:
    around = replace(AROUND, rules=(), granting="root:imw")
    assert broken(followed(around, Copy(None))) == ("grant", "NotGranted")
    assert broken(followed(around)) == ("grant", "Held")
    namespace = Subject(namespace_ref("shop"), {"metadata": {"name": "shop"}})
    assert broken(followed(around, Copy(None), namespace)) == ("grant", "NotGranted")


@pytest.mark.parametrize(
    ("mailbox", "reason", "holds"),
    [
        (None, "NoMailbox", False),
        ({"metadata": {"deletionTimestamp": "t"}, "status": {}}, "MailboxGoing", False),
        ({"metadata": {}, "status": {"phase": "Initializing"}}, "MailboxNotReady", False),
        ({"metadata": {}}, "MailboxNotReady", False),
    ],
)
def test_a_mailbox_that_is_not_ready_is_the_end(
    mailbox: Object | None, reason: str, holds: bool
) -> None:
    chain = followed(replace(AROUND, mailbox=mailbox))
    assert broken(chain) == ("mailbox", reason)
    assert chain.links[-1].holds is holds


def test_what_cannot_be_read_is_unknown_and_not_absent() -> None:
    chain = followed(replace(AROUND, unreadable="you may not read it"))
    assert broken(chain) == ("mailbox", "MailboxUnreadable")
    assert chain.links[-1].holds is None


def test_a_copy_is_missing_foreign_older_or_anothers() -> None:
    assert broken(followed(found=Copy(None))) == ("copy", "NotInMailbox")
    acting = followed(found=Copy(None, would_act=True))
    assert broken(acting) == ("copy", "KindWithheld")
    assert "--denatured-kinds" in acting.links[-1].messages[0]
    foreign: Object = {"metadata": {"name": "web", "namespace": "shop"}}
    assert broken(followed(found=Copy(foreign)))[0] == "copy"
    older = delivered()
    older["spec"] = {"replicas": 7}
    chain = followed(found=Copy(older))
    assert broken(chain) == ("copy", "CopyDiffers")
    assert chain.links[-1].holds is None, "it may be on its way"
    older["metadata"]["annotations"][OWNER_WORKSPACE] = "other"
    taken = followed(found=Copy(older, owner="root:other"))
    assert taken.links[-1].holds is False
    assert "root:other" in taken.links[-1].messages[0]
    assert "hand-over" in taken.links[-1].edit


def test_an_edge_that_is_not_heard_of_leaves_what_is_there_unknown() -> None:
    silent = replace(AROUND, silence=Silence("LeaseLapsed", "last heard of 3m ago"))
    chain = followed(silent)
    assert broken(chain) == ("edge", "LeaseLapsed")
    assert chain.links[-1].messages == ("what is there is not known: st last heard of 3m ago",)
    assert not chain.delivered


def test_what_the_edge_did_not_apply_says_the_edges_words() -> None:
    copy = delivered()
    copy["metadata"]["annotations"][SYNC_ERROR] = "Rejected: field is wrong: x"
    chain = followed(found=Copy(copy))
    assert broken(chain) == ("applied", "Rejected")
    assert chain.links[-1].messages == ("field is wrong: x",)
    del copy["metadata"]["annotations"][SYNC_ERROR]
    copy["metadata"]["annotations"][APPLIED] = "0-older"
    assert broken(followed(found=Copy(copy)))[0] == "applied"


def test_ill_health_is_the_last_link_and_still_delivered() -> None:
    chain = followed(found=Copy(delivered(availableReplicas=0)))
    assert chain.links[-1].step == "health"
    assert chain.delivered
    assert chain.outcome != "Healthy"


def test_a_kind_without_status_is_there_or_not() -> None:
    item = ObjectRef("", "", "configmaps", "shop", "page")
    page = Subject(item, {"apiVersion": "v1", "kind": "ConfigMap",
                          "metadata": {"name": "page", "namespace": "shop"}}, {})  # fmt: skip
    copy = delivered(page)
    del copy["status"]
    copy["metadata"]["annotations"][APPLIED] = content_mark(copy)
    chain = followed(found=Copy(copy, has_status=False), subject=page)
    assert chain.broken is None
    assert chain.links[-1].step == "applied"


def sent(around_digests: dict[ObjectRef, str] | None, live: int = 41) -> Surroundings:
    return replace(AROUND, sent=Sent(41, live, around_digests))


def live_digest() -> str:
    key = WatchKey("", WEB.group, "", WEB.resource)
    return content_digest(WEB, record_of(key, DEPLOYMENT).digest)


def test_where_the_revision_has_what_the_workspace_has_the_way_goes_on_as_usual() -> None:
    found = followed(sent({WEB: live_digest()}))
    assert found.outcome == "Healthy"
    steps = [link.step for link in found.links]
    assert steps[steps.index("revision") + 1] == "customization"


def test_an_older_revision_is_named_and_nothing_is_compared_with_the_workspace() -> None:
    other = replace(SUBJECT, object={**DEPLOYMENT, "spec": {"replicas": 9}})
    found = way(MEANT, other, None, sent({WEB: live_digest()}), Copy(delivered()))
    [revision] = [link for link in found.links if link.step == "revision"]
    assert (revision.holds, revision.reason) == (True, "OtherRevision")
    # The copy is that of the revision: that it differs from the workspace is no fault.
    assert [link.holds for link in found.links if link.step == "copy"] == [True]
    assert "customization" not in [link.step for link in found.links]


def test_an_older_revision_that_is_not_in_the_mailbox_breaks_there() -> None:
    other = replace(SUBJECT, object={**DEPLOYMENT, "spec": {"replicas": 9}})
    found = way(MEANT, other, None, sent({WEB: live_digest()}), Copy(None))
    assert broken(found) == ("copy", "NotInMailbox")


@pytest.mark.parametrize(
    ("live", "ending"), [(41, "does not have it"), (42, "the workspace is at 42")]
)
def test_an_object_that_the_revision_lacks_is_not_meant_for_the_edge(
    live: int, ending: str
) -> None:
    found = followed(sent({}, live))
    assert broken(found) == ("revision", "NotInRevision")
    assert found.broken is not None
    assert found.broken.messages[0].endswith(ending)


def test_a_revision_that_cannot_be_read_is_unknown_and_changes_nothing() -> None:
    [link] = [each for each in followed(sent(None)).links if each.step == "revision"]
    assert (link.holds, link.reason) == (None, "RevisionMissing")
    assert "stays as it is" in link.messages[0]
