from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.store import etcd_messages as messages
from skerry.store.base import StoreError
from skerry.store.etcd_layout import (
    FACTOR,
    MARK_BYTES,
    Identity,
    Layout,
    Numbering,
    bytes_end,
    packed,
    unpacked,
)
from skerry.store.etcd_wire import WireError, blob, fields, integer, varint

numbers = st.integers(1, 2**63 - 1)


@given(st.lists(st.tuples(st.integers(1, 2000), st.one_of(numbers, st.binary(max_size=300)))))
def test_fields_are_read_as_they_were_written(content: list[tuple[int, int | bytes]]) -> None:
    message = b"".join(
        integer(field, value) if isinstance(value, int) else blob(field, value)
        for field, value in content
    )
    assert list(fields(message)) == content


@pytest.mark.parametrize(
    ("number", "encoded"), [(0, b"\x00"), (1, b"\x01"), (150, b"\x96\x01"), (300, b"\xac\x02")]
)
def test_numbers_are_written_as_the_protobuf_documentation_shows(
    number: int, encoded: bytes
) -> None:
    assert varint(number) == encoded


def test_fields_of_other_kinds_are_passed_over() -> None:
    fixed64, fixed32 = b"\x09" + bytes(8), b"\x15" + bytes(4)
    assert list(fields(fixed64 + fixed32 + integer(3, 7)))[-1] == (3, 7)


@given(st.binary(max_size=60))
def test_damaged_messages_are_refused_or_read_but_never_crash(content: bytes) -> None:
    try:
        list(fields(content))
    except WireError:
        return


@pytest.mark.parametrize("content", [b"\x0a\x05abc", b"\x80", b"\x08\x80", b"\x0b", b"\x09abc"])
def test_a_message_that_was_cut_off_is_refused(content: bytes) -> None:
    with pytest.raises(WireError):
        list(fields(content))


def test_a_missing_key_is_a_condition_that_spells_out_zero() -> None:
    # Left out, etcd would take the oneof for unset and refuse the request.
    assert messages.written_at(b"k", 0).endswith(b"\x30\x00")


@given(
    etcd_revision=st.integers(1, 2**40),
    position=st.integers(0, FACTOR - 1),
    offset=st.integers(0, 2**40),
)
def test_revisions_can_be_taken_apart_again(etcd_revision: int, position: int, offset: int) -> None:
    numbering = Numbering(offset)
    revision = numbering.revision(etcd_revision, position)
    assert (numbering.etcd_revision(revision), numbering.position(revision)) == (
        etcd_revision,
        position,
    )
    assert revision < numbering.revision(etcd_revision + 1, 0)


@given(value=st.binary(max_size=50), position=st.integers(0, FACTOR - 1))
def test_a_stored_value_carries_position_and_mark(value: bytes, position: int) -> None:
    mark = b"m" * MARK_BYTES
    assert unpacked(packed(value, position, mark)) == (position, mark, value)


@pytest.mark.parametrize("content", [b"", b"{}", b"\x02" + bytes(20)])
def test_a_value_that_skerry_did_not_write_is_named_so(content: bytes) -> None:
    with pytest.raises(StoreError, match="did not write"):
        unpacked(content)


@given(prefix=st.binary(min_size=1, max_size=3), key=st.binary(max_size=5))
def test_the_end_of_a_byte_prefix_bounds_exactly_it(prefix: bytes, key: bytes) -> None:
    end = bytes_end(prefix)
    inside = key >= prefix and (end == b"\x00" or key < end)
    assert inside == key.startswith(prefix)


def test_the_layout_separates_our_own_keys_from_the_stored_ones() -> None:
    layout = Layout("/skerry/")
    assert layout.name(layout.key("/core/pods/é")) == "/core/pods/é"
    assert layout.name(layout.last) is None
    assert layout.root <= layout.last < layout.root_end


def test_the_identity_record_is_read_back() -> None:
    assert Identity.unpack(Identity("name", 7).pack()) == Identity("name", 7)
