"""The filter of system calls: run here by a machine of our own, against what it should say."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.edge.agent.seccomp_filter import (
    ALLOW,
    AUDIT,
    Assembler,
    compiled,
    default_filter,
    errno,
)
from skerry.edge.agent.seccomp_profile import (
    ALLOWED,
    EAFNOSUPPORT,
    ENOSYS,
    EPERM,
    YOUNGEST,
)
from skerry.edge.agent.syscall_numbers import NUMBERS
from tests.kit.agent.seccomp import MACHINES, PROGRAMS, instructions, judged


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


@pytest.mark.parametrize("machine", MACHINES)
def test_a_filter_is_small_and_every_listed_call_has_a_number(machine: str) -> None:
    assert len(PROGRAMS[machine]) < 300
    lacking = {name for name in ALLOWED if name not in NUMBERS["x86_64"]}
    assert not lacking
    assert default_filter("sparc") == ""
    assert bytes.fromhex(default_filter(machine)) == compiled(machine)


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
