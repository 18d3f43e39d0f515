"""What a program may still do, by the rights its security context leaves it."""

from __future__ import annotations

import os
import platform
import socket
from collections.abc import Callable

import pytest

from skerry.edge.agent.privileges import (
    Rights,
    become,
    knows_seccomp,
    promise_no_new_privileges,
    rights_from,
    set_filter,
)
from skerry.edge.agent.seccomp_filter import (
    default_filter,
)
from skerry.edge.agent.seccomp_profile import (
    EAFNOSUPPORT,
)
from tests.kit.agent.seccomp import MACHINES


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
