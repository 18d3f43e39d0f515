"""Messages of etcd: what is written can be read, and what is unknown is skipped."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skerry.store import etcd_messages as m
from skerry.wire.protobuf import delimited_field, number_field, read_fields

HEADER = delimited_field(1, number_field(3, 42))
UNKNOWN = number_field(99, 5) + delimited_field(100, b"newer")


def fields(data: bytes) -> dict[int, list[object]]:
    found: dict[int, list[object]] = {}
    for number, _, value in read_fields(data):
        found.setdefault(number, []).append(value)
    return found


def entry(key: bytes = b"k", value: bytes = b"v", revision: int = 7) -> bytes:
    return (
        delimited_field(1, key)
        + number_field(3, revision)
        + UNKNOWN
        + (delimited_field(5, value) if value else b"")
    )


@given(st.binary(max_size=9), st.binary(max_size=9), st.integers(0, 2**62))
def test_keys_with_their_values(key: bytes, value: bytes, revision: int) -> None:
    assert m.key_value(entry(key, value, revision)) == m.KeyValue(key, value, revision)


def test_a_range_asks_for_what_is_said_and_nothing_else() -> None:
    assert fields(m.range_request(b"k")) == {1: [b"k"]}
    whole = m.range_request(b"a", b"b", limit=5, revision=9, count_only=True)
    assert fields(whole) == {1: [b"a"], 2: [b"b"], 3: [5], 4: [9], 9: [1]}


def test_the_answer_to_a_range() -> None:
    message = HEADER + delimited_field(2, entry()) + number_field(3, 1) + number_field(4, 10)
    assert m.ranged(message + UNKNOWN) == m.Ranged([m.KeyValue(b"k", b"v", 7)], True, 10, 42)
    assert m.ranged(b"") == m.Ranged([], False, 0, 0)


def test_that_a_key_does_not_exist_is_spelled_out() -> None:
    # A member of a oneof that is left out is no condition at all.
    assert fields(m.written_at(b"k", 0)) == {2: [2], 3: [b"k"], 6: [0]}
    assert fields(m.written_at(b"k", 9)) == {2: [2], 3: [b"k"], 6: [9]}
    assert fields(m.exists(b"k")) == {1: [1], 2: [2], 3: [b"k"], 6: [0]}


def test_a_transaction_has_conditions_and_two_branches() -> None:
    request = m.txn_request(
        [m.exists(b"k")],
        [m.put_operation(b"k", b"v"), m.delete_operation(b"d")],
        [m.range_operation(m.range_request(b"k"))],
    )
    found = fields(request)
    assert {number: len(parts) for number, parts in found.items()} == {1: 1, 2: 2, 3: 1}
    put, delete = found[2]
    assert isinstance(put, bytes)
    assert isinstance(delete, bytes)
    assert list(fields(put)) == [2]
    assert list(fields(delete)) == [3]


def test_the_answer_to_a_transaction_has_the_ranges_of_its_branch() -> None:
    ranged = delimited_field(1, HEADER + delimited_field(2, entry()))
    put = delimited_field(2, b"")
    message = HEADER + number_field(2, 1) + delimited_field(3, put) + delimited_field(3, ranged)
    found = m.transacted(message)
    assert (found.revision, found.succeeded) == (42, True)
    assert [each.entries for each in found.ranges] == [[m.KeyValue(b"k", b"v", 7)]]
    assert m.transacted(HEADER).succeeded is False


def test_a_watch_brings_changes_with_what_was_before() -> None:
    put = delimited_field(2, entry()) + delimited_field(3, entry(value=b"old", revision=6))
    gone = number_field(1, 1) + delimited_field(2, entry(value=b"", revision=8))
    found = m.watched(HEADER + delimited_field(11, put) + delimited_field(11, gone))
    assert found.revision == 42
    assert found.changes == [
        m.Change(False, m.KeyValue(b"k", b"v", 7), m.KeyValue(b"k", b"old", 6)),
        m.Change(True, m.KeyValue(b"k", b"", 8), None),
    ]


def test_a_watch_that_begins_too_early_is_canceled_and_says_why() -> None:
    message = number_field(3, 1) + number_field(4, 1) + number_field(5, 30)
    found = m.watched(message + delimited_field(6, b"compacted \xff"))
    assert (found.created, found.canceled, found.compacted) == (True, True, 30)
    assert found.reason.startswith("compacted ")


def test_the_rest() -> None:
    assert fields(m.compaction_request(9)) == {1: [9]}
    assert m.compaction_request(0) == b""
    assert fields(m.authenticate_request("u", "p")) == {1: [b"u"], 2: [b"p"]}
    assert m.authenticated(HEADER + delimited_field(2, b"token")) == "token"
    assert m.authenticated(b"") == ""
    ((create,),) = fields(m.watch_request(b"a", b"b", 5)).values()
    assert isinstance(create, bytes)
    assert fields(create) == {1: [b"a"], 2: [b"b"], 3: [5], 6: [1]}


def test_a_member_says_its_version() -> None:
    assert m.version_of(HEADER + delimited_field(2, b"3.5.21") + UNKNOWN) == "3.5.21"
    assert m.version_of(HEADER) == ""
