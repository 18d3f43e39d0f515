"""Bootstrap credentials: what lets an edge ask for its first certificate, and do nothing else.

A credential is a Secret of type ``edge.kcp.io/bootstrap-token`` in the mailbox. It holds a digest
of the secret part only, ends by itself, and is redeemed by the first key that is shown with it.
"""

from __future__ import annotations

import hmac
from datetime import datetime, timedelta

from skerry.api.edge_identity import (
    BOOTSTRAP_GROUPS,
    BOOTSTRAP_PREFIX,
    BOOTSTRAP_TYPE,
    EXPIRATION,
    KEY_DIGEST,
    MAILBOX_NAMESPACE,
    TOKEN_HASH,
    TOKEN_ID,
    bootstrap_secret_name,
    bootstrap_user,
    parse_bootstrap_token,
    secret_value,
)
from skerry.api.errors import Unauthorized
from skerry.api.keys import ObjectKey
from skerry.kit.clock import Clock, parse_rfc3339
from skerry.kit.log import Logger
from skerry.logic.resource import Object
from skerry.server.codec import decode
from skerry.server.http.message import User
from skerry.server.workspaces.mailboxes import Mailboxes
from skerry.store.base import Store

# In a user's extra: the credential has ended, and its bearer may only read its request.
ENDED = "edge.kcp.io/bootstrap-ended"
# How long a redeemed credential may still read its request: a person may approve after a holiday.
READING_LIFETIME = timedelta(days=30)

log = Logger("edges")


class BootstrapTokens:
    """Users by bootstrap credential."""

    def __init__(self, store: Store, mailboxes: Mailboxes, clock: Clock) -> None:
        self._store = store
        self._mailboxes = mailboxes
        self._clock = clock

    def concerns(self, token: str) -> bool:
        return token.startswith(BOOTSTRAP_PREFIX)

    async def user(self, token: str, cluster: str) -> User:
        """Return the user of a credential; it counts in its own mailbox only."""
        parsed = parse_bootstrap_token(token)
        mailbox = self._mailboxes.mailbox(cluster)
        if parsed is None or mailbox is None or not self._mailboxes.sync_target(mailbox):
            raise Unauthorized
        entry = await self._store.get(_key(cluster, parsed.id))
        if entry is None:
            raise Unauthorized
        secret = decode(entry.value, entry.revision)
        digest = secret_value(secret, TOKEN_HASH)
        right = hmac.compare_digest(digest.encode(), parsed.digest.encode())
        named = secret_value(secret, TOKEN_ID) == parsed.id
        if not right or not named or secret.get("type") != BOOTSTRAP_TYPE:
            raise Unauthorized
        return User(
            bootstrap_user(cluster, parsed.id),
            secret["metadata"]["uid"],
            BOOTSTRAP_GROUPS,
            self._extra(secret),
            cluster,
        )

    def _extra(self, secret: Object) -> dict[str, tuple[str, ...]]:
        """Return what a credential's bearer is told to be besides; raises when it has ended."""
        ends, now = _expiration(secret), self._clock.now()
        if ends is not None and now < ends:
            return {}
        if ends is None or not secret_value(secret, KEY_DIGEST) or now > ends + READING_LIFETIME:
            log.info("bootstrap credential refused", v=2, reason="it has ended")
            raise Unauthorized
        return {ENDED: ("true",)}


def secret_key_of(user: User) -> str:
    """Return the store key of the Secret behind a bootstrap user."""
    return _key(user.home, user.name.rpartition(":")[2])


def _key(cluster: str, token_id: str) -> str:
    name = bootstrap_secret_name(token_id)
    return ObjectKey("", "secrets", cluster, MAILBOX_NAMESPACE, name).path()


def _expiration(secret: Object) -> datetime | None:
    try:
        return parse_rfc3339(secret_value(secret, EXPIRATION))
    except ValueError:
        return None
