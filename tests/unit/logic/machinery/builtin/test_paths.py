"""Paths, addresses and modes that fields take."""

from __future__ import annotations

import pytest

from skerry.logic.machinery.builtin.paths import (
    address,
    address_errors,
    backstep_errors,
    block_errors,
    descending_errors,
    mode_errors,
    unreserved_errors,
)


@pytest.mark.parametrize(
    ("path", "backstep", "descending", "unreserved"),
    [
        ("a/b", True, True, True),
        ("a/../b", False, False, False),
        ("..", False, False, False),
        ("a..b/c", True, True, True),
        ("/a", True, False, False),
        ("..data", True, True, False),
        ("../a", False, False, False),
    ],
)
def test_a_path_may_not_climb_be_absolute_or_be_the_kubelets(
    path: str, backstep: bool, descending: bool, unreserved: bool
) -> None:
    assert (not backstep_errors(path, "f")) is backstep
    assert (not descending_errors(path, "f")) is descending
    assert (not unreserved_errors(path, "f")) is unreserved


def test_a_path_that_is_absolute_and_climbs_is_refused_for_both() -> None:
    assert [error.field for error in descending_errors("/a/..", "spec.p")] == ["spec.p"] * 2


@pytest.mark.parametrize(
    ("mode", "fine"), [(None, True), (0, True), (0o777, True), (0o1000, False), (-1, False)]
)
def test_a_mode_has_nine_bits(mode: int | None, fine: bool) -> None:
    assert (not mode_errors(mode, "f")) is fine


@pytest.mark.parametrize(
    ("text", "fine"),
    [
        ("10.0.0.1", True),
        ("::1", True),
        ("fe80::1%eth0", False),
        ("10.0.0.01", False),
        ("x", False),
    ],
)
def test_zones_and_leading_zeros_are_no_addresses(text: str, fine: bool) -> None:
    assert (address(text) is not None) is fine
    assert (not address_errors(text, "f")) is fine


@pytest.mark.parametrize(
    ("text", "fine"),
    [
        ("10.0.0.0/8", True),
        ("10.1.2.3/8", True),
        ("::/0", True),
        ("10.0.0.1", False),
        ("10.0.0.0/33", False),
    ],
)
def test_a_block_has_a_prefix_and_may_have_bits_beyond_it(text: str, fine: bool) -> None:
    assert (not block_errors(text, "f")) is fine
