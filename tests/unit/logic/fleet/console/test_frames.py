"""Frames of a tab: read, or refused with a sentence that names what was wanted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.fleet.console.frames import (
    Ask,
    FrameError,
    Subscribe,
    Unsubscribe,
    parse_frame,
)


def test_the_three_kinds_of_frames() -> None:
    assert parse_frame(b'{"id":1,"sub":"fleet","view":{"q":""}}') == Subscribe(
        1, "fleet", {"q": ""}
    )
    assert parse_frame(b'{"id":1,"unsub":true}') == Unsubscribe(1)
    assert parse_frame(b'{"id":2,"ask":"search","with":{"q":"a"}}') == Ask(2, "search", {"q": "a"})


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (b"", None),
        (b"null", None),
        (b'{"sub":"fleet"}', None),
        (b'{"id":true,"sub":"fleet"}', None),
        (b'{"id":1.5,"sub":"fleet"}', None),
        (b'{"id":99999999999,"sub":"fleet"}', None),
        (b'{"id":3}', 3),
        (b'{"id":3,"sub":["fleet"]}', 3),
        (b'{"id":3,"sub":"fleet","view":7}', 3),
        (b'{"id":3,"ask":"x","with":"y"}', 3),
        (b"\xff\xfe", None),
    ],
)
def test_what_is_no_frame_is_refused_about_what_it_was(text: bytes, number: int | None) -> None:
    with pytest.raises(FrameError) as refused:
        parse_frame(text)
    assert refused.value.id == number
    assert refused.value.code == 400


@given(st.binary(max_size=200))
def test_no_bytes_break_the_reader(text: bytes) -> None:
    try:
        parse_frame(text)
    except FrameError as error:
        assert len(error.message) < 1000  # noqa: PT017
