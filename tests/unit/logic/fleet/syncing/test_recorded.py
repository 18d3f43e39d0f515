"""Records as the journal keeps them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.fleet.syncing.recorded import DownsyncRecord
from skerry.logic.fleet.syncing.wanted import Desired, Options

words = st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True)


@given(st.booleans(), st.booleans(), words)
def test_a_record_reads_back_as_it_was_written(one: bool, other: bool, text: str) -> None:
    wish = Desired("v1", {"metadata": {"name": text}}, "u", 7, Options(one, other))
    record = DownsyncRecord(wish, "store", 3, "e", "a", "o", one)
    assert DownsyncRecord.decode(record.encode()) == record
