"""The protocol of systemd's readiness, over sockets with and without a file."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from skerry.kit.service_manager import READY, notify


@pytest.mark.parametrize("abstract", [False, True])
def test_the_service_manager_receives_the_lines_in_one_datagram(
    tmp_path: Path, abstract: bool
) -> None:
    address = f"@skerry-test-{tmp_path.name}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address.replace("@", "\0", 1) if abstract else address)
        notify(address, READY, "STATUS=it works")
        assert manager.recv(1024) == b"READY=1\nSTATUS=it works"


@pytest.mark.parametrize("address", ["", "/nonexistent/notify", "@skerry-nobody"])
def test_a_service_goes_on_where_nobody_listens(address: str) -> None:
    notify(address, READY)
