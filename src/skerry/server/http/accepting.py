"""Taking connections in, at a pace that leaves the loop to others.

A TLS handshake costs a millisecond, and a connection that never begins one costs memory until it
is given up. So a few connections are taken at each turn of the loop, so many handshakes are under
way at a time and no more, and so many connections of one address may be without valid credentials.
Whoever does not fit waits, or, beyond their address's share, is closed before anything is spent on
them.

How many handshakes may be under way depends on how long turns of the loop are (``Pace``). Those of
peers nearby all go on at the same turn, and whoever wants anything else, which takes some turns
even of those who want little, waits for all of them; those of peers far away seldom meet.

When more come than can be served, as all edges of a hub that was away, the one who came last is
the first to be served. Somebody has to wait long, whatever the order: in order of arrival it would
be everybody, people and controllers among them; so it is those who had to wait already. A client
waits some seconds for its handshake, then leaves and comes again. A handshake for one who left
would use up what the present ones wait for, so those are only closed. Before that order comes
another: addresses take turns (``arrivals``), for whoever comes and says nothing comes last, too.

Processes that share a listening socket take only what they can begin at once. What cannot be begun
stays in the kernel's queue for the others; what nobody took for a moment is taken to wait here,
where it has its turn among all.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
import ssl
import time
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from skerry.kit.log import Logger
from skerry.server.http.arrivals import Arrival, Arrivals
from skerry.server.http.settings import HttpSettings

log = Logger("http")

# Handshakes begun at one turn of the loop: a few milliseconds.
_AT_A_TURN = 4
# Connections taken at one turn of the loop: a millisecond.
_TAKEN_AT_A_TURN = 64
# Somebody's first request takes five turns of the loop, connecting included: 50 ms of these.
_LONG_TURN_SECONDS = 0.01
# Under way however long turns are. Nearby they take five milliseconds of each turn together, and
# others make turns longer; far away they are some dozens a second.
_MIN_HANDSHAKES = 12
# Errors of one connection, not of the listening socket.
_PASSING = frozenset((errno.ECONNABORTED, errno.EPERM, errno.EPROTO, errno.EINTR))
# Without descriptors there is nothing to do but wait for some to be closed.
_EXHAUSTED = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))
_EXHAUSTED_SECONDS = 1.0
# The first byte of what Linux tells of a connection is its state.
_ESTABLISHED = 1


class Strangers:
    """How many connections of each address are without valid credentials."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._counts: dict[str, int] = {}

    def admit(self, address: str) -> bool:
        """Count one more of *address*; False when there are too many."""
        count = self._counts.get(address, 0)
        if count >= self._limit:
            return False
        self._counts[address] = count + 1
        return True

    def leave(self, address: str) -> None:
        """Count one less: it is closed, or no stranger any more."""
        count = self._counts.get(address, 0) - 1
        if count > 0:
            self._counts[address] = count
        else:
            self._counts.pop(address, None)

    def of(self, address: str) -> int:
        return self._counts.get(address, 0)


class Bodies:
    """How much of large bodies is held while they arrive, of everybody and of each sender.

    A sender is a principal once one has shown credentials on a connection, else an address.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.total = 0
        self._held: dict[str, int] = {}

    def take(self, sender: str, size: int) -> bool:
        """Hold *size* more bytes for *sender*; False when that is too much."""
        held = self._held.get(sender, 0) + size
        if self.total + size > self._limit or held > self._limit // 4:
            return False
        self._held[sender] = held
        self.total += size
        return True

    def give_back(self, sender: str, size: int) -> None:
        self.total -= size
        held = self._held.get(sender, 0) - size
        if held > 0:
            self._held[sender] = held
        else:
            self._held.pop(sender, None)


class Pace:
    """How many handshakes may be under way: fewer when turns of the loop are long.

    What counts is the processor's time. A process that waits for a core has long turns by the
    clock, and fewer handshakes would not make them shorter.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._min = min(limit, _MIN_HANDSHAKES)
        self.allowed = limit

    def note(self, seconds: float) -> None:
        """Take note that a turn took *seconds*."""
        if seconds > _LONG_TURN_SECONDS:
            self.allowed = max(self._min, self.allowed * 3 // 4)
        elif self.allowed < self._limit:
            self.allowed += 1


class Host(Protocol):
    """What taking connections in needs of the server."""

    settings: HttpSettings
    loop: asyncio.AbstractEventLoop
    strangers: Strangers


class Acceptor:
    """Listens on some sockets and makes connections of what arrives."""

    def __init__(
        self,
        host: Host,
        sockets: list[socket.socket],
        tls: ssl.SSLContext | None,
        connect: Callable[[], asyncio.BaseProtocol],
        now: Callable[[], float] = time.thread_time,
    ) -> None:
        """*now* is the processor's time of the loop."""
        self._host = host
        self._now = now
        self._pace = Pace(host.settings.handshakes)
        self._sockets = sockets
        self._tls = tls
        self._connect = connect
        # Each with its address.
        self._handshakes: dict[asyncio.Task[None], str] = {}
        self._arrivals = Arrivals()
        self._turn: asyncio.Handle | None = None
        # Set while a turn of the loop is being measured.
        self._measuring: asyncio.Handle | None = None
        self._listening = False
        self._retry: asyncio.TimerHandle | None = None
        # Set while connections are left to other processes.
        self._leaving: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def handshakes(self) -> int:
        """How many handshakes are under way."""
        return len(self._handshakes)

    @property
    def waiting(self) -> int:
        """How many connections wait for their handshake to begin."""
        return len(self._arrivals)

    def start(self) -> None:
        """Begin to take connections in."""
        if self._listening or self._closed:
            return
        self._listening, self._retry = True, None
        for each in self._sockets:
            self._host.loop.add_reader(each.fileno(), self._arrived, each)

    def _pause(self) -> None:
        if self._listening:
            self._listening = False
            for each in self._sockets:
                self._host.loop.remove_reader(each.fileno())

    def _arrived(self, listening: socket.socket) -> None:
        if not self._host.settings.others_seconds:
            self._take(listening, _TAKEN_AT_A_TURN)
        elif free := self._free():
            # Others may begin the rest at the same time.
            self._take(listening, min(free, _AT_A_TURN))
        else:
            self._leave_to_others()
        self._go_on()

    def _free(self) -> int:
        """Return how many more connections would not have to wait."""
        return max(0, self._pace.allowed - len(self._handshakes) - len(self._arrivals))

    def _leave_to_others(self) -> None:
        """Take nothing for a moment; what is still there then is left to nobody."""
        self._pause()
        if self._leaving is None:
            seconds = self._host.settings.others_seconds
            self._leaving = self._host.loop.call_later(seconds, self._take_what_is_left)

    def _take_what_is_left(self) -> None:
        self._leaving = None
        if self._retry is None:
            for each in self._sockets:
                self._take(each, _TAKEN_AT_A_TURN)
        self._go_on()

    def _take(self, listening: socket.socket, limit: int) -> None:
        """Take up to *limit* connections."""
        for _ in range(limit):
            if not self._has_room():
                self._pause()
                break
            try:
                taken, name = listening.accept()
            except BlockingIOError:
                break
            except OSError as error:
                self._failed(error)
                break
            address = str(name[0]) if isinstance(name, tuple) else ""
            self._arrivals.add(taken, address, self._host.loop.time())

    def _has_room(self) -> bool:
        limit = max(1, self._host.settings.waiting)
        if len(self._arrivals) >= limit:
            for each in self._arrivals.oldest(_TAKEN_AT_A_TURN):
                if self._has_given_up(each):
                    self._arrivals.remove(each)
                    each.taken.close()
        return len(self._arrivals) < limit

    def _has_given_up(self, arrival: Arrival) -> bool:
        """Tell whether there is no use in a handshake any more. One that waited for as long as a
        handshake may take waits for nothing better, and others cannot even come in."""
        waited = self._host.loop.time() - arrival.since
        return waited > self._host.settings.header_seconds or _has_left(arrival.taken)

    def _go_on(self) -> None:
        """Begin what can be begun, and listen where there is room then."""
        self._serve()
        if self._listening or self._retry is not None or not self._has_room():
            return
        if self._leaving is None or self._free():
            self.start()

    def _serve(self) -> None:
        """Begin some handshakes, and the next ones at another turn of the loop."""
        begun = 0
        if self._handshakes and self._measuring is None:
            self._measuring = self._host.loop.call_soon(self._measured, self._now())
        while self._arrivals.may_begin(self._pace.allowed):
            if begun == _AT_A_TURN:
                if self._turn is None:
                    self._turn = self._host.loop.call_soon(self._next_turn)
                return
            _, taken, address, _ = self._arrivals.pop()
            begun += self._begin(taken, address)

    def _measured(self, began: float) -> None:
        """End the measurement of a turn; what came of it is for the next handshake to heed."""
        self._measuring = None
        self._pace.note(self._now() - began)

    def _next_turn(self) -> None:
        self._turn = None
        self._go_on()

    def _failed(self, error: OSError) -> None:
        if error.errno in _EXHAUSTED:
            log.warning("cannot take connections in", error=error)
            self._pause()
            self._retry = self._host.loop.call_later(_EXHAUSTED_SECONDS, self.start)
        elif error.errno not in _PASSING and not self._closed:
            log.error("cannot take connections in", error=error)

    def _begin(self, taken: socket.socket, address: str) -> bool:
        """Begin a handshake, unless nobody is there or too many of that address are."""
        left = self._tls is not None and _has_left(taken)
        if left or not self._host.strangers.admit(address):
            taken.close()
            return False
        taken.setblocking(False)
        if taken.family in {socket.AF_INET, socket.AF_INET6}:
            # As the event loops do: an answer in two writes must not wait for the peer.
            taken.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        task = self._host.loop.create_task(self._handshake(taken, address))
        self._handshakes[task] = address
        self._arrivals.begin(address)
        task.add_done_callback(self._ended)
        return True

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._arrivals.end(self._handshakes.pop(task))
        if not self._closed:
            self._go_on()

    async def _handshake(self, taken: socket.socket, address: str) -> None:
        """Make a connection of a socket; from then on the connection counts as a stranger."""
        settings = self._host.settings
        made: Coroutine[Any, Any, Any] = self._host.loop.connect_accepted_socket(
            self._connect,
            taken,
            ssl=self._tls,
            # A handshake that does not come is a half-open connection.
            ssl_handshake_timeout=settings.header_seconds if self._tls else None,
            # A peer that does not answer our goodbye holds nothing up.
            ssl_shutdown_timeout=settings.linger_seconds if self._tls else None,
        )
        try:
            await made
        except (OSError, ssl.SSLError, TimeoutError) as error:
            log.debug("handshake failed", peer=address, error=error)
            self._host.strangers.leave(address)
            taken.close()
        except asyncio.CancelledError:
            self._host.strangers.leave(address)
            taken.close()
            raise

    async def close(self) -> None:
        """Take nothing more in, and give up the handshakes under way."""
        self._closed = True
        self._pause()
        for turn in (self._turn, self._measuring, self._retry, self._leaving):
            if turn is not None:
                turn.cancel()
        for each in self._sockets:
            each.close()
        for arrival in list(self._arrivals):
            self._arrivals.remove(arrival)
            arrival.taken.close()
        for task in list(self._handshakes):
            task.cancel()
        for task in list(self._handshakes):
            with contextlib.suppress(asyncio.CancelledError):
                await task


def _has_left(taken: socket.socket) -> bool:
    """Tell whether the peer has closed its end, where the system says so."""
    if taken.family not in {socket.AF_INET, socket.AF_INET6} or not hasattr(socket, "TCP_INFO"):
        return False
    return taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] != _ESTABLISHED


async def listening_sockets(address: str, port: int, backlog: int) -> list[socket.socket]:
    """Return sockets that listen at every address of *address*, which may be a name."""
    found = await asyncio.get_running_loop().getaddrinfo(
        address or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    made: list[socket.socket] = []
    try:
        for family, kind, protocol, _, where in dict.fromkeys(found):
            each = socket.socket(family, kind, protocol)
            made.append(each)
            each.setblocking(False)
            if os.name == "posix":
                each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                each.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            each.bind(where)
            each.listen(backlog)
            if not port:
                break  # any free port is one port
    except OSError:
        for each in made:
            each.close()
        raise
    return made
