"""What a person decides for an edge: deletions approved, a store accepted, an object taken over.

All of it is an annotation, on the SyncerConfig of the edge's mailbox or on the object itself. The
syncer acts on it whenever it hears of it, so nothing here waits for the edge.
"""

from __future__ import annotations

from dataclasses import dataclass

from skerry.api.edge import (
    ACCEPT_STORE_IDENTITY,
    ADOPT,
    APPROVE_DELETIONS,
    OWNER_WORKSPACE,
    SYNC_ERROR,
    SYNCER_CONFIG_NAME,
    SYNCER_CONFIGS,
)
from skerry.api.errors import Forbidden, NotFound
from skerry.api.kcp.resources import API_EXPORTS, LOGICAL_CLUSTERS, SYNC_TARGETS
from skerry.api.kinds import ResourceInfo
from skerry.api.objects import Object
from skerry.api.refs import PATH_ANNOTATION
from skerry.app.edge_identity import (
    HubAccess,
    NoMailbox,
    mailbox_for,
    mailbox_of,
    mailbox_path,
)
from skerry.app.explain_names import Unanswered, object_named
from skerry.app.export_views import view_path
from skerry.app.inventory import CommandFailed
from skerry.logic.machinery.conditions import find_condition
from skerry.logic.machinery.workspaces.names import ROOT
from skerry.runtime.client import EVERYWHERE, Client, Selection, WriteOptions, cluster_of
from skerry.runtime.discovery import discover

_OPTIONS = WriteOptions(field_manager="skerry-edge")
# As of a key that nobody waits with: there is nothing to decide.
NOTHING_WAITS = 6
_NOT_OURS = "NotOurs"


@dataclass(frozen=True, slots=True)
class Held:
    """Deletions that an edge holds: how many, the name that stands for them, the first of them."""

    edge: str
    count: int
    name: str
    objects: tuple[str, ...]

    def as_json(self, *, approved: bool) -> Object:
        """Return this as JSON can hold it."""
        return {
            "edge": self.edge,
            "approved": approved,
            "id": self.name,
            "count": self.count,
            "objects": list(self.objects),
        }


async def mailbox_client(hub: HubAccess, edge: str, imw: str, espw: str) -> Client:
    """Return the client for the mailbox of an edge by its SyncTarget's name.

    Without *imw* it may be in any workspace, if there is one of that name only.
    """
    if imw:
        mailbox = await mailbox_for(hub, edge, imw)
        return hub.at(mailbox_path(espw, mailbox))
    found = await _targets_named(hub, edge)
    if len(found) > 1:
        paths = ", ".join(sorted([await path_of(hub, cluster_of(each)) for each in found]))
        raise NoMailbox(f"there is a SyncTarget {edge!r} in {paths}: name its workspace with --imw")
    if not found:
        raise NoMailbox(
            f"no workspace has a SyncTarget {edge!r}; skerry fleet lists those there are"
        )
    return hub.at(mailbox_path(espw, mailbox_of(found[0])))


async def _targets_named(hub: HubAccess, edge: str) -> list[Object]:
    """Return the SyncTargets of that name; in the current workspace where no more may be read."""
    try:
        export = await hub.at(ROOT).get(API_EXPORTS, SYNC_TARGETS.group)
        everywhere = hub.client.at(view_path(export), EVERYWHERE)
        found = await everywhere.list(SYNC_TARGETS, Selection(fields=f"metadata.name={edge}"))
    except (Forbidden, NotFound):
        try:
            return [await hub.at(hub.current).get(SYNC_TARGETS, edge)]
        except NotFound:
            return []
    return list(found.items)


async def path_of(hub: HubAccess, cluster: str) -> str:
    """Return the path of a workspace; its cluster where that may not be read."""
    try:
        found = await hub.at(cluster).get(LOGICAL_CLUSTERS, "cluster")
    except (Forbidden, NotFound):
        return cluster
    return str((found["metadata"].get("annotations") or {}).get(PATH_ANNOTATION) or cluster)


async def _config(mailbox: Client, edge: str) -> Object:
    try:
        return await mailbox.get(SYNCER_CONFIGS, SYNCER_CONFIG_NAME)
    except (Forbidden, NotFound) as error:
        raise CommandFailed(
            NOTHING_WAITS,
            f"nothing was ever placed at edge {edge}: its mailbox has no SyncerConfig",
        ) from error


async def held_deletions(mailbox: Client, edge: str, name: str = "") -> Held:
    """Return what an edge holds; exit code 6 if nothing, or not what *name* stands for."""
    status = (await _config(mailbox, edge)).get("status") or {}
    held = status.get("heldDeletions")
    if not held:
        raise CommandFailed(NOTHING_WAITS, f"edge {edge} holds no deletions")
    found = Held(edge, int(held["count"]), str(held["approve"]), tuple(held.get("names") or ()))
    if name and name != found.name:
        raise CommandFailed(
            NOTHING_WAITS,
            f"edge {edge} holds {found.count} deletions with id {found.name}, not {name}: what is "
            "held has changed, look at it again",
        )
    return found


async def approve_deletions(mailbox: Client, held: Held) -> None:
    """Let the edge delete exactly what was shown."""
    await _annotate_config(mailbox, APPROVE_DELETIONS, held.name)


async def unknown_store(mailbox: Client, edge: str) -> tuple[str, str]:
    """Return the store an edge does not know, and its question; exit code 6 if it knows it."""
    found = find_condition(await _config(mailbox, edge), "HubIdentityChanged") or {}
    message = str(found.get("message") or "")
    store = message.rpartition(f"{ACCEPT_STORE_IDENTITY}=")[2]
    if found.get("status") != "True" or not store:
        raise CommandFailed(NOTHING_WAITS, f"edge {edge} knows the store of this hub")
    return store, message


async def accept_store(mailbox: Client, store: str) -> None:
    """Let the edge believe what this hub says from that store."""
    await _annotate_config(mailbox, ACCEPT_STORE_IDENTITY, store)


async def _annotate_config(mailbox: Client, key: str, value: str) -> None:
    patch = {"metadata": {"annotations": {key: value}}}
    await mailbox.patch(SYNCER_CONFIGS, SYNCER_CONFIG_NAME, patch, options=_OPTIONS)


@dataclass(frozen=True, slots=True)
class Refused:
    """An object that an edge does not take because it has one of that name already."""

    info: ResourceInfo
    name: str
    namespace: str
    owner: str

    @property
    def text(self) -> str:
        """How it is named to people."""
        place = f"{self.namespace}/" if self.namespace else ""
        return f"{self.info.group_resource} {place}{self.name}"


async def refused_object(mailbox: Client, edge: str, words: str, namespace: str) -> Refused:
    """Return the object that ``KIND/NAME`` in *namespace* means; exit code 6 unless not ours."""
    kind, slash, name = words.partition("/")
    if not (kind and slash and name) or "/" in name:
        raise CommandFailed(2, f"{words!r}: want KIND/NAME, such as configmaps/page")
    types = await discover(mailbox)
    try:
        text = f"{kind}/{namespace}/{name}" if namespace else words
        [info, *_], _, _ = object_named(types, text)
    except Unanswered as error:
        hint = "" if namespace else "; a namespaced one needs -n NAMESPACE"
        raise CommandFailed(2, f"{error}{hint}") from error
    try:
        copy = await mailbox.get(info.gvr, name, namespace)
    except NotFound as error:
        raise CommandFailed(5, f"{words} is not placed at edge {edge}") from error
    annotations = copy["metadata"].get("annotations") or {}
    owner = str(annotations.get(OWNER_WORKSPACE) or "")
    found = Refused(info, name, namespace, owner)
    if not str(annotations.get(SYNC_ERROR) or "").startswith(_NOT_OURS):
        raise CommandFailed(
            NOTHING_WAITS,
            f"edge {edge} does not refuse {found.text} as somebody else's: nothing to adopt",
        )
    return found


async def adopt(hub: HubAccess, refused: Refused) -> str:
    """Have edges take over the object that is in the way of this one; returns its owner's path.

    The source is annotated, not its copy: the copy follows the source.
    """
    if not refused.owner:
        raise CommandFailed(
            1,
            f"nobody knows whose {refused.text} is; annotate the object that is placed with "
            f"{ADOPT}=true",
        )
    owner = hub.at(refused.owner)
    patch = {"metadata": {"annotations": {ADOPT: "true"}}}
    try:
        await owner.patch(
            refused.info.gvr, refused.name, patch, refused.namespace, options=_OPTIONS
        )
    except NotFound as error:
        path = await path_of(hub, refused.owner)
        raise CommandFailed(5, f"workspace {path} has no {refused.text} any more") from error
    return await path_of(hub, refused.owner)
