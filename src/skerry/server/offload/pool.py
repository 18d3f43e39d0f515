"""Worker processes, and whose turn it is to use one.

Processes start when there is work and end when there has been none for a while. Each does one job
at a time. Who waits for one waits in a queue of their own; free workers go round the waiting users
in turn, so that one who sends many large bodies waits longer and others do not.

A worker that ends before it has answered is replaced and its job done once more: jobs only
compute, so doing one twice does no harm. If the second worker ends too, the request fails with
503; nothing has been written for it. One that says with its answer that it is spent is replaced
before anybody asks it again.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from skerry.api.errors import ServiceUnavailable, TooManyRequests
from skerry.kit.log import Logger, current_format
from skerry.server.offload.framing import HEAD, FrameError, framed, length
from skerry.server.offload.messages import Job, Missing, Result, decode_result, encode
from skerry.server.offload.offload import OffloadSettings
from skerry.server.user import User

log = Logger("offload")

# What marks the objects of a server, by the name a worker knows it by.
StampName = Literal["none", "cluster"]
PROGRAM: Final = "skerry.server.offload.worker"

_RETRY_AFTER_SECONDS: Final = 1
# A worker may have to start first, and to wait for the CPU it is allowed; far beyond that,
# something hangs.
_START_SECONDS: Final = 30.0
_WALL_FACTOR: Final = 6
_READ_BYTES: Final = 1 << 20
_ENDED: Final = (
    "the process that worked on the request ended, and so did the next; nothing was written"
)


class WorkerEnded(Exception):
    """A worker ended, or was ended, before it had answered."""


class WorkerProcess(Protocol):
    """A worker as the pool sees it."""

    @property
    def pid(self) -> int:
        """The number of its process."""

    @property
    def ended(self) -> bool:
        """Whether it has ended."""

    async def ask(self, message: bytes, seconds: float) -> bytes:
        """Return the answer to *message*; raises WorkerEnded, also when it takes too long."""

    async def stop(self) -> None:
        """End the worker, whatever it is doing."""


class SystemWorker:
    """A process of the machine."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(
        cls, settings: OffloadSettings, stamp: StampName, program: str = PROGRAM
    ) -> SystemWorker:
        """Return a worker that is starting, of the module *program*; it answers when it has."""
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                program,
                f"--memory-bytes={settings.memory_bytes}",
                f"--cpu-seconds={settings.cpu_seconds}",
                f"--stamp={stamp}",
                f"--log-format={current_format()}",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=_READ_BYTES,
            )
        except OSError as error:
            log.warning("cannot start a worker", error=error)
            raise ServiceUnavailable(
                "no worker process could be started for a large request; please try again"
            ) from error
        return cls(process)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def ended(self) -> bool:
        return self._process.returncode is not None

    async def ask(self, message: bytes, seconds: float) -> bytes:
        writer, reader = self._process.stdin, self._process.stdout
        # One that ended while it was idle: uvloop would refuse to write with a RuntimeError.
        if writer is None or reader is None or writer.is_closing():
            raise WorkerEnded
        try:
            async with asyncio.timeout(seconds):
                writer.write(framed(message))
                await writer.drain()
                return await reader.readexactly(length(await reader.readexactly(HEAD)))
        except (asyncio.IncompleteReadError, ConnectionError, TimeoutError, FrameError) as error:
            raise WorkerEnded from error

    async def stop(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        if self._process.stdin is not None:
            self._process.stdin.close()
        await self._process.wait()


@dataclass(slots=True, eq=False)
class _Turn:
    """Somebody waiting for a worker."""

    given: asyncio.Future[WorkerProcess | None]
    size: int


def system_workers(
    settings: OffloadSettings,
    stamp: StampName,
    charge: Callable[[User, float], None],
    program: str = PROGRAM,
) -> WorkerPool:
    """Return a pool of processes for a server that marks its objects with *stamp*.

    Each runs the module *program*, whose types must have the rules of the server's own.
    """
    return WorkerPool(settings, lambda: SystemWorker.start(settings, stamp, program), charge)


class WorkerPool:
    """Does jobs in worker processes, which *start* starts; ``charge`` gets the CPU time each
    user's jobs took."""

    def __init__(
        self,
        settings: OffloadSettings,
        start: Callable[[], Awaitable[WorkerProcess]],
        charge: Callable[[User, float], None] | None = None,
    ) -> None:
        self._settings = settings
        self._start = start
        self._charge = charge
        self._idle: list[WorkerProcess] = []
        self._count = 0
        # Users in the order in which their turn comes.
        self._queues: dict[str, deque[_Turn]] = {}
        self._queued_bytes = 0
        # Who asked may go away; a worker still has to be heard to the end.
        self._tasks: asyncio.TaskGroup | None = None
        self._timers: dict[WorkerProcess, asyncio.TimerHandle] = {}

    async def serve(self) -> None:
        """Be there for jobs until cancelled; then every worker ends."""
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                await asyncio.get_running_loop().create_future()
        finally:
            self._tasks = None
            for timer in self._timers.values():
                timer.cancel()
            self._timers.clear()
            while self._idle:
                await self._idle.pop().stop()

    async def run(self, job: Job, user: User) -> Result:
        """Return how *job*, done for *user*, ends."""
        message = encode(job)
        # All principals of a workspace are one to those who wait with them.
        worker = await self._acquire(user.home or user.name, len(message))
        tasks = self._tasks
        if tasks is None:
            self._release(worker)
            raise ServiceUnavailable("the server is not ready for large requests")
        ending: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        tasks.create_task(self._finish(message, worker, ending))
        result = await ending
        if self._charge is not None and not isinstance(result, Missing):
            self._charge(user, result.cpu_seconds)
        return result

    @property
    def pids(self) -> list[int]:
        """The processes that wait for work."""
        return [worker.pid for worker in self._idle]

    # -- jobs --------------------------------------------------------------------------------

    async def _finish(
        self, message: bytes, worker: WorkerProcess, ending: asyncio.Future[Result]
    ) -> None:
        """Do a job on *worker*, or on a second one if that ends, and pass the worker on."""
        current: WorkerProcess | None = worker
        seconds = _START_SECONDS + self._settings.cpu_seconds * _WALL_FACTOR
        try:
            for attempt in (1, 2):
                if current is None:
                    current = await self._start()
                try:
                    answer = await current.ask(message, seconds)
                except WorkerEnded as error:
                    ended, current = current, None
                    await ended.stop()
                    why = error.__cause__
                    log.warning("worker ended", pid=ended.pid, attempt=attempt, error=why)
                else:
                    result = decode_result(answer)
                    _settle(ending, result)
                    if result.spent:
                        await current.stop()
                        current = None
                    return
            _settle(ending, ServiceUnavailable(_ENDED))
        except ServiceUnavailable as error:
            _settle(ending, error)
        except asyncio.CancelledError:
            if current is not None:
                ended, current = current, None
                await ended.stop()
            raise
        finally:
            self._release(current)

    # -- turns -------------------------------------------------------------------------------

    async def _acquire(self, user: str, size: int) -> WorkerProcess:
        while self._idle and not self._queues:
            worker = self._idle.pop()
            self._timers.pop(worker).cancel()
            if not worker.ended:
                return worker
            self._count -= 1
        if self._count < self._settings.workers and not self._queues:
            self._count += 1
            return await self._started()
        given = await self._wait(user, size)
        return await self._started() if given is None else given

    async def _started(self) -> WorkerProcess:
        """Start a worker for a place that is taken already; give it back if that fails."""
        try:
            return await self._start()
        except BaseException:
            self._release(None)
            raise

    async def _wait(self, user: str, size: int) -> WorkerProcess | None:
        """Wait for a worker, or for the place of one that ended."""
        queue = self._queues.get(user, ())
        too_much = self._queued_bytes + size > self._settings.queued_bytes
        if len(queue) >= self._settings.queued_per_user or too_much:
            raise TooManyRequests(
                "Too many large requests, please try again later.", _RETRY_AFTER_SECONDS
            )
        turn = _Turn(asyncio.get_running_loop().create_future(), size)
        self._queues.setdefault(user, deque()).append(turn)
        self._queued_bytes += size
        try:
            return await turn.given
        except asyncio.CancelledError:
            if turn.given.done() and not turn.given.cancelled():
                self._release(turn.given.result())
            else:
                self._leave(user, turn)
            raise

    def _leave(self, user: str, turn: _Turn) -> None:
        queue = self._queues.get(user)
        if queue is not None and turn in queue:
            queue.remove(turn)
            self._queued_bytes -= turn.size
            if not queue:
                del self._queues[user]

    def _release(self, worker: WorkerProcess | None) -> None:
        """Pass a worker on, or the place of one that ended."""
        if worker is not None and worker.ended:
            worker = None
        while self._queues:
            user = next(iter(self._queues))
            queue = self._queues.pop(user)
            turn = queue.popleft()
            self._queued_bytes -= turn.size
            if queue:
                self._queues[user] = queue  # At the end: the others come first now.
            if not turn.given.done():
                turn.given.set_result(worker)
                return
        if worker is None:
            self._count -= 1
        else:
            self._rest(worker)

    def _rest(self, worker: WorkerProcess) -> None:
        """Keep a worker for a while."""
        self._idle.append(worker)
        seconds = self._settings.idle_seconds
        loop = asyncio.get_running_loop()
        self._timers[worker] = loop.call_later(seconds, self._retire, worker)

    def _retire(self, worker: WorkerProcess) -> None:
        self._timers.pop(worker, None)
        self._idle.remove(worker)
        self._count -= 1
        if self._tasks is not None:
            self._tasks.create_task(worker.stop())


def _settle(ending: asyncio.Future[Result], result: Result | ServiceUnavailable) -> None:
    """Say how a job ended, if anybody still wants to know."""
    if ending.done():
        return
    if isinstance(result, ServiceUnavailable):
        ending.set_exception(result)
    else:
        ending.set_result(result)
