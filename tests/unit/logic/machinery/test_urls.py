"""URLs are split, and refused where they are too long to keep."""

from __future__ import annotations

import pytest

from skerry.logic.machinery.urls import MAX_LENGTH, split_url


def test_a_url_has_its_parts() -> None:
    parts = split_url("https://hub:6443/clusters/root?limit=5")
    assert (parts.scheme, parts.hostname, parts.port) == ("https", "hub", 6443)
    assert (parts.path, parts.query) == ("/clusters/root", "limit=5")


def test_a_url_that_is_too_long_is_not_even_split() -> None:
    split_url("a" * MAX_LENGTH)
    with pytest.raises(ValueError, match="a URL of 8193 characters: want at most 8192"):
        split_url("a" * (MAX_LENGTH + 1))


def test_what_is_no_url_is_refused() -> None:
    with pytest.raises(ValueError, match="IPv6"):
        split_url("https://[::1/")
