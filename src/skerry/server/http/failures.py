"""A bug met while serving: logged in full for ourselves, named in few words to the client."""

from __future__ import annotations

from skerry.api.errors import InternalError
from skerry.kit.log import Logger
from skerry.server.http.encoding import error_response
from skerry.server.http.message import Request, Response

log = Logger("http")


def failure(request: Request, error: Exception) -> Response:
    """Note a bug in full for ourselves and say little of it to the client."""
    log.error(
        "request failed",
        method=request.method,
        path=request.path,
        error=error,
        at=where(error),
    )
    text = "Internal error occurred: the request could not be served"
    return error_response(InternalError(text))


def where(error: BaseException) -> str:
    """Return the innermost place of *error*, enough to find the bug; never sent to clients."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return ""
    return f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
