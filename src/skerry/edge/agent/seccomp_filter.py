"""The default profile as the kernel judges by it: a classic BPF program, assembled here.

The machine of such a program has one accumulator, loads words of what describes a call (number,
architecture, arguments), compares, jumps forward and returns a verdict. Numbers are found by
halving: calls of one verdict that follow each other are one stretch, and a search over stretches
takes eight comparisons where a list would take three hundred.

Pure, so the program can be run in a test against what it should say of every call.
"""

from __future__ import annotations

import functools
import struct
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from skerry.edge.agent.seccomp_profile import (
    ALLOWED,
    CONDITIONS,
    ENOSYS,
    EPERM,
    UNKNOWN,
    YOUNGEST,
    Condition,
)
from skerry.edge.agent.syscall_numbers import NUMBERS

ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
# linux/audit.h: what a call says of its architecture.
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

# linux/bpf_common.h
_LOAD = 0x20  # LD | W | ABS
_JUMP = 0x05  # JMP | JA
_EQUAL = 0x15  # JMP | JEQ | K
_AT_LEAST = 0x35  # JMP | JGE | K
_ANY_BIT = 0x45  # JMP | JSET | K
_RETURN = 0x06  # RET | K
# struct seccomp_data
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_MAX_SHORT_JUMP = 255
_MAX_INSTRUCTIONS = 4096


def errno(number: int) -> int:
    """Return the verdict that a call fails with an error."""
    return _ERRNO | number


class _Instruction(NamedTuple):
    """One instruction; the labels are where it goes on, empty for the next one."""

    code: int
    operand: int = 0
    if_true: str = ""
    if_false: str = ""


class Assembler:
    """Collects instructions and labels; ``assembled`` turns labels into distances."""

    def __init__(self) -> None:
        self._instructions: list[_Instruction] = []
        self._labels: dict[str, int] = {}
        self._named = 0

    def fresh(self) -> str:
        """Return a label that nobody has used."""
        self._named += 1
        return f"label-{self._named}"

    def mark(self, label: str) -> None:
        """Let *label* mean what comes next."""
        self._labels[label] = len(self._instructions)

    def load(self, offset: int) -> None:
        """Load a word of what describes the call."""
        self._instructions.append(_Instruction(_LOAD, offset))

    def give(self, verdict: int) -> None:
        """End with a verdict."""
        self._instructions.append(_Instruction(_RETURN, verdict))

    def go(self, label: str) -> None:
        """Go on at *label*."""
        self._instructions.append(_Instruction(_JUMP, 0, label))

    def compare(self, code: int, value: int, if_true: str = "", if_false: str = "") -> None:
        """Go on at one of two labels, by a comparison of what was loaded."""
        self._instructions.append(_Instruction(code, value, if_true, if_false))

    def assembled(self) -> bytes:
        """Return the program; raises ``ValueError`` when it is none that the kernel takes."""
        if not 0 < len(self._instructions) <= _MAX_INSTRUCTIONS:
            raise ValueError(f"a filter of {len(self._instructions)} instructions")
        order = "<" if sys.byteorder == "little" else ">"
        return b"".join(
            struct.pack(f"{order}HBBI", *self._resolved(number, instruction))
            for number, instruction in enumerate(self._instructions)
        )

    def _resolved(self, number: int, instruction: _Instruction) -> tuple[int, int, int, int]:
        code, operand, if_true, if_false = instruction
        if code == _JUMP:
            return code, 0, 0, self._distance(number, if_true)
        return code, self._short(number, if_true), self._short(number, if_false), operand

    def _short(self, number: int, label: str) -> int:
        distance = self._distance(number, label)
        if distance > _MAX_SHORT_JUMP:
            raise ValueError(f"a comparison that leads {distance} instructions away")
        return distance

    def _distance(self, number: int, label: str) -> int:
        if not label:
            return 0
        distance = self._labels[label] - number - 1
        if distance < 0:
            raise ValueError("a jump backwards")
        return distance


class _Stretch(NamedTuple):
    """Calls from ``first`` on that are judged alike: by a verdict, or by a condition."""

    first: int
    verdict: int | Condition


def compiled(machine: str) -> bytes:
    """Return the filter of the default profile for *machine*; raises ``KeyError``."""
    found = Assembler()
    found.load(_ARCHITECTURE)
    found.compare(_EQUAL, AUDIT[machine], "ours", "foreign")
    found.mark("foreign")
    # Programs of another architecture have other numbers; they are not run.
    found.give(errno(ENOSYS))
    found.mark("ours")
    found.load(_NUMBER)
    _search(found, _stretches(NUMBERS[machine]))
    return found.assembled()


def _stretches(numbers: Mapping[str, int]) -> list[_Stretch]:
    """Return every number there could be, in stretches that are judged alike."""
    verdicts: dict[int, int | Condition] = {numbers[n]: ALLOW for n in ALLOWED if n in numbers}
    verdicts |= {numbers[n]: errno(ENOSYS) for n in UNKNOWN if n in numbers}
    verdicts |= {numbers[n]: condition for n, condition in CONDITIONS.items() if n in numbers}
    found: list[_Stretch] = []
    for number in range(YOUNGEST + 2):
        # Those beyond the youngest, the x32 interface among them, are not known to anybody.
        verdict = verdicts.get(number, errno(EPERM if number <= YOUNGEST else ENOSYS))
        if not found or found[-1].verdict != verdict:
            found.append(_Stretch(number, verdict))
    return found


def _search(found: Assembler, stretches: Sequence[_Stretch]) -> None:
    """Find the stretch that the loaded number is in, by halving."""
    if len(stretches) == 1:
        _judge(found, stretches[0].verdict)
        return
    middle = len(stretches) // 2
    upper, lower = found.fresh(), found.fresh()
    # The upper half may be further away than a comparison can jump.
    found.compare(_AT_LEAST, stretches[middle].first, "", lower)
    found.go(upper)
    found.mark(lower)
    _search(found, stretches[:middle])
    found.mark(upper)
    _search(found, stretches[middle:])


def _judge(found: Assembler, verdict: int | Condition) -> None:
    if isinstance(verdict, int):
        found.give(verdict)
        return
    allowed, refused = found.fresh(), found.fresh()
    # The lower half of an argument: all of these are numbers of 32 bits to the kernel.
    found.load(_ARGUMENTS + 8 * verdict.argument + (4 if sys.byteorder == "big" else 0))
    if verdict.rule == "none of":
        found.compare(_ANY_BIT, verdict.values[0], refused, allowed)
    else:
        matching = allowed if verdict.rule == "one of" else refused
        for value in verdict.values:
            found.compare(_EQUAL, value, matching, "")
        if verdict.rule == "not":
            found.go(allowed)
    found.mark(refused)
    found.give(errno(verdict.error))
    found.mark(allowed)
    found.give(ALLOW)


@functools.cache
def default_filter(machine: str) -> str:
    """Return the filter in hexadecimal; empty for a machine whose calls are not known here."""
    return compiled(machine).hex() if machine in NUMBERS and machine in AUDIT else ""
