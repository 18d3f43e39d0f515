"""Records as the journal keeps them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.refs import ObjectRef
from skerry.logic.fleet.syncing.present import OURS, our_digest
from skerry.logic.fleet.syncing.recorded import (
    DownsyncRecord,
    UpsyncRecord,
    placed_key,
    released_key,
    upsynced_key,
)
from skerry.logic.fleet.syncing.wanted import Desired, Options

WEB = ObjectRef("", "apps", "deployments", "shop", "web")
WISH = Desired("v1", {"metadata": {"name": "web"}}, "u", 7)

words = st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True)


@given(st.booleans(), st.booleans(), words)
def test_a_record_reads_back_as_it_was_written(one: bool, other: bool, text: str) -> None:
    wish = Desired("v1", {"metadata": {"name": text}}, "u", 7, Options(one, other))
    record = DownsyncRecord(wish, "store", 3, "e", "a", "o", one)
    assert DownsyncRecord.decode(record.encode()) == record


@given(st.builds(Options, *[st.booleans()] * 4), st.sampled_from(["", "shop"]))
def test_every_option_and_the_owner_outlive_a_restart(options: Options, owner: str) -> None:
    record = DownsyncRecord(Desired("v1", {}, "u", 7, options, owner))
    assert DownsyncRecord.decode(json.loads(json.dumps(record.encode()))) == record
    assert ("owner" in record.encode()["desired"]) == bool(owner)


def test_a_record_of_an_older_version_is_read_with_what_it_did_not_know() -> None:
    raw = {"desired": {"version": "v1", "content": {}, "uid": "u", "revision": 7, "options": {}}}
    record = DownsyncRecord.decode(raw)
    assert record == DownsyncRecord(Desired("v1", {}, "u", 7))
    assert record.created, "what says nothing else was made by us"
    assert raw["desired"]["options"] == {}, "what was read is left as it was"


@pytest.mark.parametrize(
    ("edge_uid", "live", "is_of"),
    [
        ("e1", {"metadata": {"uid": "e1"}}, True),
        ("e1", {"metadata": {"uid": "e2"}}, False),
        ("e1", {"metadata": {}}, False),
        # Somebody made it anew under its name, and our manager alone does not make it ours.
        ("e1", {"metadata": {"uid": "e2"}, OURS: {"data": {}}}, False),
        ("", {"metadata": {"uid": "e1"}, OURS: {"data": {}}}, True),
        ("", {"metadata": {"uid": "e1"}}, False),
        ("", {"metadata": {"uid": "e1"}, OURS: None}, False),
    ],
)
def test_an_object_is_ours_by_its_uid_and_under_an_intent_by_our_manager(
    edge_uid: str, live: dict[str, object], is_of: bool
) -> None:
    record = DownsyncRecord(WISH, edge_uid=edge_uid)
    assert record.is_intent == (not edge_uid)
    assert record.is_of(live) is is_of


def test_an_answer_makes_a_record_of_an_intent_and_changes_nothing_else() -> None:
    intent = DownsyncRecord(WISH, "store", 3, created=False)
    answer = {"metadata": {"uid": "e1"}, "data": {"a": "b"}}
    record = intent.after(answer)
    assert (record.edge_uid, record.applied, record.ours) == ("e1", WISH.digest, our_digest(answer))
    assert not record.is_intent
    assert (record.desired, record.store, record.config_revision, record.created) == (
        WISH, "store", 3, False,
    )  # fmt: skip
    assert intent.is_intent, "the intent itself is as it was"


def test_an_answer_without_a_uid_leaves_an_intent() -> None:
    assert DownsyncRecord(WISH).after({"metadata": {}}).is_intent


@given(words, words, words, words)
def test_what_was_brought_up_reads_back_as_it_was_written(
    version: str, uid: str, content: str, status: str
) -> None:
    record = UpsyncRecord(version, uid, content, status)
    assert UpsyncRecord.decode(json.loads(json.dumps(record.encode()))) == record
    assert UpsyncRecord.decode({"version": version}) == UpsyncRecord(version)


def test_one_object_has_three_keys_that_no_other_object_has() -> None:
    other = WEB._replace(name="api")
    keys = {key(ref) for ref in (WEB, other) for key in (placed_key, upsynced_key, released_key)}
    assert len(keys) == 6
    # Journals on disks of edges have these words; they are never others.
    assert placed_key(WEB) == f"placed/{WEB.text}"
    assert upsynced_key(WEB) == f"raised/{WEB.text}"
    assert released_key(WEB) == f"released/{WEB.text}"
