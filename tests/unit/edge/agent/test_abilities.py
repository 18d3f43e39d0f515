"""What each way to run containers says that it enforces."""

from __future__ import annotations

import pytest

from skerry.edge.agent.abilities import of_bubblewrap, of_namespaces, of_processes
from skerry.edge.agent.security_context import ADDABLE_CAPABILITIES, DEFAULT_CAPABILITIES


@pytest.mark.parametrize("seccomp", [True, False])
def test_system_calls_are_judged_where_they_can_be(seccomp: bool) -> None:
    assert of_namespaces(0, seccomp=seccomp).seccomp is seccomp
    assert of_bubblewrap(users=True, seccomp=seccomp).seccomp is seccomp
    assert of_processes(0, seccomp=seccomp).seccomp is seccomp


def test_only_root_gives_namespaces_more_than_one_user() -> None:
    assert of_namespaces(0, seccomp=True).users == "any"
    assert of_namespaces(1000, seccomp=True).users == "one"
    found = of_namespaces(1000, seccomp=True)
    assert found.isolated
    assert found.network
    assert found.capabilities == DEFAULT_CAPABILITIES | ADDABLE_CAPABILITIES


def test_below_bubblewrap_a_program_may_be_traced_and_no_more() -> None:
    found = of_bubblewrap(users=False, seccomp=True)
    assert (found.isolated, found.network, found.users) == (True, False, "own")
    assert of_bubblewrap(users=True, seccomp=True).users == "one"
    assert found.capabilities == {"SYS_PTRACE"}


def test_processes_keep_what_root_has_and_nobody_else() -> None:
    assert of_processes(1000, seccomp=False).capabilities == {"SYS_PTRACE"}
    found = of_processes(0, seccomp=False)
    assert found.capabilities == DEFAULT_CAPABILITIES | {"SYS_PTRACE"}
    assert not found.isolated
