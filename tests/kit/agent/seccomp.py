"""Machines that judge system calls by a filter, and programs to run on them."""

from __future__ import annotations

import operator
import struct
import sys
from collections.abc import Callable, Iterator

from skerry.edge.agent.seccomp_filter import AUDIT, compiled

MACHINES = ("x86_64", "aarch64")


def instructions(program: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Yield the instructions of a program: code, two distances, operand."""
    order = "<" if sys.byteorder == "little" else ">"
    yield from struct.iter_unpack(f"{order}HBBI", program)


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
