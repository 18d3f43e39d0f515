"""How the answer to a request shows objects."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from skerry.server.request.call import Call
from skerry.server.request.options import truth
from skerry.server.response.negotiate import negotiate
from skerry.server.response.representation import Representation


def representation(call: Call, now: Callable[[], datetime]) -> Representation:
    """Return what the Accept header and the query of *call* ask for."""
    request = call.request
    negotiated = negotiate(request.headers.get("accept", ""))
    if not request.query_string:
        return Representation(call.resource, negotiated, now)
    return Representation(
        call.resource,
        negotiated,
        now,
        include_object=request.query.get("includeObject", ""),
        pretty=truth(request.query.get("pretty", "")),
    )
