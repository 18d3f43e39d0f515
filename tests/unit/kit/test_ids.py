"""Identifiers are spelled as the standard library would spell them."""

from __future__ import annotations

import uuid

from hypothesis import given
from hypothesis import strategies as st

from skerry.kit.ids import SeededIds, SystemIds


@given(st.integers())
def test_a_uid_is_a_random_uuid_in_canonical_form(seed: int) -> None:
    for made in (SeededIds(seed).uid(), SystemIds().uid()):
        parsed = uuid.UUID(made)
        assert (str(parsed), parsed.version, parsed.variant) == (made, 4, uuid.RFC_4122)
