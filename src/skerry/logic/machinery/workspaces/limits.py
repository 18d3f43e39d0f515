"""How much a logical cluster may hold: objects and bytes, by default and by annotation.

The limits keep one tenant, or one edge, from filling the store for all. They are no price list: a
workspace that needs more gets annotations on its LogicalCluster from an administrator of the hub.

A *tree* is a workspace directly below root, or a home, with all workspaces below it. Whoever may
make workspaces would otherwise have the limits of one as often as they like.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from skerry.api.edge import USUAL_PROVIDER

MAX_OBJECTS = "quota.skerry.io/max-objects"
MAX_BYTES = "quota.skerry.io/max-bytes"
# On the LogicalCluster of the top workspace of a tree.
MAX_TREE_OBJECTS = "quota.skerry.io/max-tree-objects"
MAX_TREE_BYTES = "quota.skerry.io/max-tree-bytes"
MAX_TREE_WORKSPACES = "quota.skerry.io/max-tree-workspaces"
TREE_ANNOTATIONS = (MAX_TREE_OBJECTS, MAX_TREE_BYTES, MAX_TREE_WORKSPACES)
ANNOTATIONS = (MAX_OBJECTS, MAX_BYTES, *TREE_ANNOTATIONS)
# More digits than any store has bytes.
_MAX_DIGITS = 18


class Usage(NamedTuple):
    """What a logical cluster holds, or a tree of so many."""

    objects: int = 0
    bytes: int = 0
    workspaces: int = 0


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper bounds of a logical cluster or a tree; 0 is none."""

    objects: int = 0
    bytes: int = 0
    # Of a tree only.
    workspaces: int = 0


# A tenth of what a hub is designed for: ten workspaces must go wrong before the others notice.
WORKSPACE_LIMITS = Limits(objects=100_000, bytes=1 << 30)
# Half of what a hub is designed for, in a tenth of the workspaces.
TREE_LIMITS = Limits(objects=500_000, bytes=4 << 30, workspaces=1000)
# Kinds that cost the server far more than their bytes: schemas are compiled, types served, names
# looked up with every request. More than any workspace has.
KIND_LIMITS = {
    ("apiextensions.k8s.io", "customresourcedefinitions"): 500,
    ("apis.kcp.io", "apibindings"): 500,
    ("apis.kcp.io", "apiexports"): 500,
    ("apis.kcp.io", "apiresourceschemas"): 1000,
}
# Where the hub keeps what is its own, mailboxes above all, each with limits of its own.
_HUBS_OWN = frozenset(("root", USUAL_PROVIDER))
# Far more than an edge reports, far less than would be felt.
MAILBOX_LIMITS = Limits(objects=20_000, bytes=256 << 20)


def parse_limit(text: str) -> int | None:
    """Return the limit an annotation gives; None when it is no whole number."""
    fits = text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS
    return int(text) if fits else None


def with_annotations(limits: Limits, objects: str, size: str, workspaces: str = "") -> Limits:
    """Return *limits* as far as no annotation gives another one."""
    usual = (limits.objects, limits.bytes, limits.workspaces)
    given = (parse_limit(objects), parse_limit(size), parse_limit(workspaces))
    return Limits(*(u if g is None else g for u, g in zip(usual, given, strict=True)))


def tree_of(path: str) -> str:
    """Return the path of the tree a workspace is in; empty for the hub's own."""
    top = ":".join(path.split(":")[:2])
    return "" if top in _HUBS_OWN else top


def kind_refusal(kind: tuple[str, str], used: int) -> str:
    """Return why a workspace takes no further object of a kind; empty when it does."""
    limit = KIND_LIMITS[kind]
    return _exceeded("workspace", kind[1], used, limit) if used >= limit else ""


def refusal(
    name: str, limits: Limits, usage: Usage, *, creates: bool, workspace: bool = False
) -> str:
    """Return why *name*, a tree or a workspace, takes no more; empty when it does.

    *creates*: the write makes an object; *workspace*: and that is a workspace. In the words of
    ResourceQuota, which tools know.
    """
    if workspace and limits.workspaces and usage.workspaces >= limits.workspaces:
        return _exceeded(name, "workspaces", usage.workspaces, limits.workspaces)
    if creates and limits.objects and usage.objects >= limits.objects:
        return _exceeded(name, "objects", usage.objects, limits.objects)
    if limits.bytes and usage.bytes >= limits.bytes:
        return f"exceeded quota: {name}, used: bytes={usage.bytes}, limited: bytes={limits.bytes}"
    return ""


def _exceeded(name: str, what: str, used: int, limit: int) -> str:
    message = f"exceeded quota: {name}, requested: {what}=1"
    return f"{message}, used: {what}={used}, limited: {what}={limit}"
