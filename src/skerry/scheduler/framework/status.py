"""What a plugin answers.

``None`` is success, as it is by far the commonest answer; anything else is a ``Status``. The
difference between *unschedulable* and *unresolvable* matters: only the first lets preemption
try, so a plugin that confuses them silently disables it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum


class Code(IntEnum):
    """Status codes; the names are those metrics and logs show."""

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNRESOLVABLE = 3
    WAIT = 4
    SKIP = 5
    PENDING = 6

    @property
    def label(self) -> str:
        """Return the name Kubernetes gives the code."""
        return _LABELS[self]


_LABELS = {
    Code.SUCCESS: "Success",
    Code.ERROR: "Error",
    Code.UNSCHEDULABLE: "Unschedulable",
    Code.UNRESOLVABLE: "UnschedulableAndUnresolvable",
    Code.WAIT: "Wait",
    Code.SKIP: "Skip",
    Code.PENDING: "Pending",
}


@dataclass(frozen=True, slots=True)
class Status:
    """One answer that is not success."""

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""
    cause: BaseException | None = field(default=None, compare=False)

    @property
    def message(self) -> str:
        return ", ".join(self.reasons)

    @property
    def rejected(self) -> bool:
        """Tell whether the item was turned down, as opposed to an internal failure."""
        return self.code in _REJECTED

    def of(self, plugin: str) -> Status:
        """Return the same answer signed by *plugin*, unless it is signed already."""
        return self if self.plugin else Status(self.code, self.reasons, plugin, self.cause)


_REJECTED = frozenset({Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.PENDING})

SKIP = Status(Code.SKIP)


def unschedulable(*reasons: str) -> Status:
    """Refuse in a way that removing other items may cure."""
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    """Refuse in a way that no preemption can cure."""
    return Status(Code.UNRESOLVABLE, reasons)


def error(reason: str, cause: BaseException | None = None) -> Status:
    """Report that the question could not be answered at all."""
    return Status(Code.ERROR, (reason,), cause=cause)
