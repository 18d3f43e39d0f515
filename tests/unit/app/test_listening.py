"""Where a server listens, and what is said when it cannot."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path

import pytest

from skerry.app.listening import listen_problem, own_name, reachable
from skerry.app.settings import ServerSettings

SETTINGS = ServerSettings(Path("/nowhere"), bind_address="127.0.0.1", port=6443)


def test_a_port_that_is_taken_is_named_with_what_to_do() -> None:
    taken = OSError(errno.EADDRINUSE, "Address already in use")
    problem = listen_problem(SETTINGS, taken)
    assert problem.startswith("cannot listen on 127.0.0.1:6443: Address already in use")
    assert "--port" in problem


def test_of_other_problems_only_what_the_system_says_is_said() -> None:
    problem = listen_problem(SETTINGS, OSError(errno.EACCES, "Permission denied"))
    assert problem == "cannot listen on 127.0.0.1:6443: Permission denied"


@pytest.mark.parametrize("every", ["0.0.0.0", "::", ""])
def test_a_server_on_every_address_is_reached_by_loopback(every: str) -> None:
    assert reachable(every) == "127.0.0.1"
    assert reachable("127.0.0.9") == "127.0.0.9"


def test_a_name_of_its_own_is_asked_for_only_where_another_certificate_is_shown() -> None:
    assert own_name(SETTINGS) == ()
    assert len(own_name(replace(SETTINGS, tls_cert_to_all=True))) == 1
