"""Messages survive the wire, and no bytes whatever crash their reader."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.wire.protobuf import (
    VARINT,
    delimited_field,
    number_field,
    read_fields,
    read_varint,
    signed,
    varint,
)

numbers = st.integers(1, 2**63 - 1)


@given(st.lists(st.tuples(st.integers(1, 2000), st.one_of(numbers, st.binary(max_size=300)))))
def test_fields_are_read_as_they_were_written(content: list[tuple[int, int | bytes]]) -> None:
    message = b"".join(
        number_field(field, value) if isinstance(value, int) else delimited_field(field, value)
        for field, value in content
    )
    assert [(number, value) for number, _, value in read_fields(message)] == content


@pytest.mark.parametrize(
    ("number", "encoded"), [(0, b"\x00"), (1, b"\x01"), (150, b"\x96\x01"), (300, b"\xac\x02")]
)
def test_numbers_are_written_as_the_protobuf_documentation_shows(
    number: int, encoded: bytes
) -> None:
    assert varint(number) == encoded


def test_fields_of_other_kinds_are_passed_over() -> None:
    fixed64, fixed32 = b"\x09" + bytes(8), b"\x15" + bytes(4)
    assert list(read_fields(fixed64 + fixed32 + number_field(3, 7)))[-1] == (3, VARINT, 7)


@given(st.binary(max_size=60))
def test_damaged_messages_are_refused_or_read_but_never_crash(content: bytes) -> None:
    try:
        list(read_fields(content))
    except ValueError:
        return


@pytest.mark.parametrize("content", [b"\x0a\x05abc", b"\x80", b"\x08\x80", b"\x0b", b"\x09abc"])
def test_a_message_that_was_cut_off_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"claims|ends within|unknown wire type"):
        list(read_fields(content))


@given(st.integers(-(2**63), 2**63 - 1))
def test_numbers_survive_the_wire(number: int) -> None:
    data = varint(number)
    value, end = read_varint(data, 0)
    assert (signed(value), end) == (number, len(data))


def test_fixed_fields_are_skipped_by_their_size() -> None:
    data = b"\x0d" + b"1234" + b"\x11" + b"12345678"
    assert list(read_fields(data)) == [(1, 5, b"1234"), (2, 1, b"12345678")]
