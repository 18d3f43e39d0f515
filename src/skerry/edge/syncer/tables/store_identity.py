"""Whether the hub that answers is the hub we know.

Our hubs name their store on every answer. ``WitnessTransport`` reads that name before anyone
reads the answer's content, so by the time something is found to be absent it is already known
whose absence it is. A hub that names no store (a real kcp) is known by the UID of the SyncerConfig
instead: a hub that was replaced has another one, or none.

The first store ever met is trusted. Another one later is not, until a person accepts it or it
turns out to want everything that was placed, in which case nothing hangs on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from skerry.api.edge import ACCEPT_STORE_IDENTITY
from skerry.edge.syncer.tables.sync_records import SyncRecords
from skerry.kit.log import Logger
from skerry.kit.signal import Signal
from skerry.runtime.transport import Transport
from skerry.runtime.wrapping import WrappedTransport

HEADER = "x-skerry-store-identity"
_FACT = "store"

_log = Logger("syncer-trust")


class Trust:
    """The store we know, and the one that answers."""

    def __init__(self, records: SyncRecords) -> None:
        self._records = records
        self._named = False
        # Sent when another store answers, or another one is trusted.
        self.changed = Signal[[]]()
        self.known: str = records.fact(_FACT) or ""
        self.current = ""

    @property
    def trusted(self) -> bool:
        """Whether what the hub says now comes from the store we know."""
        return bool(self.current) and self.current == self.known

    def saw_header(self, identity: str) -> None:
        """Take note of the name an answer bore."""
        self._named = True
        self._saw(identity)

    def saw_config(self, uid: str) -> None:
        """Take note of the SyncerConfig's UID, which stands in where stores have no names."""
        if not self._named:
            self._saw(f"config:{uid}")

    def accept(self) -> None:
        """Trust the store that answers now."""
        if not self.current or self.trusted:
            return
        if self.known:
            _log.info("accepted another store", v=0, store=self.current, before=self.known)
        self.known = self.current
        self._records.set_fact(_FACT, self.known)
        self.changed.send()

    def question(self, edge: str) -> str:
        """Return what a person is to be asked about the *edge*; empty when there is nothing."""
        if not self.current or self.trusted:
            return ""
        return (
            f"the hub answers from store {self.current}, everything here was placed from "
            f"{self.known}; nothing is deleted at this edge until a person accepts that: skerry "
            f"edge accept-store {edge}, which annotates the SyncerConfig with "
            f"{ACCEPT_STORE_IDENTITY}={self.current}"
        )

    def _saw(self, identity: str) -> None:
        if not identity or identity == self.current:
            return
        self.current = identity
        if not self.known:
            self.accept()
        elif identity != self.known:
            _log.error("the hub's store is another one", store=identity, known=self.known)
        self.changed.send()


class WitnessTransport(WrappedTransport):
    """A transport that tells which store each answer came from."""

    def __init__(self, inner: Transport) -> None:
        super().__init__(inner)
        self._handler: Callable[[str], None] | None = None

    def report_to(self, handler: Callable[[str], None]) -> None:
        """Call *handler* from now on, instead of the one before."""
        self._handler = handler

    def seen(self, headers: Mapping[str, str]) -> None:
        identity = headers.get(HEADER, "")
        if identity and self._handler is not None:
            self._handler(identity)
