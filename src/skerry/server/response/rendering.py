"""How the answer to a request shows objects."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from skerry.server.http.message import Request
from skerry.server.request.call import Call
from skerry.server.request.info import truth
from skerry.server.response.negotiate import negotiate, negotiate_without_tables
from skerry.server.response.representation import Representation


def representation(call: Call, now: Callable[[], datetime]) -> Representation:
    """Return what the Accept header and the query of *call* ask for."""
    request = call.request
    accept = request.headers.get("accept", "")
    if not request.query_string:
        return Representation(call.resource, negotiate(accept), now)
    agree = negotiate_without_tables if _streams_state(request) else negotiate
    return Representation(
        call.resource,
        agree(accept),
        now,
        include_object=request.query.get("includeObject", ""),
        pretty=truth(request.query.get("pretty")),
    )


def _streams_state(request: Request) -> bool:
    """Tell whether a list is asked for as a watch: who reads one puts it together from objects."""
    query = request.query
    wanted = ("watch", "sendInitialEvents", "allowWatchBookmarks")
    return all(truth(query.get(name)) for name in wanted)
