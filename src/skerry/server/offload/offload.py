"""What the rest of the server asks of workers: whether a body is heavy, and to have a task done."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

import orjson
from msgspec.structs import replace

from skerry.api.errors import ApiError, from_status
from skerry.api.objects import Object
from skerry.logic.machinery.resource import Family, Resource
from skerry.logic.machinery.work import limited
from skerry.server.offload.checks import CHECKS
from skerry.server.offload.families import type_ref
from skerry.server.offload.messages import (
    NOTHING,
    Change,
    Check,
    Document,
    Done,
    Draft,
    Job,
    Missing,
    Refused,
    Result,
    Task,
    TypeRef,
)
from skerry.server.openapi_documents import Form, document
from skerry.server.request.body import media_type
from skerry.server.request.call import Call
from skerry.server.request.info import RequestInfo
from skerry.server.request.options import WriteOptions
from skerry.server.user import User

R = TypeVar("R")

# Every value but the first follows one of them, in JSON and in YAML.
_SEPARATORS: Final = (b",", b"[", b"{")
_YAML_SEPARATORS: Final = (b"\n", b": ", b"- ", b"? ")
# What stands before a pattern or an expression in a definition.
_COMPILED_WORDS: Final = (b"pattern", b"validations", b"rules", b"expression")
# The documents of so few of Kubernetes' own types are made soon enough.
_FEW_TYPES: Final = 6
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

    units: float = 25_000
    """Max units of work (``machinery.work``), a few milliseconds, that validating an object may
    take on the loop; what turns out to take more is begun again in a worker."""

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

    def is_heavy(self, body: bytes, content_type: str = "", *, cost: int = 1) -> bool:
        """Tell whether computing with *body*, a request's or a stored one, takes long.

        Separators inside strings count too, so it may turn out not to. *cost* is how many times
        as long as usual each value takes.
        """
        size = len(body) * cost
        if size <= self.settings.light_bytes or self._runner is None:
            return False
        settings = self.settings
        if size > settings.bytes:
            return True
        media = media_type(content_type)
        if media.endswith("protobuf"):
            # A field takes two bytes at least, and most take a name or more.
            return size > 16 * settings.values
        count = cost * sum(map(body.count, _SEPARATORS))
        if media.endswith("yaml"):
            count += sum(map(body.count, _YAML_SEPARATORS))
        return count > settings.values

    def short(self, function: Callable[[], R]) -> R:
        """Return what *function* returns, if that does not take long; raises LongWork otherwise.

        Without workers there is nobody else to do it, and it takes as long as it takes.
        """
        return function() if self._runner is None else limited(self.settings.units, function)

    def compiles(self, body: bytes) -> bool:
        """Tell whether patterns or expressions stand in *body*, that of a definition.

        Ten characters can take milliseconds to compile.
        """
        return self._runner is not None and any(word in body for word in _COMPILED_WORDS)

    async def check(self, call: Call, name: str, *documents: Object) -> str:
        """Return why a check refuses an object, made by a worker if that takes long.

        Raises one of ``prepare.TRIPPED`` for an object that is not of its form.
        """
        texts = [orjson.dumps(document) for document in documents]
        worker = self.worker(call, WriteOptions())
        if worker is None or not any(self.is_heavy(t) or self.compiles(t) for t in texts):
            return CHECKS[name](call, *documents)
        done = await worker.do(Check(name, texts))
        if done.tripped:
            raise TypeError(done.tripped)
        return done.text.decode()

    async def document(
        self, form: Form, group: str, version: str, resources: Sequence[Resource], user: User
    ) -> bytes:
        """Return the OpenAPI document of *resources*, made by a worker if that takes long."""
        references = [type_ref(resource) for resource in resources]
        known = [reference for reference in references if reference is not None]
        many = len(resources) > _FEW_TYPES or any(resource.custom for resource in resources)
        if self._runner is None or not many or len(known) < len(references):
            return document(form, group, version, resources)
        job = Job(
            known,
            RequestInfo("", "get"),
            "",
            {},
            b"",
            WriteOptions(),
            Document(form, group, version),
        )
        families = {r.family.key: r.family for r in resources if r.family is not None}
        result = await _run(self._runner, job, user, families)
        if isinstance(result, Refused):
            raise _refusal(result)
        return result.text

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
        self._job = Job(
            [reference], call.info, request.query_string, headers, b"", options, NOTHING
        )

    async def do(self, task: Task) -> Done:
        """Return how *task* ended; raises what it was refused with."""
        reads_body = isinstance(task, Draft | Change)
        body = self._call.request.body if reads_body else b""
        family = self._call.resource.family
        families = {} if family is None else {family.key: family}
        job = replace(self._job, task=task, body=body)
        result = await _run(self._runner, job, self._call.user, families)
        known = frozenset(self._call.warnings)
        self._call.warnings.extend(text for text in result.warnings if text not in known)
        if isinstance(result, Refused):
            raise _refusal(result)
        return result


async def _run(
    runner: Runner, job: Job, user: User, families: Mapping[str, Family]
) -> Done | Refused:
    """Have *job* done, and send what the worker does not know of *families*."""
    result = await runner.run(job, user)
    if isinstance(result, Missing):
        wanted = frozenset(result.keys)
        types = [
            replace(reference, content=families[reference.key].text)
            if reference.key in wanted
            else reference
            for reference in job.types
        ]
        result = await runner.run(replace(job, types=types), user)
    if isinstance(result, Missing):
        raise ApiError("a worker could not build the types of the request")
    return result


def _refusal(result: Refused) -> ApiError:
    error = from_status(result.code, result.status)
    error.headers.update(result.headers)
    return error
