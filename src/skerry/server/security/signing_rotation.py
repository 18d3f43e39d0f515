"""Keys that sign, rotated with an overlap: those of ServiceAccount tokens, and authorities.

The new key signs as soon as every live server has it; what the old one has signed is accepted
until a person retires it. Without a record in the store the first key of the file signs.
"""

from __future__ import annotations

import ssl
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from cryptography import x509

from skerry.kit.clock import Clock
from skerry.kit.log import Logger
from skerry.logic.machinery.key_rotation import (
    RotationRefused,
    ServerRecord,
    SigningRecord,
    pending_keys,
    record_key,
    signing_with,
    signing_without_old,
)
from skerry.server.security.encryption_start import KeyMismatch
from skerry.server.security.given_certificate import read_client_authorities, read_given
from skerry.server.security.key_ring import update_record
from skerry.server.security.pki import Authority, open_pki
from skerry.server.security.tls import Shown
from skerry.server.security.tokens import ServiceAccountTokens, SigningKey, read_signing_keys
from skerry.store.base import Store, Write

log = Logger("keys")


async def signing_record(
    store: Store, kind: str, known: Sequence[str], directory: Path, *, alone: bool
) -> SigningRecord | None:
    """Return what the store says of a kind of key, for a server that has the keys *known*.

    A server that lacks the key in use must not sign beside others. One that is alone may: its
    keys were exchanged by hand, and what they were before no longer counts.
    """
    entry = await store.get(record_key(kind))
    if entry is None:
        return None
    record = msgspec.json.decode(entry.value, type=SigningRecord)
    if not known or record.current in known:
        return record
    if not alone:
        raise KeyMismatch(
            f"the servers of this store use {kind} key {record.current}, which {directory} "
            "lacks; copy the folder from a hub that has it"
        )
    log.warning("keys were exchanged by hand; the old ones are forgotten", kind=kind)
    await store.commit([Write(entry.key, None, entry.revision)])
    return None


class SigningRotation(ABC):
    """What both kinds of signing keys have in common; each says how it takes effect."""

    kind = ""

    def __init__(self, store: Store, record: SigningRecord | None) -> None:
        self._store = store
        self._record = record

    @property
    @abstractmethod
    def known(self) -> dict[str, str]:
        """The keys that this server has, by name, with their files."""

    @property
    @abstractmethod
    def current(self) -> str:
        """The name of the key that signs."""

    @abstractmethod
    def _apply(self) -> None:
        """Do as files and record now say."""

    def follow(self, value: bytes | None) -> None:
        self._record = None if value is None else msgspec.json.decode(value, type=SigningRecord)
        try:
            self._apply()
        except (OSError, ValueError, TypeError) as error:
            log.error("keys are not as the store wants them", kind=self.kind, error=error)

    def reload(self) -> None:
        try:
            self._apply()
        except (OSError, ValueError, TypeError) as error:
            raise KeyMismatch(str(error)) from error

    async def use(self, name: str, servers: Sequence[ServerRecord]) -> None:
        if name not in self.known:
            raise RotationRefused(f"this server has no {self.kind} key {name}")
        present = SigningRecord(self.current)
        self._record = await update_record(
            self._store,
            self.kind,
            SigningRecord,
            lambda old: signing_with(self.kind, old or present, name, "", servers),
        )
        self._apply()

    async def drop_old(self, servers: Sequence[ServerRecord]) -> None:
        present = SigningRecord(self.current)
        self._record = await update_record(
            self._store,
            self.kind,
            SigningRecord,
            lambda old: signing_without_old(self.kind, old or present, servers),
        )
        self._apply()

    def status(self, servers: Sequence[ServerRecord]) -> dict[str, Any]:
        record = self._record or SigningRecord(self.current)
        not_new = (self.current, *record.previous, *record.retired)
        return {
            "current": self.current,
            "old": [name for name in self.known if name in record.previous],
            "retired": list(record.retired),
            "pending": pending_keys(self.kind, not_new, servers),
        }

    @property
    def retired(self) -> tuple[str, ...]:
        return () if self._record is None else self._record.retired


class TokenKeys(SigningRotation):
    """The keys of ServiceAccount tokens."""

    kind = "signing"

    def __init__(
        self,
        store: Store,
        record: SigningRecord | None,
        file: Path,
        tokens: ServiceAccountTokens,
        changed: Callable[[], None],
    ) -> None:
        """*changed* is called when tokens that were accepted may no longer be."""
        super().__init__(store, record)
        self._file = file
        self._tokens = tokens
        self._changed = changed
        self._keys: list[SigningKey] = []
        self._accepted: set[str] = set()
        self._apply()

    @property
    def files(self) -> Sequence[Path]:
        return (self._file,)

    @property
    def known(self) -> dict[str, str]:
        return dict.fromkeys((key.id for key in self._keys), "")

    @property
    def current(self) -> str:
        return self._tokens.signer

    def _apply(self) -> None:
        self._keys = read_signing_keys(self._file)
        accepted = [key for key in self._keys if key.id not in self.retired]
        if not accepted:
            raise ValueError(f"{self._file}: every key in it is retired")
        names = [key.id for key in accepted]
        wanted = names[0] if self._record is None else self._record.current
        if wanted not in names:
            log.error("the signing key in use is missing", key=wanted)
            wanted = names[0]
        self._tokens.use(accepted, wanted)
        lost = not self._accepted <= set(names)
        self._accepted = set(names)
        if lost:
            self._changed()


class Authorities(SigningRotation):
    """The certificate authorities of a server, and the certificates it proves itself with."""

    kind = "authority"

    def __init__(
        self,
        store: Store,
        record: SigningRecord | None,
        directory: Path,
        names: Sequence[str],
        clock: Clock,
        given: tuple[Path, Path] | None = None,
        clients: Path | None = None,
        *,
        given_to_all: bool = False,
        proxies: Path | None = None,
    ) -> None:
        """Keep everything in *directory*; *given* are certificate and key that a person gives.

        They are shown to who asks for their names, or *given_to_all*. Authorities in the file
        *clients* vouch for clients, and for nothing else; those in *proxies* for proxies.
        """
        super().__init__(store, record)
        self._clients_file = clients
        self._names = tuple(names)
        self._clock = clock
        self._given_files = given
        self._given_to_all = given_to_all
        # Called whenever a certificate has changed.
        self.listeners: list[Callable[[], None]] = []
        self.pki = open_pki(directory, names, clock, record)
        self._given = None if given is None else read_given(*given)
        self._clients = read_client_authorities(clients)
        self._proxies_file = proxies
        self._proxies = read_client_authorities(proxies)

    @property
    def files(self) -> Sequence[Path]:
        # Not those the server writes itself: two that share a folder would never come to rest.
        own = (self.pki.directory / name for name in ("ca.crt", "ca.key"))
        others = filter(None, (self._clients_file, self._proxies_file))
        return (*own, *(self._given_files or ()), *others)

    @property
    def known(self) -> dict[str, str]:
        return dict.fromkeys(self.pki.known, "")

    @property
    def current(self) -> str:
        return self.pki.current

    @property
    def authority(self) -> Authority:
        """What signs certificates now."""
        return Authority(self.pki.ca, self._clock)

    def bundle(self) -> str:
        """Return the authorities by which this server is recognised now, PEM."""
        given = b"" if self._given is None else self._given.roots
        return (self.pki.bundle + given).decode("ascii")

    @property
    def of_clients(self) -> tuple[x509.Certificate, ...]:
        """The authorities whose client certificates are accepted as they are."""
        given = x509.load_pem_x509_certificates(self._clients) if self._clients else []
        return (*self.pki.authorities, *given)

    @property
    def of_proxies(self) -> tuple[x509.Certificate, ...]:
        """The authorities whose certificates proxies show."""
        return tuple(x509.load_pem_x509_certificates(self._proxies)) if self._proxies else ()

    def client_bundle(self) -> str:
        """Return those authorities, PEM."""
        return (self.pki.bundle + self._clients).decode("ascii")

    def context(self, *, asks: bool = True) -> ssl.SSLContext:
        """Return the context for serving with the present certificates; see ``Shown``."""
        clients = self.client_bundle() + self._proxies.decode("ascii") if asks else ""
        return self.shown().context(clients)

    def shown(self) -> Shown:
        """Return the certificates that are shown now."""
        if self._given is None:
            return Shown(self.pki.server)
        given = self._given
        return Shown(self.pki.server, given.credential, given.names, self._given_to_all)

    def _apply(self) -> None:
        given = None if self._given_files is None else read_given(*self._given_files)
        clients = read_client_authorities(self._clients_file)
        proxies = read_client_authorities(self._proxies_file)
        pki = open_pki(self.pki.directory, self._names, self._clock, self._record)
        known = (self.pki, self._given, self._clients, self._proxies)
        if (pki, given, clients, proxies) != known:
            self.pki, self._given, self._clients, self._proxies = pki, given, clients, proxies
            for listener in list(self.listeners):
                listener()
