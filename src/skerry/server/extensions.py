"""What this server offers beyond Kubernetes, and how clients find it.

``GET /extensions`` below any cluster names what there is. A server that knows nothing of it says
404 (or 403 to those who may not look), which clients read as "ordinary Kubernetes". Nothing of
this is a resource type: programs that list whatever discovery names are not bothered.

A right to a path of an extension grants nothing by itself: whatever is asked for through it is
authorized again, piece by piece, as if it had been asked for alone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from skerry.api.errors import MethodNotAllowed, NotFound, UnsupportedMediaType
from skerry.server.catalogue import TypeSet
from skerry.server.codec import dump
from skerry.server.http.message import Answer, Request, Response
from skerry.server.user import User

ROOT = "/extensions"
# What bodies are sent as. A page in a browser cannot send it elsewhere without being asked first,
# as it could text or a form.
MEDIA_TYPE = "application/json"
WATCH = f"{ROOT}/v1/watch"
BATCH = f"{ROOT}/v1/batch"
ATOMIC_BATCH = f"{ROOT}/v1/atomic-batch"
# What is offered in views, too: requests that each find their own way there.
IN_VIEWS = frozenset((ROOT, ATOMIC_BATCH))
# Of the whole server rather than of a cluster, and for its administrators.
KEYS = f"{ROOT}/v1/keys"
CERTIFICATES = f"{ROOT}/v1/certificates"
# The authorities by which the server is recognised, for whoever would renew what they know.
CA_BUNDLE = f"{ROOT}/v1/ca-bundle"
# Of the hub as a whole, for everybody who is recognised: what begins a session of the console, and
# the sessions there are.
CONSOLE_CODES = "/skerry/console/codes"
CONSOLE_SESSIONS = "/skerry/console/sessions"
# No cluster, or all of them: there each type has rules of its own about what can be read.
_NOWHERE = ("", "*")
_NAMES = {"multiplexed-watch": WATCH, "batch": BATCH, "atomic-batch": ATOMIC_BATCH}


@dataclass(frozen=True, slots=True)
class Visit:
    """One request to an extension: in which cluster, by whom, among which types."""

    request: Request
    cluster: str
    user: User
    types: TypeSet


ExtensionHandler = Callable[[Visit], Awaitable[Answer]]


def extension_handlers(
    watch: ExtensionHandler,
    batch: ExtensionHandler,
    atomic_batch: ExtensionHandler,
    offers: Mapping[str, str] = MappingProxyType({}),
) -> Mapping[str, ExtensionHandler]:
    """Return who answers on which path; *offers* are listed and answered elsewhere."""
    document = _document({**_NAMES, **offers})
    posted = {WATCH: watch, BATCH: batch, ATOMIC_BATCH: atomic_batch}
    handlers = {ROOT: document, **{path: _posted(handler) for path, handler in posted.items()}}
    return {path: _in_one_cluster(handler) for path, handler in handlers.items()}


def ca_bundle(bundle: Callable[[], str]) -> ExtensionHandler:
    """Return what answers with the present authorities, PEM; they are no secret."""

    async def handle(visit: Visit) -> Answer:
        if visit.request.method not in ("GET", "HEAD"):
            raise MethodNotAllowed
        return Response(body=bundle().encode(), content_type="application/x-pem-file")

    return handle


def _in_one_cluster(handler: ExtensionHandler) -> ExtensionHandler:
    async def handle(visit: Visit) -> Answer:
        if visit.cluster in _NOWHERE:
            raise NotFound.path()
        return await handler(visit)

    return handle


def _document(names: Mapping[str, str]) -> ExtensionHandler:
    found = [{"name": name, "version": "v1", "path": path} for name, path in names.items()]

    async def handle(visit: Visit) -> Answer:
        if visit.request.method not in ("GET", "HEAD"):
            raise MethodNotAllowed
        return Response(body=dump({"kind": "ExtensionList", "extensions": found}))

    return handle


def _posted(handler: ExtensionHandler) -> ExtensionHandler:
    async def handle(visit: Visit) -> Answer:
        if visit.request.method != "POST":
            raise MethodNotAllowed
        named = visit.request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if named != MEDIA_TYPE:
            raise UnsupportedMediaType(
                f"the content type of an extension is {MEDIA_TYPE}, found {named[:64]!r}"
            )
        return await handler(visit)

    return handle
