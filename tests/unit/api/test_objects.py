"""resourceVersions as numbers."""

from __future__ import annotations

import pytest

from skerry.api.objects import revision_of


@pytest.mark.parametrize(
    ("version", "revision"), [("12", 12), (12, 12), ("", 0), (None, 0), ("x1", 0), ("-1", 0)]
)
def test_what_is_no_number_is_older_than_everything(version: object, revision: int) -> None:
    assert revision_of(version) == revision
