"""Authorities that vouch for clients, as a person gives them."""

from __future__ import annotations

from pathlib import Path

import pytest

from skerry.server.security.given_certificate import read_client_authorities
from skerry.server.security.pki import Authority, new_ca
from tests.kit.server.clock import HandClock

CLOCK = HandClock()


def test_all_authorities_of_a_file_are_read_and_nothing_else(tmp_path: Path) -> None:
    one, two = new_ca("one", CLOCK), new_ca("two", CLOCK)
    file = tmp_path / "ca.crt"
    file.write_bytes(b"# mine\n" + one.certificate + one.key + two.certificate)
    assert read_client_authorities(file) == one.certificate + two.certificate
    assert read_client_authorities(None) == b""


def test_what_is_no_authority_is_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "ca.crt"
    file.write_text("nothing")
    with pytest.raises(ValueError, match=r"ca\.crt: want certificates of authorities, PEM"):
        read_client_authorities(file)
    ca = new_ca("one", CLOCK)
    jane = Authority(ca, CLOCK).client("jane")
    file.write_bytes(ca.certificate + jane.certificate)
    with pytest.raises(ValueError, match=r"certificate 2 \(CN=jane\) is of no authority"):
        read_client_authorities(file)
