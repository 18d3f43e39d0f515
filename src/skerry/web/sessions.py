"""Who is signed in to the console: codes that are good once, and the sessions they begin.

A session is a credential that the server keeps for a browser. It is asked for whom it stands every
time somebody uses the session, so a session ends with its credential: a token that lapses, an
account that is deleted, a certificate that is revoked. What a browser holds are 256 random bits;
the server keeps their digest only. Sessions outlive the server's process (``session_files``): one
that was kept sleeps until its browser comes back with what opens it. A credential that is renewed
while somebody looks is kept anew, with the key that was made of those bits when they were last
shown; it is in memory for as long as the credential itself.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from skerry.api.errors import Forbidden, TooManyRequests, Unauthorized
from skerry.kit.clock import Clock
from skerry.kit.ids import IdSource
from skerry.kit.rate import RateLimit
from skerry.server.user import User
from skerry.web.session_files import (
    NONCE_BYTES,
    SessionFiles,
    SessionRecord,
    sealed,
    sealing_key,
    unsealed,
)

# As long as a shift, and no longer than somebody is away from a screen.
SESSION = timedelta(hours=8)
IDLE = timedelta(minutes=30)
# A browser starts within seconds; whatever reads the code later is not it.
CODE = timedelta(seconds=60)
_SECRET_BYTES = 32
_MAX_CODES_PER_USER, _MAX_CODES = 16, 4096
_MAX_SESSIONS_PER_USER, _MAX_SESSIONS = 32, 10_000
# A person who types and scrolls sends some ten frames a second; who sends more, in however many
# tabs, is made to wait.
_FRAMES_PER_SECOND, _FRAMES_BURST = 20, 100
# No secret of ours is longer; the text of a stranger is not hashed to find that out.
_MAX_SECRET_LENGTH = 64

_REFUSED_CODE = "the code is not good: it was used already, is older than a minute, or is no code"


class Credential(Protocol):
    """What somebody has shown, and can be asked about again."""

    async def user(self) -> User:
        """Return whom the credential stands for now; raises Unauthorized once for nobody."""

    def packed(self) -> bytes:
        """Return the credential to be kept, as ``Kept.unpacked`` takes it; another once renewed."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Where sessions are kept, and what makes credentials of what was kept."""

    files: SessionFiles
    unpacked: Callable[[bytes], Credential]


@dataclass(frozen=True, slots=True)
class _Sleeping:
    """The credential of a session whose browser has not come back since the server started."""

    record: SessionRecord

    async def user(self) -> User:
        raise Unauthorized("its browser has not come back")


@dataclass(slots=True, eq=False)
class Session:
    """One browser that is signed in."""

    id: str
    digest: bytes
    user: User
    credential: Credential | _Sleeping
    address: str
    began: datetime
    ends: datetime
    used: float
    # Called once, with a reason, when the session ends: open connections end with it.
    closing: set[Callable[[str], None]] = field(default_factory=set)
    # What its file is sealed with, and what is sealed in it.
    key: bytes = field(default=b"", repr=False)
    packed: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class _Code:
    credential: Credential
    principal: str
    until: float


class Sessions:
    """Every code and every session of a hub."""

    def __init__(
        self,
        clock: Clock,
        ids: IdSource,
        ended: Callable[[Session, str], None],
        kept: Kept | None = None,
    ) -> None:
        """*ended* is called with each session that ends, and why; *kept* ones go on."""
        self._clock = clock
        self._ids = ids
        self._ended = ended
        self._kept = kept
        self._noted = clock.monotonic()
        self._codes: dict[bytes, _Code] = {}
        self._sessions: dict[bytes, Session] = {}
        self._rates: dict[str, RateLimit] = {}
        for record, used in kept.files.read() if kept is not None else ():
            session = self._asleep(record, used)
            self._sessions[session.digest] = session
        self.expire()

    def issue(self, user: User, credential: Credential) -> tuple[str, datetime]:
        """Return a code that begins one session of *user*, and until when it is good."""
        now = self._clock.monotonic()
        self._codes = {key: each for key, each in self._codes.items() if each.until > now}
        own = sum(1 for each in self._codes.values() if each.principal == user.principal)
        if own >= _MAX_CODES_PER_USER or len(self._codes) >= _MAX_CODES:
            raise TooManyRequests("too many codes wait to be used; each is good for a minute", 60)
        code = self._secret()
        until = now + CODE.total_seconds()
        self._codes[_digest(code)] = _Code(credential, user.principal, until)
        return code, self._clock.now() + CODE

    async def redeem(self, code: str, address: str) -> tuple[str, Session]:
        """Begin the session that *code* stands for; Unauthorized when it is not good, or no more.

        A code is spent by being shown, whatever comes of it.
        """
        known = self._codes.pop(_digest(code), None)
        if known is None or known.until <= self._clock.monotonic():
            raise Unauthorized(_REFUSED_CODE)
        user = await known.credential.user()
        if user.principal != known.principal:
            raise Unauthorized("the credential behind the code is another user's by now")
        return self.begin(user, known.credential, address)

    def begin(self, user: User, credential: Credential, address: str) -> tuple[str, Session]:
        """Begin a session of *user*; return what the browser keeps of it."""
        own = [each for each in self._sessions.values() if each.user.principal == user.principal]
        if len(own) >= _MAX_SESSIONS_PER_USER:
            self.end(min(own, key=lambda each: each.used), "there are too many of this user")
        if len(self._sessions) >= _MAX_SESSIONS:
            raise TooManyRequests("too many people are signed in to the console", 60)
        secret, now = self._secret(), self._clock.now()
        session = Session(
            self._ids.uid(),
            _digest(secret),
            user,
            credential,
            address,
            now,
            now + SESSION,
            self._clock.monotonic(),
            key=sealing_key(secret),
        )
        self._sessions[session.digest] = session
        self._keep(session)
        return secret, session

    def _keep(self, session: Session) -> None:
        """Have the file of a session with the credential that it has now."""
        if self._kept is None or isinstance(session.credential, _Sleeping):
            return
        if self._sessions.get(session.digest) is not session:
            # It ended while its credential was asked about.
            return
        packed = session.credential.packed()
        if packed == session.packed:
            return
        session.packed = packed
        shut = sealed(packed, session.key, session.id, self._ids.bytes(NONCE_BYTES))
        self._kept.files.put(_record(session, shut), self._used(session))

    async def find(self, secret: str) -> Session:
        """Return the session a browser shows, used now; Unauthorized when it has ended."""
        session = self._sessions.get(_digest(secret))
        if session is None:
            raise Unauthorized("no session: sign in with skerry console, or paste a token")
        if isinstance(session.credential, _Sleeping):
            self._reopen(session, session.credential.record, sealing_key(secret))
        await self.check(session)
        session.used = self._clock.monotonic()
        return session

    async def check(self, session: Session) -> User:
        """Return whom *session* is good for now; ends it, and says so, when for nobody."""
        reason = self._lapsed(session)
        if not reason:
            try:
                user = await session.credential.user()
            except (Unauthorized, Forbidden):
                # Forbidden: who acted as somebody else may do so no longer.
                reason = "its credential no longer holds"
            else:
                if user.principal == session.user.principal:
                    session.user = user
                    self._keep(session)
                    return user
                reason = "its credential is another user's by now"
        self.end(session, reason)
        raise Unauthorized(f"the session has ended: {reason}")

    def rate(self, session: Session) -> RateLimit:
        """Return what bounds the frames of the user of *session*, whichever tab they are of."""
        known = self._rates.get(session.user.principal)
        if known is None:
            known = RateLimit(per_second=_FRAMES_PER_SECOND, burst=_FRAMES_BURST)
            self._rates[session.user.principal] = known
        return known

    def use(self, session: Session) -> None:
        """Note that somebody does something in *session*."""
        session.used = self._clock.monotonic()

    def end(self, session: Session, reason: str) -> None:
        """End *session* and whatever is open in it; harmless when it has ended."""
        if self._sessions.get(session.digest) is not session:
            return
        del self._sessions[session.digest]
        if self._kept is not None:
            self._kept.files.remove(session.id)
        principals = {each.user.principal for each in self._sessions.values()}
        if session.user.principal not in principals:
            self._rates.pop(session.user.principal, None)
        for close in list(session.closing):
            close(reason)
        self._ended(session, reason)

    def expire(self) -> None:
        """End the sessions whose time is over; somebody calls this now and then."""
        for session in list(self._sessions.values()):
            reason = self._lapsed(session)
            if reason:
                self.end(session, reason)
        self._note_uses()

    def all(self) -> Iterator[Session]:
        """Yield the sessions there are."""
        yield from self._sessions.values()

    def _note_uses(self) -> None:
        """Write down which sessions were used since this was last done."""
        before, self._noted = self._noted, self._clock.monotonic()
        if self._kept is None:
            return
        for session in self._sessions.values():
            if session.used >= before:
                self._kept.files.use(session.id, self._used(session))

    def _used(self, session: Session) -> datetime:
        """Return when somebody last did something in *session*."""
        return self._clock.now() - timedelta(seconds=self._clock.monotonic() - session.used)

    def _asleep(self, record: SessionRecord, used: datetime) -> Session:
        ago = max(0.0, (self._clock.now() - used).total_seconds())
        return Session(
            record.id,
            bytes.fromhex(record.digest),
            User(record.user, home=record.home),
            _Sleeping(record),
            record.address,
            record.began,
            min(record.ends, record.began + SESSION),
            self._clock.monotonic() - ago,
        )

    def _reopen(self, session: Session, record: SessionRecord, key: bytes) -> None:
        packed = unsealed(record, key)
        if packed is None or self._kept is None:
            self.end(session, "what was kept of it cannot be opened")
            raise Unauthorized("the session has ended: what was kept of it cannot be opened")
        session.credential = self._kept.unpacked(packed)
        session.key, session.packed = key, packed

    def _lapsed(self, session: Session) -> str:
        if self._clock.now() >= session.ends:
            return "eight hours are over"
        if self._clock.monotonic() - session.used >= IDLE.total_seconds():
            return "nothing was done for thirty minutes"
        return ""

    def _secret(self) -> str:
        return base64.urlsafe_b64encode(self._ids.bytes(_SECRET_BYTES)).decode().rstrip("=")


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret[:_MAX_SECRET_LENGTH].encode("utf-8", "replace")).digest()


def _record(session: Session, packed: str) -> SessionRecord:
    user = session.user
    return SessionRecord(
        session.id,
        session.digest.hex(),
        user.name,
        user.home,
        session.address,
        session.began,
        session.ends,
        packed,
    )
