"""What was placed and what was brought up, as it is remembered on disk.

A record is written *before* the first apply, without the edge object's UID (an intent), and again
afterwards with it. So whatever moment the syncer dies at, it later knows what it may have placed.
An object is ours if its UID is the recorded one, or, under an intent, if the server names our
field manager on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from skerry.api.edge import ADOPT, CREATE_ONLY, DOWNSYNC_OVERWRITE, ORPHAN_ON_DELETE, RECREATE
from skerry.api.objects import Object
from skerry.kit.text import whole_number
from skerry.logic.fleet.syncing.carrying import carried, digest
from skerry.logic.fleet.syncing.projection import OURS, our_digest


@dataclass(frozen=True, slots=True)
class Options:
    """What the owner of an object asks for beyond having it at the edge."""

    create_only: bool = False
    orphan: bool = False
    adopt: bool = False
    recreate: bool = False

    @classmethod
    def of(cls, obj: Mapping[str, Any]) -> Options:
        notes = obj["metadata"].get("annotations") or {}
        return cls(
            create_only=notes.get(CREATE_ONLY) == "true"
            or notes.get(DOWNSYNC_OVERWRITE) == "false",
            orphan=notes.get(ORPHAN_ON_DELETE) == "true",
            adopt=notes.get(ADOPT) == "true",
            recreate=notes.get(RECREATE) == "true",
        )


PLAIN = Options()


@dataclass(frozen=True, slots=True)
class Desired:
    """An object as the mailbox wants it at the edge."""

    version: str
    content: Object
    uid: str
    revision: int
    options: Options = PLAIN

    @property
    def digest(self) -> str:
        return digest(self.content)

    @classmethod
    def of(cls, version: str, obj: Mapping[str, Any]) -> Desired:
        metadata = obj["metadata"]
        revision = revision_of(metadata.get("resourceVersion"))
        return cls(version, carried(obj), metadata.get("uid", ""), revision, Options.of(obj))


@dataclass(frozen=True, slots=True)
class Placed:
    """The record of one object that goes down."""

    desired: Desired
    # The store the mailbox was in, and the SyncerConfig's revision that covered the object.
    store: str = ""
    config_revision: int = 0
    # Empty: an intent; nothing is known to be there yet.
    edge_uid: str = ""
    # Digests of what was last applied, and of our fields as the edge showed them afterwards.
    applied: str = ""
    ours: str = ""
    # False when the object was there before us: Namespaces, adopted objects.
    created: bool = True

    def is_of(self, live: Mapping[str, Any]) -> bool:
        """Tell whether *live* is the object this record speaks of."""
        if self.edge_uid:
            return bool(live["metadata"].get("uid") == self.edge_uid)
        return bool(live.get(OURS))

    def after(self, answer: Mapping[str, Any], *, applied: str, created: bool) -> Placed:
        """Return the record once the edge has answered an apply of ``desired``."""
        return replace(
            self,
            edge_uid=answer["metadata"].get("uid", ""),
            applied=applied,
            ours=our_digest(answer),
            created=created,
        )

    def encode(self) -> Object:
        """Return the record as JSON can hold it; shares the content."""
        desired = {name: getattr(self.desired, name) for name in _DESIRED}
        desired["options"] = asdict(self.desired.options)
        return {name: getattr(self, name) for name in _PLACED} | {"desired": desired}

    @classmethod
    def decode(cls, raw: Mapping[str, Any]) -> Placed:
        desired = dict(raw["desired"])
        desired["options"] = Options(**desired["options"])
        return cls(**{**raw, "desired": Desired(**desired)})


_DESIRED = tuple(item.name for item in fields(Desired))
_PLACED = tuple(item.name for item in fields(Placed) if item.name != "desired")


@dataclass(frozen=True, slots=True)
class Raised:
    """The record of one object that was brought up: the mailbox copy and what it was made of."""

    version: str
    mailbox_uid: str = ""
    content: str = ""
    status: str = ""

    def encode(self) -> Object:
        return asdict(self)

    @classmethod
    def decode(cls, raw: Mapping[str, Any]) -> Raised:
        return cls(**raw)


def revision_of(text: object) -> int:
    """Return a resourceVersion as the number it is everywhere; 0 when it is none."""
    shown = str(text or "")
    return whole_number(shown) or 0
