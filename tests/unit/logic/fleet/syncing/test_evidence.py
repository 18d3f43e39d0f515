"""When absence may be believed: each rule alone."""

from __future__ import annotations

from dataclasses import replace

from skerry.logic.fleet.syncing.evidence import Evidence, doubt
from skerry.logic.fleet.syncing.recorded import DownsyncRecord
from skerry.logic.fleet.syncing.wanted import Desired

RECORD = DownsyncRecord(
    Desired("v1", {}, "u1", revision=50), store="a", config_revision=40, edge_uid="e1"
)
FULL = Evidence(
    synced=True, configured=True, trusted=True, store="a", revision=51, config_revision=41
)


def why(evidence: Evidence, *, covered: bool = True, record: DownsyncRecord = RECORD) -> str:
    found = doubt(record, evidence, covered=covered)
    return "" if found is None else found.reason


def test_an_absence_is_believed_when_everything_was_read_later_from_the_same_store() -> None:
    assert why(FULL) == ""
    assert why(FULL, covered=False) == ""


def test_without_a_syncer_config_nothing_is_known() -> None:
    assert why(replace(FULL, configured=False)) == "NoSyncerConfig"
    assert why(replace(FULL, configured=False, synced=False)) == "HubAway"
    assert why(replace(FULL, configured=False), covered=False) == "NoSyncerConfig"


def test_another_store_is_not_believed_until_a_person_accepts_it() -> None:
    other = replace(FULL, store="b", revision=3, config_revision=2)
    assert why(replace(other, trusted=False)) == "HubIdentityChanged"
    assert why(other) == "", "revisions of another store compare with nothing"
    assert why(other, covered=False) == ""


def test_a_type_must_have_been_read_completely_only_where_it_is_still_covered() -> None:
    assert why(replace(FULL, synced=False)) == "HubAway"
    assert why(replace(FULL, synced=False), covered=False) == ""


def test_the_mailbox_must_have_been_read_after_the_object_was_last_seen_there() -> None:
    assert why(replace(FULL, revision=50)) == "NotNewer"
    assert why(replace(FULL, revision=50), covered=False) == "", "another witness speaks there"


def test_out_of_scope_counts_only_when_the_syncer_config_changed_since() -> None:
    assert why(replace(FULL, config_revision=40), covered=False) == "NotNewer"
    assert why(replace(FULL, config_revision=40)) == ""
