"""Who used how much of the processor.

One loop serves everybody, so a request that keeps it busy keeps everybody waiting. What requests
took of it, and of worker processes, is charged to whoever asked, in seconds. An account drains
at a steady rate, so a burst is free; whoever has used more than the burst waits until it has
drained to it, and nobody else does. All who are over their burst share one rate between them:
together they never get more than a part of the loop, however many they are.

Charges below a threshold are not made: ordinary requests take a fraction of a millisecond, and
counting those would cost more than it is worth.
"""

from __future__ import annotations

from dataclasses import dataclass

# More accounts than this are not kept; the ones that drained go first.
_MAX_ACCOUNTS = 4096
# So often those over their burst are counted anew: whoever stopped asking drains unseen, and would
# have a share of the rate for ever.
_RECOUNT_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class AccountSettings:
    """How much of the processor one may use."""

    rate: float = 0.5
    """Seconds of the processor per second that all who are over their burst have together."""

    burst: float = 1.0
    """Seconds anybody may use at once before waiting."""

    threshold: float = 0.001
    """Seconds below which a request is not charged; a GET takes a tenth of it."""


class _Account:
    __slots__ = ("level", "seen")

    def __init__(self, now: float) -> None:
        self.level = 0.0
        self.seen = now


class Accounts:
    """What everybody used lately."""

    def __init__(self, settings: AccountSettings | None = None) -> None:
        self.settings = settings or AccountSettings()
        self._accounts: dict[str, _Account] = {}
        # Those over their burst when they were last asked for; usually nobody. Looking here first
        # costs a request nothing.
        self.over: set[str] = set()
        self._recounted = 0.0

    def charge(self, name: str, seconds: float, now: float) -> None:
        """Note that *name* used *seconds*."""
        if self.over:
            self._recount(now)
        account = self._drained(name, now)
        if account is None:
            if len(self._accounts) >= _MAX_ACCOUNTS:
                self._make_room(now)
            account = self._accounts[name] = _Account(now)
        account.level += seconds
        if account.level > self.settings.burst:
            self.over.add(name)

    def delay(self, name: str, now: float) -> float:
        """Return how many seconds *name* must wait before its next request; usually none."""
        if name not in self.over:
            return 0.0
        self._recount(now)
        account = self._drained(name, now)
        if account is None or account.level <= self.settings.burst:
            return 0.0
        return (account.level - self.settings.burst) / self._rate()

    def _recount(self, now: float) -> None:
        if now - self._recounted >= _RECOUNT_SECONDS:
            self._recounted = now
            for name in list(self.over):
                self._drained(name, now)

    def _rate(self) -> float:
        return self.settings.rate / max(1, len(self.over))

    def _drained(self, name: str, now: float) -> _Account | None:
        account = self._accounts.get(name)
        if account is None:
            return None
        account.level -= (now - account.seen) * self._rate()
        account.seen = now
        if account.level <= self.settings.burst:
            self.over.discard(name)
        if account.level <= 0:
            del self._accounts[name]
            return None
        return account

    def _make_room(self, now: float) -> None:
        """Forget the accounts that drained; if none did, the emptier half of them."""
        for name in list(self._accounts):
            self._drained(name, now)
        if len(self._accounts) >= _MAX_ACCOUNTS:
            by_level = sorted(self._accounts, key=lambda name: self._accounts[name].level)
            for name in by_level[: _MAX_ACCOUNTS // 2]:
                del self._accounts[name]
                self.over.discard(name)
