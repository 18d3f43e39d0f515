"""Table ``recorded``: what this syncer placed and brought up, as its journal remembers it.

A record is written *before* the first apply, without the UID of the edge's object (an intent), and
again afterwards with it. So whatever moment the syncer dies at, it later knows what it may have
placed. An object is ours if its UID is the recorded one, or, under an intent, if the server names
our field manager on it.

Records outlive versions of this program: a field is only ever added, with a default, and the keys
of the journal stay what they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.syncing.present import OURS, our_digest
from skerry.logic.fleet.syncing.wanted import Desired, Options

# Keys of the journal: a prefix and the text of the object's identity.
PLACED = "placed/"
UPSYNCED = "raised/"
RELEASED = "released/"


def placed_key(ref: ObjectRef) -> str:
    """Return where the record of an object that goes down is kept."""
    return PLACED + ref.text


def upsynced_key(ref: ObjectRef) -> str:
    """Return where the record of an object that was brought up is kept."""
    return UPSYNCED + ref.text


def released_key(ref: ObjectRef) -> str:
    """Return where the UID is kept of an object that was left at the edge on purpose."""
    return RELEASED + ref.text


@dataclass(frozen=True, slots=True)
class DownsyncRecord:
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

    @property
    def is_intent(self) -> bool:
        """Whether nothing is known to be at the edge yet."""
        return not self.edge_uid

    def is_of(self, live: Mapping[str, Any]) -> bool:
        """Tell whether *live*, a row of ``present``, is the object this record speaks of."""
        if self.edge_uid:
            return bool(live["metadata"].get("uid") == self.edge_uid)
        return bool(live.get(OURS))

    def after(self, answer: Mapping[str, Any]) -> DownsyncRecord:
        """Return the record once the edge has answered an apply of ``desired``."""
        return replace(
            self,
            edge_uid=answer["metadata"].get("uid", ""),
            applied=self.desired.digest,
            ours=our_digest(answer),
        )

    def encode(self) -> Object:
        """Return the record as JSON can hold it; shares the content."""
        desired = {name: getattr(self.desired, name) for name in _DESIRED}
        desired["options"] = asdict(self.desired.options)
        if not self.desired.owner:
            del desired["owner"]  # as records were before there were owners
        return {name: getattr(self, name) for name in _DOWNSYNC} | {"desired": desired}

    @classmethod
    def decode(cls, raw: Mapping[str, Any]) -> DownsyncRecord:
        """Return what ``encode`` made *raw* of."""
        desired = dict(raw["desired"])
        desired["options"] = Options(**desired["options"])
        return cls(**{**raw, "desired": Desired(**desired)})


_DESIRED = tuple(item.name for item in fields(Desired))
_DOWNSYNC = tuple(item.name for item in fields(DownsyncRecord) if item.name != "desired")


@dataclass(frozen=True, slots=True)
class UpsyncRecord:
    """The record of one object that was brought up: the mailbox copy and what it was made of."""

    version: str
    mailbox_uid: str = ""
    content: str = ""
    status: str = ""

    def encode(self) -> Object:
        """Return the record as JSON can hold it."""
        return asdict(self)

    @classmethod
    def decode(cls, raw: Mapping[str, Any]) -> UpsyncRecord:
        """Return what ``encode`` made *raw* of."""
        return cls(**raw)
