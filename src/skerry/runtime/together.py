"""Actions of several executors carried out in one transaction of the server.

An ``Executor`` sends one action after another. What a decision writes of several kinds, each with
options and an overlay of its own, may go together instead: all of it happens, or nothing does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from skerry.api.errors import ApiError
from skerry.logic.machinery.plan import Create, Update
from skerry.runtime.atomic import NOT_TRIED, AtomicWriter, Written
from skerry.runtime.execute import Executor, Outcome
from skerry.runtime.transport import TransportError


class Step(NamedTuple):
    """An action, and the executor that would carry it out alone; ``quiet`` needs no answer."""

    executor: Executor
    action: Create | Update
    quiet: bool = False


class Refused(NamedTuple):
    """Why nothing was written: the step that was refused and its error.

    Without them, because the server does not take these steps together.
    """

    step: int | None = None
    error: ApiError | None = None


async def execute_together(
    writer: AtomicWriter, cluster: str, steps: Sequence[Step]
) -> list[Outcome] | Refused:
    """Carry out all *steps*, in one cluster, or none; raises where nobody knows which."""
    if not await writer.is_offered(cluster):
        return Refused()
    parts = [step.executor.begin(step.action, quiet=step.quiet) for step in steps]
    try:
        written = await writer.write(cluster, parts)
    except (ApiError, TransportError, asyncio.CancelledError) as error:
        for step in steps:
            step.executor.fail(step.action, error)
        raise
    if written is None:
        written = Written((), [NOT_TRIED] * len(steps))
    for step, why in zip(steps, written.errors, strict=False):
        step.executor.fail(step.action, why)
    if written.errors:
        failed = written.failed
        return Refused(failed, written.errors[failed] if failed is not None else None)
    return [
        step.executor.done(step.action, answer or None)
        for step, answer in zip(steps, written.answers, strict=True)
    ]
