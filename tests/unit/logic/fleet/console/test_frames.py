"""Frames of a tab: read, or refused with a sentence that names what was wanted."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.fleet.console.frames import (
    Ask,
    End,
    Frame,
    FrameError,
    Run,
    Shown,
    Size,
    Subscribe,
    Typed,
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


@pytest.mark.parametrize(
    ("frame", "meant"),
    [
        ({"run": "exec", "with": {"pod": "web"}, "size": [80, 24]},
         Run(1, "exec", {"pod": "web"}, (80, 24))),
        ({"typed": "bHMN"}, Typed(1, b"ls\r")),
        ({"size": [1, 1000]}, Size(1, (1, 1000))),
        ({"shown": 17}, Shown(1, 17)),
        ({"end": True}, End(1)),
    ],
)  # fmt: skip
def test_what_a_page_says_of_a_terminal_is_understood(frame: dict[str, Any], meant: Frame) -> None:
    assert parse_frame(orjson.dumps({"id": 1, **frame})) == meant


@pytest.mark.parametrize(
    ("frame", "sentence"),
    [
        ({"run": "exec"}, "size: want a width and a height from 1 to 1000"),
        ({"run": 5, "size": [80, 24]}, "run: want the name of a kind"),
        ({"size": [0, 24]}, "size: want"),
        ({"size": [80, 1001]}, "size: want"),
        ({"size": "80x24"}, "size: want"),
        ({"typed": 5}, "typed: want at most 65536 bytes in base64"),
        ({"typed": "A" * 90_000}, "typed: want at most 65536 bytes in base64"),
        ({"typed": "*"}, "typed: "),
        ({"shown": -1}, "shown: want a number of bytes"),
        ({"end": False}, "want one of the members"),
    ],
)
def test_what_cannot_be_meant_of_a_terminal_is_refused(
    frame: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(FrameError, match=sentence) as raised:
        parse_frame(orjson.dumps({"id": 1, **frame}))
    assert raised.value.id == 1
