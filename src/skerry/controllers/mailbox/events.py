"""What enqueues a mailbox: its SyncTarget, its Workspace, its APIBinding.

SyncTargets change with every heartbeat, on which no mailbox depends: of their changes only coming,
going and being deleted count. Bindings are found by the logical cluster they are in, Workspaces by
the one they stand for, so that no event takes longer with a larger fleet. What the caches keep of
each object is what is read here and in ``observe``, a few hundred bytes.

    SyncTarget: comes, goes, or is being deleted   its mailbox, by cluster and UID
    Workspace: any change                          the mailbox that its name says it is
    APIBinding ``bind-edge``: any change           the mailbox whose content its cluster is

Nothing is lost where one comes before the other. A binding that is seen before its Workspace finds
no mailbox; the event of the Workspace follows, and both are read then.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

from skerry.api.edge import MAILBOX_BINDING, Mailbox, mailbox_named
from skerry.api.objects import Object
from skerry.api.refs import CLUSTER_ANNOTATION
from skerry.runtime.client import cluster_of
from skerry.runtime.informer import Handler, Informer

NAME = "mailbox-controller"
BY_UID = "uid"
BY_CONTENT = "content"
_KEPT_METADATA = ("name", "namespace", "uid", "resourceVersion", "deletionTimestamp")


def by_uid(obj: Object) -> Iterable[Hashable]:
    """Index SyncTargets under their mailbox."""
    return (mailbox_of(obj),)


def by_content(workspace: Object) -> Iterable[Hashable]:
    """Index Workspaces under the logical cluster they stand for."""
    cluster = content_of(workspace)
    return (cluster,) if cluster else ()


def mailbox_of(sync_target: Object) -> Mailbox:
    """Return the mailbox a SyncTarget should have."""
    return Mailbox(cluster_of(sync_target), sync_target["metadata"].get("uid", ""))


def content_of(workspace: Object) -> str:
    """Return the logical cluster of a workspace's content; empty until it has one."""
    return str((workspace.get("spec") or {}).get("cluster") or "")


def lean_binding(obj: Object) -> Object:
    """Return what is worth keeping of an APIBinding."""
    reference = (obj.get("spec") or {}).get("reference")
    metadata = _lean(obj["metadata"], CLUSTER_ANNOTATION)
    return {"metadata": metadata, "spec": {"reference": reference}}


def _lean(metadata: dict[str, Any], *annotations: str) -> Object:
    kept: Object = {name: metadata[name] for name in _KEPT_METADATA if name in metadata}
    present = metadata.get("annotations") or {}
    kept["annotations"] = {name: present[name] for name in annotations if name in present}
    return kept


def enqueue_on_sync_target(add: Callable[[Mailbox], None]) -> Handler:
    """Enqueue on every change but the heartbeat's, which no mailbox depends on.

    One that was deleted and made anew comes as two changes, of two mailboxes: the UID is another.
    """

    def handle(old: Object | None, new: Object | None) -> None:
        if old is not None and new is not None:
            deletion = "deletionTimestamp"
            if old["metadata"].get(deletion) == new["metadata"].get(deletion):
                return
        for obj in (old, new):
            if obj is not None:
                add(mailbox_of(obj))

    return handle


def enqueue_on_workspace(add: Callable[[Mailbox], None]) -> Handler:
    """Enqueue the mailbox a Workspace is, if it is one."""

    def handle(old: Object | None, new: Object | None) -> None:
        obj = new or old
        mailbox = mailbox_named(obj["metadata"]["name"]) if obj is not None else None
        if mailbox is not None:
            add(mailbox)

    return handle


def enqueue_on_binding(workspaces: Informer, add: Callable[[Mailbox], None]) -> Handler:
    """Enqueue the mailbox whose binding changed or went, so that it is made again."""

    def handle(old: Object | None, new: Object | None) -> None:
        obj = new or old
        if obj is None or obj["metadata"]["name"] != MAILBOX_BINDING:
            return
        for workspace in workspaces.index.by(BY_CONTENT, cluster_of(obj)):
            mailbox = mailbox_named(workspace["metadata"]["name"])
            if mailbox is not None:
                add(mailbox)

    return handle
