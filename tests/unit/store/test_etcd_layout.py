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
