"""The keys of a server put together: which it has, and what follows when they change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from skerry.app.restart import restart_on_unavailable
from skerry.app.security import Security
from skerry.app.settings import ServerSettings
from skerry.kit.clock import Clock
from skerry.kit.ids import IdSource
from skerry.logic.machinery.key_rotation import SigningRecord
from skerry.server.open_streams import OpenStreams
from skerry.server.security.encryption import EncryptedStore
from skerry.server.security.encryption_start import (
    DEFAULT_FILE,
    KeyMismatch,
    KeySource,
    open_encryption,
)
from skerry.server.security.key_ring import EncryptionRotation, KeyRing
from skerry.server.security.pki import read_authorities
from skerry.server.security.signing_rotation import Authorities, TokenKeys, signing_record
from skerry.server.security.tokens import open_signing_keys
from skerry.store.base import Store

# A certificate is renewed months before its end, so an hour more or less is nothing.
_RENEW_SECONDS = 3600.0
_CERTIFICATES = "X509SHA256="
_TOKENS = "JTI="


@dataclass(slots=True)
class ServerKeys:
    """What a server has before it serves: the store as it sees it, and its authorities."""

    below: Store
    store: EncryptedStore
    encryption: EncryptionRotation
    authorities: Authorities
    signing: SigningRecord | None
    directory: Path


async def open_keys(
    settings: ServerSettings, store: Store, names: Sequence[str], clock: Clock, ids: IdSource
) -> ServerKeys:
    """Return the keys for serving *store*; ``KeyMismatch`` when they are not the right ones."""
    file = settings.encryption_key_file
    alone = settings.store.kind != "etcd"
    directory = settings.data_dir / "pki"
    source = KeySource(file or directory / DEFAULT_FILE, given=file is not None, alone=alone)
    keys = await open_encryption(store, source, ids)
    given = _given(settings)
    try:
        known = list(read_authorities(directory).credentials)
        record = await signing_record(store, "authority", known, directory, alone=alone)
        authorities = Authorities(
            store,
            record,
            directory,
            names,
            clock,
            given,
            settings.client_ca_file,
            given_to_all=settings.tls_cert_to_all,
            proxies=None if settings.front_proxy is None else settings.front_proxy.client_ca_file,
        )
        known = [key.id for key in open_signing_keys(directory)]
        signing = await signing_record(store, "signing", known, directory, alone=alone)
    except (OSError, ValueError, TypeError) as error:
        raise KeyMismatch(f"keys cannot be read: {error}") from error
    return ServerKeys(
        store,
        EncryptedStore(store, keys),
        EncryptionRotation(store, keys, source),
        authorities,
        signing,
        directory,
    )


def _given(settings: ServerSettings) -> tuple[Path, Path] | None:
    certificate, key = settings.tls_cert_file, settings.tls_private_key_file
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise KeyMismatch("--tls-cert-file and --tls-private-key-file go together")
    return certificate, key


def follow_keys(
    keys: ServerKeys,
    ring: KeyRing,
    security: Security,
    streams: OpenStreams,
    certificates_changed: Callable[[], None],
) -> None:
    """Let changes of keys take effect; *certificates_changed* is called for those of them."""
    authentication = security.authentication

    def tokens_changed() -> None:
        authentication.forget_tokens()
        streams.end_credentials(_TOKENS)

    authorities = keys.authorities
    trusted = {*authorities.of_clients, *authorities.of_proxies}

    def changed() -> None:
        nonlocal trusted
        before, trusted = trusted, {*authorities.of_clients, *authorities.of_proxies}
        authentication.forget_certificates()
        if before - trusted:
            # Somebody may be connected with a certificate of an authority that was retired.
            streams.end_credentials(_CERTIFICATES)
        certificates_changed()

    file = keys.directory / "sa.key"
    ring.add(TokenKeys(keys.below, keys.signing, file, security.tokens, tokens_changed))
    authorities.listeners.append(changed)


async def keep_keys(
    settings: ServerSettings, keys: ServerKeys, ring: KeyRing, clock: Clock
) -> None:
    """Tell other servers of this one's keys, or, alone, encrypt what is not encrypted yet."""
    if settings.store.kind == "etcd":
        await restart_on_unavailable("servers", ring.servers.run, clock)
    else:
        await restart_on_unavailable("secrets", keys.encryption.finish_rewriting, clock)


async def renew_certificates(ring: KeyRing, clock: Clock) -> None:
    """Renew certificates that near their end, for ever."""
    while True:
        await clock.sleep(_RENEW_SECONDS)
        ring.reload()
