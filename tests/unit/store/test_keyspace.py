from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skerry.store.base import Write
from skerry.store.keyspace import check_writes, prefix_end

# The interesting characters lie around the surrogates and at the very end.
texts = st.text(alphabet=st.sampled_from("/a0\ud7ff\ue000\U0010fffe\U0010ffff"), max_size=4)


@given(prefix=texts, key=texts)
@example(prefix="\ud7ff", key="\ud7ff\U0010ffff")
def test_a_key_starts_with_the_prefix_exactly_when_it_lies_before_its_end(
    prefix: str, key: str
) -> None:
    end = prefix_end(prefix)
    inside = key >= prefix and (end is None or key < end)
    assert inside == key.startswith(prefix)


@given(left=st.text(max_size=6), right=st.text(max_size=6))
def test_keys_are_ordered_as_their_bytes_are(left: str, right: str) -> None:
    assert (left < right) == (left.encode() < right.encode())


def test_nothing_lies_beyond_the_last_character() -> None:
    assert prefix_end("") is None
    assert prefix_end("\U0010ffff" * 3) is None


@pytest.mark.parametrize(
    ("writes", "complaint"),
    [
        ([Write("", b"")], "must not be empty"),
        ([Write("/a", b""), Write("/b", b""), Write("/a", None)], "'/a' occurs more than once"),
        ([Write("/\ud800", b"")], "surrogates not allowed"),
    ],
)
def test_what_no_store_can_write_is_refused(writes: list[Write], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        check_writes(writes)


def test_a_value_that_is_not_bytes_is_refused() -> None:
    with pytest.raises(TypeError, match="must be bytes, not str"):
        check_writes([Write("/a", "text")])  # type: ignore[arg-type]
