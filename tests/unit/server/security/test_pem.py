"""Blocks of PEM files."""

from __future__ import annotations

import pytest

from skerry.server.security.pem import blocks

_ONE = b"-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"
_KEY = b"-----BEGIN EC PRIVATE KEY-----\r\nBB==\r\n-----END EC PRIVATE KEY-----\r\n"


def test_blocks_are_found_by_the_end_of_their_label_in_order() -> None:
    pem = b"a comment\n" + _ONE + _KEY + _ONE
    assert blocks(pem, "CERTIFICATE") == [_ONE, _ONE]
    assert blocks(pem, "PRIVATE KEY") == [_KEY]
    assert blocks(pem, "PUBLIC KEY") == []


@pytest.mark.parametrize(
    "pem",
    [
        b"",
        b"-----BEGIN CERTIFICATE-----\nAA==\n",
        b"-----BEGIN CERTIFICATE-----\nAA==\n-----END PRIVATE KEY-----\n",
        b"-----END CERTIFICATE-----\n",
        b"-----BEGIN CERTIFICATE-----" * 1000,
    ],
)
def test_what_does_not_end_as_it_began_is_no_block(pem: bytes) -> None:
    assert blocks(pem, "CERTIFICATE") == []
    assert blocks(pem + b"\n" + _ONE, "CERTIFICATE") == [_ONE]
