"""Running a request step by step, and noting how long each step keeps the loop busy.

A coroutine holds the loop from one wait to the next. Two readings of the clock around each step
cost less than a thousandth of a request; a request that never waits is measured by the times that
are taken of it anyway.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar

from skerry.server.http.message import Request

R = TypeVar("R")

# Later steps are charged once they come to this much: seldom enough to cost nothing, often enough
# that a stream which goes on for an hour is charged while it does.
_CHARGED_SECONDS = 0.005
# What is charged of one step. None takes so long by itself, the largest body included: the process
# was waiting for a core, or looking for garbage, and whoever's step that was has not done it.
_MAX_STEP_SECONDS = 0.1


@types.coroutine
def carried_on(
    serving: Coroutine[Any, Any, R],
    awaited: Any,
    stopped: BaseException | None,
    request: Request,
    now: Callable[[], float],
) -> Generator[Any, Any, R]:
    """Go on with a coroutine that was run up to its first wait, waiting for *awaited*.

    With *stopped* the wait is over already, by that exception.
    """
    try:
        while True:
            if stopped is not None:
                awaited, stopped = serving.throw(stopped), None
                continue
            try:
                value = yield awaited
            except BaseException as error:  # noqa: BLE001 - handed on, not handled
                stopped = error
            else:
                request.step = now()
                awaited = serving.send(value)
                note_step(request, now)
    except StopIteration as done:
        result: R = done.value
        return result


async def timed(serving: Coroutine[Any, Any, R], request: Request, now: Callable[[], float]) -> R:
    """Run a coroutine from its beginning, noting its steps on *request*."""
    request.step = now()
    try:
        awaited = serving.send(None)
    except StopIteration as done:
        result: R = done.value
        return result
    note_step(request, now)
    return await carried_on(serving, awaited, None, request, now)


def note_step(request: Request, now: Callable[[], float]) -> None:
    """Note that a step is over, and charge for the steps so far where that is due."""
    request.busy += taken(request, now())
    if request.charge is not None and request.busy > _CHARGED_SECONDS:
        request.charge(request.busy)
        request.busy = 0.0


def taken(request: Request, now: float) -> float:
    """Return what the present step has taken of the loop."""
    return min(now - request.step, _MAX_STEP_SECONDS)
