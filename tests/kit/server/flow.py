"""What tests of flow control share."""

from __future__ import annotations

import contextlib

from skerry.server.flow import FairFlow
from skerry.server.request.info import RequestInfo
from skerry.server.user import User


def admitted(
    flow: FairFlow, info: RequestInfo, user: User
) -> contextlib.AbstractAsyncContextManager[None]:
    """Return a context to run a request in, also where nothing is limited."""
    return flow.admitted(info, user) or contextlib.nullcontext()
