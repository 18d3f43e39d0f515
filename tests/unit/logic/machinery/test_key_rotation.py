"""Which step of a rotation may be taken, given what the live servers have and use."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.keys import ObjectKey
from skerry.logic.machinery.key_rotation import (
    EncryptionRecord,
    RotationRefused,
    ServerRecord,
    SigningRecord,
    encryption_with,
    encryption_without_old,
    missing_keys,
    pending_keys,
    record_key,
    server_key,
    signing_with,
    signing_without_old,
)


def server(
    name: str, known: dict[str, str], uses: str = "", kind: str = "encryption"
) -> ServerRecord:
    return ServerRecord(name, {kind: known}, {kind: uses})


OLD = EncryptionRecord("a", {"a": "1"}, rewritten=True)
BOTH = {"a": "1", "b": "2"}


def test_a_key_is_used_once_every_live_server_has_it() -> None:
    servers = [server("one", BOTH, "a"), server("two", BOTH, "a")]
    assert encryption_with(OLD, "b", "2", servers) == EncryptionRecord("b", BOTH)


@pytest.mark.parametrize("lacking", [{}, {"a": "1"}, {"a": "1", "b": "another"}])
def test_a_key_that_a_live_server_lacks_is_not_used_and_the_server_is_named(
    lacking: dict[str, str],
) -> None:
    servers = [server("one", BOTH, "a"), server("two", lacking, "a")]
    with pytest.raises(RotationRefused, match=r"b is not known to two; give every hub"):
        encryption_with(OLD, "b", "2", servers)


def test_using_the_key_in_use_changes_nothing() -> None:
    assert encryption_with(OLD, "a", "1", []) is OLD


def test_a_name_that_was_used_for_another_key_is_refused() -> None:
    with pytest.raises(RotationRefused, match="make another"):
        encryption_with(EncryptionRecord("b", BOTH), "a", "9", [server("one", {"a": "9"})])
    retired = EncryptionRecord("b", {"b": "2"}, rewritten=True, retired=("a",))
    with pytest.raises(RotationRefused, match="make another"):
        encryption_with(retired, "a", "1", [server("one", BOTH)])


def test_old_keys_are_dropped_when_all_is_rewritten_and_no_server_uses_them() -> None:
    record = EncryptionRecord("b", BOTH, rewritten=True)
    done = encryption_without_old(record, [server("one", BOTH, "b")])
    assert done == EncryptionRecord("b", {"b": "2"}, rewritten=True, retired=("a",))
    assert pending_keys("encryption", (*done.keys, *done.retired), [server("one", BOTH)]) == []
    with pytest.raises(RotationRefused, match="not every Secret"):
        encryption_without_old(EncryptionRecord("b", BOTH), [])
    with pytest.raises(RotationRefused, match="two does not use"):
        encryption_without_old(record, [server("one", BOTH, "b"), server("two", BOTH, "a")])


def test_a_signing_key_is_used_when_all_have_it_and_retired_when_none_uses_it() -> None:
    servers = [server("one", BOTH, "a", "signing"), server("two", BOTH, "a", "signing")]
    used = signing_with("signing", SigningRecord("a"), "b", "2", servers)
    assert used == SigningRecord("b", previous=("a",))
    with pytest.raises(RotationRefused, match="has signed before"):
        signing_with("signing", used, "a", "1", servers)
    with pytest.raises(RotationRefused, match="one, two does not use signing key b yet"):
        signing_without_old("signing", used, servers)
    using = [server("one", BOTH, "b", "signing"), server("two", BOTH, "b", "signing")]
    done = signing_without_old("signing", used, using)
    assert done == SigningRecord("b", ("a",))
    with pytest.raises(RotationRefused, match="retired"):
        signing_with("signing", done, "a", "1", using)


names = st.sampled_from("abcd")
rings = st.dictionaries(names, st.just("x"), min_size=1)


@given(st.lists(st.tuples(rings, names), min_size=1, max_size=4), st.lists(names, max_size=12))
def test_no_history_of_steps_needs_a_key_that_a_live_server_lacks(
    fleet: list[tuple[dict[str, str], str]], steps: list[str]
) -> None:
    first = next(iter(fleet[0][0]))
    fleet = [({**known, first: "x"}, first) for known, _ in fleet]
    record = EncryptionRecord(first, {first: "x"}, rewritten=True)
    for step in steps:
        servers = [server(str(n), known, record.current) for n, (known, _) in enumerate(fleet)]
        try:
            record = encryption_with(record, step, "x", servers)
        except RotationRefused:
            continue
        assert record.current == step
        for known, _ in fleet:
            assert missing_keys(record, known) == []


def test_records_lie_where_no_object_can() -> None:
    for path in (record_key("encryption"), server_key("x")):
        key = ObjectKey.parse(path)
        assert key.group == "-"
        assert key.cluster == "-"
