"""Messages to worker processes, with their length before them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.server.offload.framing import HEAD, MAX_FRAME, FrameError, framed, length


@given(st.binary(max_size=300))
def test_the_head_says_how_much_follows(message: bytes) -> None:
    frame = framed(message)
    assert length(frame[:HEAD]) == len(message)
    assert frame[HEAD:] == message


def test_a_length_that_nobody_sends_is_refused() -> None:
    assert length(MAX_FRAME.to_bytes(HEAD, "big")) == MAX_FRAME
    with pytest.raises(FrameError, match="want at most"):
        length((MAX_FRAME + 1).to_bytes(HEAD, "big"))
