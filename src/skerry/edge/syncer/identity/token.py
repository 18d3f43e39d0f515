"""A ServiceAccount token for the hub, renewed long before it ends.

That is what an edge has at a hub that issues no certificates, such as a kcp; at ours, what an edge
of the previous version came with, until ``credential`` replaces it.

The first token comes in the kubeconfig and lasts days. The syncer asks for its next one itself
(TokenRequest on its own ServiceAccount) when a fifth of the time is over, so an edge may be away
for most of a token's life and still come back. The newest token is a file in the data directory;
the transport reads it again when it changes. A kubeconfig that was issued anew wins over an older
file.

What is no ServiceAccount token (a certificate, a person's token) is left as it is.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from skerry.api.errors import ApiError
from skerry.api.kinds import GroupVersionResource
from skerry.kit.ids import IdSource
from skerry.kit.log import Logger
from skerry.kit.secret_files import write_secret
from skerry.runtime.backoff import Backoff
from skerry.runtime.client import Client
from skerry.runtime.transport import TransportError

_ACCOUNTS = GroupVersionResource("", "v1", "serviceaccounts")
_RENEW_AFTER = 0.2
_BACKOFF = Backoff(min_seconds=10.0, max_seconds=600.0, jitter=0.5)
_SUBJECT = "system:serviceaccount:"

_log = Logger("syncer-token")


@dataclass(frozen=True, slots=True)
class Claims:
    """What of a ServiceAccount token matters here."""

    namespace: str
    name: str
    issued: int
    expires: int

    @property
    def lifetime_seconds(self) -> int:
        return self.expires - self.issued


def claims_of(token: str) -> Claims | None:
    """Return what a token says of itself, unverified; None when it is no ServiceAccount's."""
    parts = token.split(".")
    try:
        # By hand: a JWT library brings all of cryptography, which is a sixth of our memory.
        claims: dict[str, Any] = orjson.loads(
            base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
        )
    except (IndexError, ValueError):
        return None
    if not isinstance(claims, dict):
        return None
    subject = str(claims.get("sub", ""))
    namespace, _, name = subject.removeprefix(_SUBJECT).partition(":")
    issued, expires = claims.get("iat"), claims.get("exp")
    if not subject.startswith(_SUBJECT) or not isinstance(issued, int):
        return None
    return Claims(namespace, name, issued, expires) if isinstance(expires, int) else None


class HubToken:
    """The newest token, kept in *path*."""

    def __init__(self, given: str, path: Path) -> None:
        """Take the token of the kubeconfig, or the file's when that is newer.

        Tokens are dated in whole seconds: of two from the same one the file's is the renewed one.
        """
        self.path = path
        self._token = given
        kept = path.read_text().strip() if path.exists() else ""
        ours, theirs = claims_of(given), claims_of(kept)
        if theirs is not None and (ours is None or theirs.issued >= ours.issued):
            self._token = kept
        elif kept != given:
            self._write(given)

    async def run(self, hub: Client, ids: IdSource) -> None:
        """Renew until cancelled."""
        failures, age = 0, self._age_seconds(hub)
        while (claims := claims_of(self._token)) is not None:
            if failures:
                await hub.clock.sleep(_BACKOFF.seconds(failures, ids))
            else:
                left = max(0.0, claims.lifetime_seconds * _RENEW_AFTER - age)
                await hub.clock.sleep(left * (1 + 0.1 * ids.fraction()))
            try:
                await self._renew(hub, claims)
                # What was issued this moment has no age, whatever the clocks of both say.
                failures, age = 0, 0.0
            except (ApiError, TransportError, OSError) as error:
                failures += 1
                _log.warning("token not renewed", attempt=failures, error=error)

    def _age_seconds(self, hub: Client) -> float:
        """Return how old the token is at least, by the clock here.

        That may be wrong by a day against the hub's, which dated the token. The file was dated by
        our own clock: a syncer that runs behind and is often restarted still sees it grow old.
        """
        now = hub.clock.now().timestamp()
        claims = claims_of(self._token)
        issued = now if claims is None else claims.issued
        return max(0.0, now - issued, now - self.path.stat().st_mtime)

    async def _renew(self, hub: Client, claims: Claims) -> None:
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": claims.lifetime_seconds},
        }
        answer = await hub.create(
            _ACCOUNTS, request, claims.namespace, name=claims.name, subresource="token"
        )
        self._write(str(answer["status"]["token"]))
        _log.info("token renewed", v=2, expires=answer["status"].get("expirationTimestamp", ""))

    def forget(self) -> None:
        """Remove the token, which something better has replaced."""
        self.path.unlink(missing_ok=True)

    def _write(self, token: str) -> None:
        write_secret(self.path, token.encode())
        self._token = token
