"""What ``/debug/pprof`` shows: where every task of the process stands.

kube-scheduler serves Go profiles there while ``enableProfiling`` is on. Of those the command line
and the goroutines have a meaning here; a profile over time is better taken from outside, and its
pages answer 404.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from types import CoroutineType

_INDEX = """/debug/pprof/

cmdline     the command line, NUL between the words
goroutine   every task and where it waits
"""


def index() -> tuple[str, bytes]:
    """Return what there is."""
    return "text/plain; charset=utf-8", _INDEX.encode()


def command_line() -> tuple[str, bytes]:
    """Return how the process was started."""
    return "text/plain; charset=utf-8", "\0".join(sys.argv).encode()


def tasks() -> tuple[str, bytes]:
    """Return the stack of every task, outermost call first."""
    found = sorted(asyncio.all_tasks(), key=lambda task: task.get_name())
    lines = [f"goroutine profile: total {len(found)}"]
    for task in found:
        lines += ["", f"{task.get_name()}:", *_calls(task.get_coro())]
    return "text/plain; charset=utf-8", "\n".join([*lines, ""]).encode()


def _calls(awaited: object) -> Iterator[str]:
    """Yield the calls a task is in: each coroutine awaits the next."""
    while isinstance(awaited, CoroutineType):
        frame = awaited.cr_frame
        if frame is not None:
            code = frame.f_code
            yield f"  {code.co_qualname} {code.co_filename}:{frame.f_lineno}"
        awaited = awaited.cr_await


PAGES = {
    "/debug/pprof": index,
    "/debug/pprof/": index,
    "/debug/pprof/cmdline": command_line,
    "/debug/pprof/goroutine": tasks,
}
