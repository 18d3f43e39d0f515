"""Profiles of system calls, and the filters they become."""

from __future__ import annotations

import pytest

from skerry.edge.agent.seccomp_filter import (
    ALLOW,
    errno,
)
from skerry.edge.agent.seccomp_profile import (
    ALLOWED,
    CONDITIONS,
    ENOSYS,
    EPERM,
    UNKNOWN,
    YOUNGEST,
    oci_profile,
)
from skerry.edge.agent.syscall_numbers import NUMBERS
from tests.kit.agent.seccomp import MACHINES, judged


@pytest.mark.parametrize("machine", MACHINES)
def test_every_number_is_judged_as_the_profile_says(machine: str) -> None:
    numbers = NUMBERS[machine]
    allowed = {numbers[name] for name in ALLOWED if name in numbers}
    unknown = {numbers[name] for name in UNKNOWN}
    judged_by_argument = {numbers[name] for name in CONDITIONS if name in numbers}
    for number in range(YOUNGEST + 50):
        verdict = judged(machine, number, 0)
        if number in allowed:
            assert verdict == ALLOW
        elif number in unknown or number > YOUNGEST:
            assert verdict == errno(ENOSYS)
        elif number not in judged_by_argument:
            assert verdict == errno(EPERM)


@pytest.mark.parametrize(
    "name",
    [
        *("mount", "umount2", "pivot_root", "setns", "bpf", "keyctl", "add_key", "init_module"),
        *("reboot", "swapon", "ptrace_me_not", "io_uring_setup", "perf_event_open", "kexec_load"),
        *("open_by_handle_at", "userfaultfd", "move_mount", "fsopen", "quotactl", "settimeofday"),
    ],
)
def test_what_changes_the_machine_is_not_listed(name: str) -> None:
    assert name not in {*ALLOWED, *CONDITIONS}


def test_the_same_profile_is_given_to_oci_runtimes() -> None:
    profile = oci_profile("x86_64")
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    first, *others = profile["syscalls"]
    assert set(first["names"]) == set(ALLOWED)
    sockets = [rule["args"][0] for rule in others if rule["names"] == ["socket"]]
    assert [(rule["op"], rule["value"]) for rule in sockets] == [
        ("SCMP_CMP_LT", 38),
        ("SCMP_CMP_EQ", 39),
        ("SCMP_CMP_GT", 40),
    ]
    (clone,) = [rule for rule in others if rule["names"] == ["clone"]]
    assert clone["args"] == [
        {"index": 0, "value": 0x7E020000, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}
    ]
