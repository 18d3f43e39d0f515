"""Which event enqueues which mailbox, and what of an object is kept."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.edge import SYNC_TARGET_NAME, Mailbox
from skerry.api.kcp.resources import WORKSPACES
from skerry.api.objects import Object
from skerry.controllers.mailbox.events import (
    BY_CONTENT,
    by_content,
    by_uid,
    content_of,
    enqueue_on_binding,
    enqueue_on_sync_target,
    enqueue_on_workspace,
    lean_binding,
    mailbox_of,
)
from tests.kit.caches import cache

UID = "0e395079-f849-41e9-bd4f-0bcc07a16d3a"
MAILBOX = Mailbox("64vn6n7vuthd48ud", UID)


def sync_target(**metadata: Any) -> Object:
    home = {"kcp.io/cluster": MAILBOX.cluster}
    return {"metadata": {"name": "florin", "uid": UID, "annotations": home, **metadata}}


def workspace(name: str = MAILBOX.workspace, content: str = "xq5f", **metadata: Any) -> Object:
    notes = {"kcp.io/cluster": "espw", SYNC_TARGET_NAME: "florin", "other": "x"}
    return {
        "metadata": {"name": name, "uid": "w", "annotations": notes, **metadata},
        "spec": {"cluster": content, "type": {"name": "universal"}},
        "status": {"phase": "Ready"},
    }


def test_a_mailbox_is_named_by_cluster_and_uid_of_its_sync_target() -> None:
    assert mailbox_of(sync_target()) == MAILBOX
    assert list(by_uid(sync_target())) == [MAILBOX]


def test_a_workspace_is_found_by_what_it_stands_for_once_it_has_that() -> None:
    assert list(by_content(workspace())) == ["xq5f"]
    assert list(by_content(workspace(content=""))) == []
    assert content_of({}) == content_of({"spec": None}) == ""


@pytest.mark.parametrize(
    ("old", "new", "enqueued"),
    [
        (None, sync_target(), 1),
        (sync_target(), None, 1),
        (sync_target(), sync_target(labels={"a": "b"}), 0),
        (sync_target(), sync_target(deletionTimestamp="t"), 2),
        (sync_target(deletionTimestamp="t"), sync_target(deletionTimestamp="t"), 0),
    ],
)
def test_a_heartbeat_enqueues_no_mailbox(
    old: Object | None, new: Object | None, enqueued: int
) -> None:
    added: list[Mailbox] = []
    enqueue_on_sync_target(added.append)(old, new)
    assert added == [MAILBOX] * enqueued


def test_only_workspaces_that_are_mailboxes_are_enqueued() -> None:
    added: list[Mailbox] = []
    handle = enqueue_on_workspace(added.append)
    handle(None, workspace("team-a"))
    handle(None, None)
    assert added == []
    handle(None, workspace())
    handle(workspace(), None)
    assert added == [MAILBOX, MAILBOX]


def test_a_binding_enqueues_the_mailbox_it_is_in() -> None:
    spaces = cache(
        WORKSPACES, workspace(), workspace("team-a", "other"), indexes={BY_CONTENT: by_content}
    )
    added: list[Mailbox] = []
    handle = enqueue_on_binding(spaces, added.append)

    def binding(name: str, cluster: str) -> Object:
        return {"metadata": {"name": name, "annotations": {"kcp.io/cluster": cluster}}}

    handle(None, binding("bind-edge", "xq5f"))
    handle(binding("bind-edge", "xq5f"), None)
    assert added == [MAILBOX, MAILBOX]
    # Another name, a workspace that is no mailbox, and one that nobody knows.
    handle(None, binding("bind-kube", "xq5f"))
    handle(None, binding("bind-edge", "other"))
    handle(None, binding("bind-edge", "gone"))
    handle(None, None)
    assert len(added) == 2


def test_of_a_binding_its_reference_is_kept() -> None:
    reference = {"export": {"path": "root:espw", "name": "edge.kcp.io"}}
    obj = {"metadata": {"name": "b"}, "spec": {"reference": reference}, "status": {"phase": "x"}}
    lean = {"metadata": {"name": "b", "annotations": {}}, "spec": {"reference": reference}}
    assert lean_binding(obj) == lean
    assert lean_binding({"metadata": {"name": "b"}})["spec"] == {"reference": None}
