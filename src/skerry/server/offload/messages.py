"""What goes between the server and its workers: msgpack, so that neither side runs the other's
code whatever it reads."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, Literal

import msgspec

from skerry.api.kinds import ResourceInfo
from skerry.server.request.info import RequestInfo
from skerry.server.request.options import WriteOptions


class TypeRef(msgspec.Struct, frozen=True):
    """A type: the family it is of, and what of it differs where it is served.

    ``content`` is what the family is built from; it is sent only to a worker that asked for it.
    """

    builder: str
    key: str
    info: ResourceInfo
    identity: str = ""
    content: bytes | None = None


class Draft(msgspec.Struct, tag=True, frozen=True):
    """Read a new object from the body, as *mutation* says, and complete it."""

    mutation: str
    now: str
    uid: str
    suffix: str


class Change(msgspec.Struct, tag=True, frozen=True):
    """Change a stored object as the body says, read as *mutation* says."""

    mutation: str
    now: str
    value: bytes
    revision: int
    subresource: str = ""


class Finish(msgspec.Struct, tag=True, frozen=True):
    """Validate an object that admission has let through, and encode it.

    ``owned`` are the fields its managers own, as the task before returned them; ``value`` is the
    stored object it replaces, if any.
    """

    new: bytes
    owned: bytes = b""
    value: bytes = b""
    revision: int = 0
    subresource: str = ""


class Render(msgspec.Struct, tag=True, frozen=True):
    """Show a stored object as the request asks, as an *item* of a list if it is one."""

    value: bytes
    revision: int
    now: datetime
    item: bool = False


class Check(msgspec.Struct, tag=True, frozen=True):
    """Make a check of admission's; the text of the result says why an object is refused."""

    name: str
    documents: list[bytes]


class Document(msgspec.Struct, tag=True, frozen=True):
    """Make the OpenAPI document of the types, at a group and version where it is of one."""

    form: Literal["swagger", "swagger-protobuf", "v3"]
    group: str = ""
    version: str = ""


Task = Draft | Change | Finish | Render | Check | Document
NOTHING = Finish(b"")


class Job(msgspec.Struct, frozen=True):
    """One task, with what it must know of the request it is done for. Most are about one type."""

    types: list[TypeRef]
    info: RequestInfo
    query: str
    headers: dict[str, str]
    body: bytes
    options: WriteOptions
    task: Task


class Done(msgspec.Struct, tag=True):
    """How a task ended well. Which members are set depends on the task."""

    text: bytes = b""
    old: bytes = b""
    # The fields that managers own, which are left out of ``text`` and ``old``: there are as many
    # as there are fields, and admission has no use for them.
    owned: bytes = b""
    # The object is as desired, or as stored, already.
    unchanged: bool = False
    # A name was generated, and another would do as well.
    generated: bool = False
    # The request names the version it changes.
    pinned: bool = False
    # What a check stumbled over in an object that is not of its form.
    tripped: str = ""
    warnings: list[str] = []
    cpu_seconds: float = 0.0
    # The worker ends after this answer; as in ``Refused``.
    spent: bool = False


class Refused(msgspec.Struct, tag=True):
    """A task that ended with an answer other than success: its Status and headers."""

    code: int
    status: dict[str, Any]
    headers: dict[str, str] = {}
    warnings: list[str] = []
    cpu_seconds: float = 0.0
    spent: bool = False


class Missing(msgspec.Struct, tag=True):
    """The worker does not know these families: send their content with the task."""

    keys: list[str] = []
    spent: bool = False


Result = Done | Refused | Missing

_encoder: Final = msgspec.msgpack.Encoder()
_jobs: Final = msgspec.msgpack.Decoder(Job)
_results: Final[msgspec.msgpack.Decoder[Result]] = msgspec.msgpack.Decoder(Result)


def encode(message: Job | Result) -> bytes:
    """Return *message* as bytes."""
    return _encoder.encode(message)


def decode_job(text: bytes) -> Job:
    """Return the job that *text* is."""
    return _jobs.decode(text)


def decode_result(text: bytes) -> Result:
    """Return the result that *text* is."""
    return _results.decode(text)
