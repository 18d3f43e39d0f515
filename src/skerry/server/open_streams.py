"""Streams that are open, so that a right taken away ends what it had allowed.

A watch is authorized when it begins and may go on for an hour. When the rights in its cluster
change it is asked again whether it would still be allowed; when its ServiceAccount goes, it goes
with it. A stream of several parts, each with a right of its own, is asked to look for itself.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

from skerry.server.access import Attributes, Authorizer
from skerry.server.http.message import Sender
from skerry.server.security.authorization import is_administrator
from skerry.server.user import User

Run = Callable[[Sender], Awaitable[None]]
_CREDENTIAL = "authentication.kubernetes.io/credential-id"
# Streams asked at one turn of the loop, and what one of several parts counts as. Where rights are
# long to look through the turn ends sooner.
_TURN_COST = 500
_SHARED_COST = 20
_TURN_SECONDS = 0.005
# Somebody, and what they must be allowed to do.
Right = tuple[User, Attributes]


class _Held:
    """One open stream: by which rights, and the task that runs it."""

    __slots__ = ("_task", "recheck", "revoked", "rights")

    def __init__(self, rights: Sequence[Right], recheck: Callable[[], None] | None) -> None:
        self.rights = rights
        self.recheck = recheck
        self.revoked = False
        self._task = asyncio.current_task()

    def end(self) -> None:
        if self._task is not None and not self.revoked:
            self.revoked = True
            self._task.cancel()

    def settle(self) -> None:
        """Take back the cancellation that ended the stream: the connection goes on."""
        if self._task is not None:
            self._task.uncancel()


class OpenStreams:
    """Every open stream of a server."""

    def __init__(self, authorizer: Authorizer, now: Callable[[], float] = time.thread_time) -> None:
        self._authorizer = authorizer
        self._now = now
        self._held: dict[_Held, None] = {}
        # Those that are still to be asked, and whether all are to be asked once more.
        self._unasked: list[_Held] = []
        self._again = False

    def guarded(
        self,
        rights: Sequence[Right],
        run: Run,
        recheck: Callable[[], None] | None = None,
    ) -> Run:
        """Return *run*, to be ended early when one of *rights* no longer holds.

        *recheck* is called when rights have changed and the stream as such is still allowed.
        """

        async def guarded(sender: Sender) -> None:
            held = _Held(rights, recheck)
            self._held[held] = None
            try:
                await run(sender)
            except asyncio.CancelledError:
                if not held.revoked:
                    raise
                held.settle()
            finally:
                self._held.pop(held, None)

        return guarded

    def recheck(self) -> None:
        """End the streams that would no longer be allowed; rights have changed.

        Of very many streams the first are asked at once and the others in turns with whatever
        else there is to do. Rights that change meanwhile have all of them asked again.
        """
        if self._unasked:
            self._again = True
            return
        self._unasked = list(self._held)
        self._ask_some()

    def _ask_some(self) -> None:
        cost = 0
        until = self._now() + _TURN_SECONDS
        while self._unasked and cost < _TURN_COST and (not cost or self._now() < until):
            held = self._unasked.pop()
            if held not in self._held:
                continue
            cost += 1 if held.recheck is None else _SHARED_COST
            if not all(self._authorizer.authorize(*right).allowed for right in held.rights):
                held.end()
            elif held.recheck is not None:
                held.recheck()
        if self._unasked:
            asyncio.get_running_loop().call_soon(self._ask_some)
        elif self._again:
            self._again = False
            self.recheck()

    def end_user(self, cluster: str, name: str) -> None:
        """End every stream of a user in a cluster; its credentials no longer hold."""
        for held in list(self._held):
            user, attributes = held.rights[0]
            if user.name == name and attributes.cluster == cluster:
                held.end()

    def end_credentials(self, form: str) -> None:
        """End every stream that began with a credential of a form, such as ``X509SHA256=``.

        Whoever still has one that holds opens it again.
        """
        for held in list(self._held):
            user, _ = held.rights[0]
            if any(each.startswith(form) for each in user.extra.get(_CREDENTIAL, ())):
                held.end()

    def end_cluster(self, cluster: str) -> None:
        """End every stream in a cluster but those of the hub's administrators.

        Whoever is still let in opens it again; a stream may have begun with a credential that no
        longer holds, which the authorizer is not shown.
        """
        for held in list(self._held):
            user, attributes = held.rights[0]
            if attributes.cluster == cluster and not is_administrator(user):
                held.end()
