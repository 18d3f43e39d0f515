"""Table ``wanted``: what the mailbox asks this edge to run, one row per object.

A mailbox holds more than wishes. Reports came up from this very edge; what every cluster makes
for itself (its root certificate, the tokens of its accounts) is nobody's wish; an object that is
being deleted is a wish no more, even while a finalizer keeps it. None of them has a row.

Whether a row counts is another question, answered by the scope of the SyncerConfigs, and what the
absence of a row means is the question of ``evidence``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from skerry.api.edge import (
    ADOPT,
    CREATE_ONLY,
    DOWNSYNC_OVERWRITE,
    ORPHAN_ON_DELETE,
    OWNER_WORKSPACE,
    RECREATE,
    is_projected,
    is_release_record,
    is_report,
    is_system_object,
)
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.api.refs import ClusterName
from skerry.kit.text import whole_number
from skerry.logic.fleet.syncing.carrying import carried, digest


@dataclass(frozen=True, slots=True)
class Options:
    """What the owner of an object asks for beyond having it at the edge."""

    create_only: bool = False
    orphan: bool = False
    adopt: bool = False
    recreate: bool = False

    @classmethod
    def of(cls, obj: Mapping[str, Any]) -> Options:
        """Return what the annotations of *obj* ask for."""
        annotations = obj["metadata"].get("annotations") or {}
        return cls(
            create_only=annotations.get(CREATE_ONLY) == "true"
            or annotations.get(DOWNSYNC_OVERWRITE) == "false",
            orphan=annotations.get(ORPHAN_ON_DELETE) == "true",
            adopt=annotations.get(ADOPT) == "true",
            recreate=annotations.get(RECREATE) == "true",
        )


NO_OPTIONS = Options()


@dataclass(frozen=True, slots=True)
class Desired:
    """A row of ``wanted``: an object as the mailbox wants it at the edge."""

    version: str
    content: Object
    uid: str
    revision: int
    options: Options = NO_OPTIONS
    # The cluster of the workspace whose object it is a copy of; empty where the copy does not say.
    owner: ClusterName = ""

    @property
    def digest(self) -> str:
        """What tells this content from another."""
        return digest(self.content)

    @classmethod
    def of(cls, version: str, obj: Mapping[str, Any]) -> Desired:
        """Return the row of *obj*, which is read and applied at *version*."""
        metadata = obj["metadata"]
        revision = revision_of(metadata.get("resourceVersion"))
        owner = (metadata.get("annotations") or {}).get(OWNER_WORKSPACE, "")
        uid = metadata.get("uid", "")
        return cls(version, carried(obj), uid, revision, Options.of(obj), owner)


def goes_down(kind: GroupResource, obj: Mapping[str, Any]) -> bool:
    """Tell whether a mailbox object of *kind* is a wish at all."""
    if obj["metadata"].get("deletionTimestamp"):
        return False
    if is_release_record(kind, obj):
        return is_projected(obj)
    return not is_report(obj) and not is_system_object(kind, obj)


def wanted(kind: GroupResource, version: str, obj: Mapping[str, Any] | None) -> Desired | None:
    """Return the row for what the mailbox has under one name; None when it has no wish there."""
    if obj is None or not goes_down(kind, obj):
        return None
    return Desired.of(version, obj)


def revision_of(text: object) -> int:
    """Return a resourceVersion as the number it is everywhere; 0 when it is none."""
    return whole_number(str(text or "")) or 0
