"""What was learnt of a server, shared by all clients on one transport.

Each fact is asked for once. All informers of a process begin in the same moment, and questions of
their own would open connections of their own, which the server then has to hold for everyone.
When a question fails it has failed for all who wait for its answer: asked again by each of them,
one after the other, it would fail as often, and each time take as long.

That a server cannot be reached is a fact, too. Whoever could not connect waits ever longer, and
those of a server that was away for a minute would wait for another one when it is there again; so
they wait until it has answered anybody.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from skerry.api.errors import ApiError, Forbidden, MethodNotAllowed, NotFound
from skerry.api.objects import Object
from skerry.kit.clock import Clock
from skerry.kit.ids import IdSource
from skerry.runtime.transport import TransportError

# A hundred informers of one process come back to a server within this time, not in one moment.
_SPREAD_SECONDS = 1.0

Ask = Callable[[], Awaitable[Object]]


@dataclass(slots=True)
class ServerFacts:
    """See the module's text; None stands for what is not known."""

    version: Mapping[str, str] | None = None
    streaming_lists: bool | None = None
    # Paths of what the server offers beyond Kubernetes, by name.
    extensions: Mapping[str, str] | None = None
    # Over how many seconds its clients are to spread when they come back to it; 0: none was named.
    return_seconds: float = 0.0
    # Taken while a whole state is read, by clients that share a loop with the server; None: as many
    # are read at once as are asked for.
    reading: asyncio.Semaphore | None = None
    # Questions under way, by name.
    _questions: dict[str, asyncio.Future[Object]] = field(default_factory=dict, repr=False)
    # Those who wait for the server to be there again.
    _waiting: set[asyncio.Future[None]] = field(default_factory=set, repr=False)

    async def known_version(self, ask: Ask) -> Mapping[str, str]:
        """Return the version, having asked for it if need be."""
        if self.version is None:
            self.version = await self._answered("version", ask)
        return self.version

    async def known_extensions(self, ask: Ask, *, again: bool = False) -> Mapping[str, str]:
        """Return the paths of what the server offers beyond Kubernetes, by name.

        With *again* it is asked though it has said so before; that counts until it has answered.
        """
        if self.extensions is None or again:
            try:
                self.extensions = _paths(await self._answered("extensions", ask))
            except (MethodNotAllowed, NotFound):
                self.extensions = {}  # an ordinary server
            except Forbidden:
                return {}  # so says an ordinary server too, or ours until we are let in
        return self.extensions

    async def _answered(self, name: str, ask: Ask) -> Object:
        """Return the answer to a question, or raise why there is none, to all who want it."""
        while (question := self._questions.get(name)) is not None:
            await asyncio.wait([question])
            if not question.cancelled():
                return question.result()
        question = self._questions[name] = asyncio.get_running_loop().create_future()
        try:
            answer = await ask()
        except (ApiError, TransportError) as error:
            question.set_exception(error)
            question.exception()  # perhaps nobody else wants to know
            raise
        else:
            question.set_result(answer)
            return answer
        finally:
            question.cancel()  # whoever asked did not stay for the answer: another one asks
            del self._questions[name]

    # Being there.

    def heard(self) -> None:
        """Note that the server has answered somebody."""
        waiting, self._waiting = self._waiting, set()
        for each in waiting:
            if not each.done():
                each.set_result(None)

    def return_delay(self, ids: IdSource, limit: float = math.inf) -> float:
        """Return a time within *limit* to wait, so that not all who lost it return at once."""
        return min(self.return_seconds, limit) * ids.fraction()

    async def returned(self, clock: Clock, ids: IdSource, seconds: float) -> None:
        """Wait for *seconds*, or until the server has answered anybody and a moment has passed."""
        heard = asyncio.get_running_loop().create_future()
        self._waiting.add(heard)
        try:
            async with asyncio.TaskGroup() as tasks:
                waiting = tasks.create_task(clock.sleep(seconds))
                heard.add_done_callback(lambda _: waiting.cancel())
        finally:
            self._waiting.discard(heard)
        if heard.done():
            await clock.sleep(min(seconds, _SPREAD_SECONDS) * ids.fraction())


def _paths(answer: Object) -> dict[str, str]:
    return {each["name"]: each["path"] for each in answer.get("extensions") or ()}
