"""The filter of system calls: run here by a machine of our own, against what it should say."""

from __future__ import annotations

import operator
import os
import platform
import socket
import struct
import sys
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.edge.agent.privileges import (
    Rights,
    become,
    knows_seccomp,
    promise_no_new_privileges,
    rights_from,
    set_filter,
)
from skerry.edge.agent.seccomp_filter import (
    ALLOW,
    AUDIT,
    Assembler,
    compiled,
    default_filter,
    errno,
    instructions,
)
from skerry.edge.agent.seccomp_profile import (
    ALLOWED,
    CONDITIONS,
    EAFNOSUPPORT,
    ENOSYS,
    EPERM,
    UNKNOWN,
    YOUNGEST,
    oci_profile,
)
from skerry.edge.agent.syscall_numbers import NUMBERS

MACHINES = ("x86_64", "aarch64")
PROGRAMS = {machine: list(instructions(compiled(machine))) for machine in MACHINES}


COMPARISONS: dict[int, Callable[[int, int], object]] = {
    0x15: operator.eq,
    0x35: operator.ge,
    0x45: operator.and_,
}


def judged(machine: str, number: int, *arguments: int, architecture: int | None = None) -> int:
    """Run a filter on a call and return its verdict; as the kernel does, forward only."""
    audit = AUDIT[machine] if architecture is None else architecture
    order = "<" if sys.byteorder == "little" else ">"
    padded = [*arguments, *([0] * (6 - len(arguments)))]
    packed = struct.pack(f"{order}IIQ6Q", number, audit, 0, *padded)
    program, place, loaded = PROGRAMS[machine], 0, 0
    steps = 0
    while True:
        steps += 1
        assert steps <= len(program), "it never goes back"
        code, if_true, if_false, operand = program[place]
        place += 1
        if code == 0x20:
            loaded = struct.unpack_from(f"{order}I", packed, operand)[0]
        elif code == 0x05:
            place += operand
        elif code == 0x06:
            return operand
        else:
            place += if_true if COMPARISONS[code](loaded, operand) else if_false


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


@given(st.integers(min_value=YOUNGEST + 1, max_value=2**32 - 1))
def test_whatever_is_younger_is_unknown_and_so_is_the_x32_interface(number: int) -> None:
    assert judged("x86_64", number) == errno(ENOSYS)


@given(st.integers(min_value=0, max_value=2**32 - 1), st.integers(min_value=0, max_value=600))
def test_programs_of_another_architecture_are_not_run(audit: int, number: int) -> None:
    if audit != AUDIT["x86_64"]:
        assert judged("x86_64", number, architecture=audit) == errno(ENOSYS)


@pytest.mark.parametrize("machine", MACHINES)
@given(st.integers(min_value=0, max_value=2**64 - 1))
def test_no_namespace_is_made_whatever_else_is_asked(machine: str, flags: int) -> None:
    namespaces = 0x7E020000
    refused = errno(EPERM)
    verdict = judged(machine, NUMBERS[machine]["clone"], flags)
    assert verdict == (refused if flags & namespaces else ALLOW)
    verdict = judged(machine, NUMBERS[machine]["unshare"], flags)
    assert verdict == (refused if flags & (namespaces | 0x80) else ALLOW)


@pytest.mark.parametrize(
    ("name", "arguments", "verdict"),
    [
        ("socket", (2, 1), ALLOW),
        ("socket", (38,), errno(EAFNOSUPPORT)),
        ("socket", (39,), ALLOW),
        ("socket", (40,), errno(EAFNOSUPPORT)),
        ("ioctl", (0, 0x5413), ALLOW),
        ("ioctl", (0, 0x5412), errno(EPERM)),
        ("ioctl", (0, 0x5412 | 1 << 32), errno(EPERM)),
        ("personality", (0xFFFFFFFF,), ALLOW),
        ("personality", (0x0400000,), errno(EPERM)),
        ("clone3", (), errno(ENOSYS)),
        ("execve", (), ALLOW),
    ],
)
def test_some_calls_are_judged_by_an_argument(
    name: str, arguments: Sequence[int], verdict: int
) -> None:
    for machine in MACHINES:
        assert judged(machine, NUMBERS[machine][name], *arguments) == verdict


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


@pytest.mark.parametrize("machine", MACHINES)
def test_a_filter_is_small_and_every_listed_call_has_a_number(machine: str) -> None:
    assert len(PROGRAMS[machine]) < 300
    lacking = {name for name in ALLOWED if name not in NUMBERS["x86_64"]}
    assert not lacking
    assert default_filter("sparc") == ""
    assert bytes.fromhex(default_filter(machine)) == compiled(machine)


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


class TestAssembler:
    def test_labels_become_distances(self) -> None:
        made = Assembler()
        made.compare(0x15, 7, "there")
        made.give(1)
        made.mark("there")
        made.give(2)
        assert list(instructions(made.assembled())) == [(0x15, 1, 0, 7), (6, 0, 0, 1), (6, 0, 0, 2)]

    def test_what_the_kernel_would_not_take_is_refused(self) -> None:
        with pytest.raises(ValueError, match="0 instructions"):
            Assembler().assembled()
        backwards = Assembler()
        backwards.mark("here")
        backwards.go("here")
        with pytest.raises(ValueError, match="backwards"):
            backwards.assembled()
        far = Assembler()
        far.compare(0x15, 7, "there")
        for _ in range(300):
            far.give(0)
        far.mark("there")
        far.give(0)
        with pytest.raises(ValueError, match="300 instructions away"):
            far.assembled()


def in_child(action: Callable[[], int]) -> int:
    """Return what an action returns in a process of its own, which it may change for good."""
    child = os.fork()
    if child == 0:
        code = 255
        try:
            code = action()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.skipif(not knows_seccomp(), reason="this kernel takes no filters")
@pytest.mark.skipif(platform.machine() not in MACHINES, reason="its calls are not known")
class TestKernel:
    def test_the_kernel_takes_the_filter_and_obeys_it(self) -> None:
        def tried() -> int:
            promise_no_new_privileges()
            set_filter(bytes.fromhex(default_filter(platform.machine())))
            socket.socket(socket.AF_UNIX).close()
            try:
                socket.socket(38, socket.SOCK_SEQPACKET)
            except OSError as error:
                return 0 if error.errno == EAFNOSUPPORT else 1
            return 2

        assert in_child(tried) == 0

    def test_rights_are_given_up_for_good(self) -> None:
        def tried() -> int:
            rights = Rights(no_new_privileges=True, seccomp=default_filter(platform.machine()))
            become(rights_from(rights._asdict()))
            with open("/proc/self/status") as file:
                status = dict(line.split(":\t") for line in file if ":\t" in line)
            given_up = {"CapEff", "CapPrm", "CapInh", "CapAmb"}
            if os.geteuid() == 0:
                given_up |= {"CapBnd"}
            left = [name for name in given_up if int(status[name], 16)]
            return len(left) + (status["NoNewPrivs"].strip() != "1")

        assert in_child(tried) == 0

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")
    def test_a_user_is_one_and_none_of_the_others(self) -> None:
        def tried() -> int:
            become(Rights(1234, 2345, [4000], capabilities=[0, 1, 10]))
            alike = os.getresuid() == (1234,) * 3 and os.getresgid() == (2345,) * 3
            with open("/proc/self/status") as file:
                status = dict(line.split(":\t") for line in file if ":\t" in line)
            caps = int(status["CapEff"], 16) == 0 and int(status["CapBnd"], 16) == 0b10000000011
            return 0 if alike and caps and os.getgroups() == [4000] else 1

        assert in_child(tried) == 0
