"""When the absence of a row in ``wanted`` may be believed.

Absence is not evidence. An object that the mailbox does not have was removed, or the hub is away,
or it was restored from yesterday's backup, or this is another hub under the same name, or the
watch has not come that far. From the edge all of these look alike, and only the first allows a
deletion. So four things must hold before an absence counts:

1. the SyncerConfig is there to say what belongs;
2. the store that answers is the one that once named the object, or one a person accepted;
3. the object's type was read completely in this session;
4. it was read at a later revision than the one at which the object was last seen.

A partition fails the first and the third, a wiped or mistaken hub the second, a restored hub the
second or the fourth. Where one fails there is a ``Doubt``, which is what makes the row pending in
``logic.fleet.tables.completeness``: the edge goes on running what it was last asked to run.

For an object whose place the SyncerConfig no longer covers, the mailbox's types may not even be
followed any more: there the SyncerConfig itself is the witness, and must have changed since.
"""

from __future__ import annotations

from dataclasses import dataclass

from skerry.logic.fleet.syncing.recorded import DownsyncRecord


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known about the mailbox as a witness, for one type."""

    # Everything of the type was read, and is being followed.
    synced: bool = False
    # The SyncerConfig was read and exists.
    configured: bool = False
    # The store answering now is the one we know, or one a person accepted.
    trusted: bool = False
    store: str = ""
    revision: int = 0
    config_revision: int = 0


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why an absence is not believed."""

    reason: str
    message: str


_AWAY = Doubt("HubAway", "the mailbox has not been read completely")
_UNCONFIGURED = Doubt("NoSyncerConfig", "the mailbox has no SyncerConfig")
_OTHER_STORE = Doubt("HubIdentityChanged", "the hub's store is not the one this was placed from")
_NOT_LATER = Doubt("NotNewer", "the mailbox was read at no later revision than the object")


def doubt(record: DownsyncRecord, evidence: Evidence, *, covered: bool) -> Doubt | None:
    """Return why the absence of a placed object is not believed; None when it is.

    *covered* tells whether the SyncerConfig still names the object's place: then the mailbox must
    have been read after it was last seen there, else the SyncerConfig must have changed since.
    """
    if not evidence.configured:
        return _UNCONFIGURED if evidence.synced else _AWAY
    if not evidence.trusted:
        return _OTHER_STORE
    if covered and not evidence.synced:
        return _AWAY
    if record.store != evidence.store:
        return None  # revisions of another store compare with nothing; a person accepted this one
    later = (
        evidence.revision > record.desired.revision
        if covered
        else evidence.config_revision > record.config_revision
    )
    return None if later else _NOT_LATER
