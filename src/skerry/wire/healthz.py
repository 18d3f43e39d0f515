"""What ``/healthz``, ``/livez`` and ``/readyz`` answer, in the words of kube-apiserver.

Probes read the status alone, people and scripts the lines: one for each check, and a verdict. When
all is well and nobody asks for more, the answer is ``ok``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

TEXT = "text/plain; charset=utf-8"
WITHHELD = "reason withheld"


class Checked(NamedTuple):
    """What came of one check; ``reason`` is why it failed, and excluded ones were not asked."""

    name: str
    reason: str = ""
    excluded: bool = False

    def line(self) -> str:
        if self.reason:
            return f"[-]{self.name} failed: {self.reason}\n"
        return f"[+]{self.name} excluded: ok\n" if self.excluded else f"[+]{self.name} ok\n"


def answer(
    endpoint: str, checks: Sequence[Checked], *, verbose: bool, warning: str = ""
) -> tuple[int, bytes]:
    """Return status and text; *warning* is a line before the verdict."""
    failed = any(check.reason for check in checks)
    if not failed and not verbose:
        return 200, b"ok"
    lines = "".join(check.line() for check in checks)
    verdict = "failed" if failed else "passed"
    return 500 if failed else 200, f"{lines}{warning}{endpoint} check {verdict}\n".encode()
