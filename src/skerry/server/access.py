"""What the engine asks of security: who is this, may they, and now.

The engine knows these protocols; ``server.security`` and ``server.flow`` fulfil them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from typing import Protocol

import msgspec

from skerry.api.errors import ApiError
from skerry.server.http.message import Headers, Request
from skerry.server.request.info import RequestInfo
from skerry.server.user import User


class Attributes(msgspec.Struct, frozen=True, gc=False):
    """An action that may or may not be allowed. For paths that are no resources, ``path`` is set
    and the rest is empty."""

    cluster: str
    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""
    # The one node whose pods a list or watch selects.
    selected_node: str = ""
    # In the name of a permission claim on a type of this identity: whoever binds the claiming
    # export has agreed to it, so that only policies of the type's own exporters stand against it.
    claimed: str = ""
    # Asked by the server itself about somebody's right in another cluster: what RBAC there says,
    # without the right to enter it and without policies of exporters.
    deep: bool = False


class Decision(msgspec.Struct, frozen=True, gc=False):
    """Whether an action is allowed, and why (for audit, and for reviews)."""

    allowed: bool
    reason: str = ""


class Authenticator(Protocol):
    """Finds out who is asking."""

    async def authenticate(self, request: Request, cluster: str) -> User:
        """Return the user; raises Unauthorized for credentials that do not hold."""

    def knows(self, request: Request, cluster: str) -> bool:
        """Tell whether the credentials of *request* cost nothing to check, or were good lately."""


class Authorizer(Protocol):
    """Decides what users may do."""

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        """Decide; never raises for a mere denial."""


class Flow(Protocol):
    """Limits how many requests run at once, fairly between users."""

    def admitted(
        self, info: RequestInfo, user: User
    ) -> contextlib.AbstractAsyncContextManager[None] | None:
        """Return a context to run the request in; entering may wait, or raise TooManyRequests.

        None: the request is exempt, and run as it is.
        """

    suspects: Collection[str]
    """Whom ``refusal_of`` is worth asking about; usually nobody."""

    def headers(self, info: RequestInfo, user: User) -> Headers:
        """Return what an answer says of the class its request falls to."""

    def refusal_of(self, address: str) -> ApiError | None:
        """Return why no new credentials from *address* are looked into now; usually None."""

    def check_watches(self, user: User, count: int) -> None:
        """Raise TooManyRequests when *user* may not open *count* more watches."""
