"""What the rest of the server asks of workers: whether a body is heavy, and to have a task done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from msgspec.structs import replace

from skerry.api.errors import ApiError, from_status
from skerry.server.http.message import User
from skerry.server.offload.families import type_ref
from skerry.server.offload.messages import (
    NOTHING,
    Change,
    Done,
    Draft,
    Job,
    Missing,
    Refused,
    Result,
    Task,
    TypeRef,
)
from skerry.server.rest.call import Call
from skerry.server.rest.options import WriteOptions

# Every value but the first follows one of them, in JSON and in YAML.
_SEPARATORS: Final = (b",", b"[", b"{")
_YAML_SEPARATORS: Final = (b"\n", b": ", b"- ", b"? ")
_KEPT_HEADERS: Final = ("content-type", "user-agent", "accept")


@dataclass(frozen=True, slots=True)
class OffloadSettings:
    """When work leaves the loop, and what a worker may take."""

    light_bytes: int = 4096
    """Bodies and objects of up to this many bytes are handled on the loop without a look at them:
    they hold too few values to take long, whatever they are."""

    values: int = 1_000
    """Max values in a body, or in the object it changes, that are handled on the loop. One takes
    3 to 20 microseconds from its decoding to its encoding."""

    bytes: int = 256 * 1024
    """Max bytes of a body or object that are handled on the loop, however few values they are."""

    workers: int = 2
    """Max worker processes. Each starts when there is work for it and needs about 60 MB."""

    idle_seconds: float = 300.0
    """How long a worker stays without work."""

    memory_bytes: int = 1 << 30
    """Max address space of a worker; a task that needs more is refused."""

    cpu_seconds: float = 10.0
    """Max CPU time of a task; one that needs more is refused."""

    queued_per_user: int = 16
    """Max tasks of one user that wait; more are refused with 429."""

    queued_bytes: int = 64 << 20
    """Max bytes of all tasks that wait."""


class Runner(Protocol):
    """Who has jobs done."""

    async def run(self, job: Job, user: User) -> Result:
        """Return how *job*, done for *user*, ends; raises an ApiError when it cannot be done."""

    async def serve(self) -> None:
        """Be there for jobs until cancelled."""


class Offload:
    """Hands heavy work to *runner*; without one, none is heavy."""

    def __init__(
        self, runner: Runner | None = None, settings: OffloadSettings | None = None
    ) -> None:
        self._runner = runner
        self.settings = settings or OffloadSettings()

    async def serve(self) -> None:
        """Be there for work until cancelled."""
        if self._runner is not None:
            await self._runner.serve()

    def is_heavy(self, body: bytes, media: str = "") -> bool:
        """Tell whether computing with *body*, a request's or a stored one, takes long.

        Separators inside strings count too, so it may turn out not to.
        """
        size = len(body)
        if size <= self.settings.light_bytes or self._runner is None:
            return False
        settings = self.settings
        if size > settings.bytes:
            return True
        if media.endswith("protobuf"):
            # A field takes two bytes at least, and most take a name or more.
            return size > 16 * settings.values
        count = sum(map(body.count, _SEPARATORS))
        if media.endswith("yaml"):
            count += sum(map(body.count, _YAML_SEPARATORS))
        return count > settings.values

    def worker(self, call: Call, options: WriteOptions) -> Worker | None:
        """Return who does tasks for *call*; None when its type is known to this process only."""
        reference = type_ref(call.resource)
        if self._runner is None or reference is None:
            return None
        return Worker(self._runner, call, options, reference)


class Worker:
    """Does tasks for one request."""

    __slots__ = ("_call", "_job", "_runner")

    def __init__(
        self, runner: Runner, call: Call, options: WriteOptions, reference: TypeRef
    ) -> None:
        self._runner = runner
        self._call = call
        request = call.request
        headers = {name: request.headers[name] for name in _KEPT_HEADERS if name in request.headers}
        self._job = Job(reference, call.info, request.query_string, headers, b"", options, NOTHING)

    async def do(self, task: Task) -> Done:
        """Return how *task* ended; raises what it was refused with."""
        reads_body = isinstance(task, Draft | Change)
        body = self._call.request.body if reads_body else b""
        job, user = replace(self._job, task=task, body=body), self._call.user
        result = await self._runner.run(job, user)
        if isinstance(result, Missing):
            family = self._call.resource.family
            content = b"null" if family is None else family.text
            job = replace(job, type=replace(job.type, content=content))
            result = await self._runner.run(job, user)
        return self._done(result)

    def _done(self, result: Result) -> Done:
        if isinstance(result, Missing):
            raise ApiError("a worker could not build the type of the object")
        known = self._call.warnings
        known.extend(text for text in result.warnings if text not in known)
        if isinstance(result, Refused):
            raise _refusal(result)
        return result


def _refusal(result: Refused) -> ApiError:
    error = from_status(result.code, result.status)
    error.headers.update(result.headers)
    return error
