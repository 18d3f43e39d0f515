"""``leases``: whether an edge was heard of lately, and what its reports are worth while it was not.

A report counts as long as the Lease by which its edge shows that it lives. After that nobody knows
how the edge fares: it may run on as before, or lie at the bottom of a lake. So each of its
reports gives way to one that says so, with the time until which the edge was heard of, and it comes
back by itself when the edge does. A destination without a row was never heard of.

Time enters as a row: whoever reads the Leases puts a row when one lapses and when it lives again,
never when it is merely renewed. Here is no clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from skerry.api.edge import LEASE_LAPSED, NEVER_HEARD_OF
from skerry.logic.fleet.summary.health import Health
from skerry.logic.fleet.summary.report import ABSENT, Report


@dataclass(frozen=True, slots=True)
class Lease:
    """A row. ``report`` stands for whatever the edge reported; None: that counts as it is."""

    report: Report | None = None


LIVE: Final = Lease()


def heard_of(last_heard: str) -> str:
    """Return the words for how long ago an edge was heard of; empty when it never was."""
    return f"last heard of {last_heard}" if last_heard else "not heard of yet"


def lapsed(last_heard: str) -> Lease:
    """Return the row of an edge that was last heard of at a time, in RFC 3339."""
    reason = LEASE_LAPSED if last_heard else NEVER_HEARD_OF
    health = Health("Unknown", reason, heard_of(last_heard))
    return Lease(Report(health=health, last_heard=last_heard))


NEVER: Final = lapsed("")


def fresh_report(report: Report | None, lease: Lease | None) -> Report:
    """Return what a destination's report comes to beside its Lease.

    Without a copy in the mailbox that is known, too; without a Lease nothing is.
    """
    if lease is None:
        lease = NEVER
    if lease.report is not None:
        return lease.report
    return ABSENT if report is None else report
