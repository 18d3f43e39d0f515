"""Bootstrap credentials: what lets an edge ask for its first certificate, and do nothing else.

A credential is a Secret of type ``edge.kcp.io/bootstrap-token`` in the mailbox. It holds a digest
of the secret part only, ends by itself, and is redeemed by the first key that is shown with it.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta

from skerry.api.edge import is_inert
from skerry.api.edge_identity import (
    APPROVED,
    BOOTSTRAP_GROUPS,
    BOOTSTRAP_PREFIX,
    BOOTSTRAP_TYPE,
    EXPIRATION,
    KEY_DIGEST,
    MAILBOX_NAMESPACE,
    SIGNER,
    SYNC_TARGET,
    TOKEN_HASH,
    TOKEN_ID,
    bootstrap_secret_name,
    bootstrap_user,
    parse_bootstrap_token,
    secret_value,
)
from skerry.api.errors import FieldError, Forbidden, Invalid, TooManyRequests, Unauthorized
from skerry.api.keys import ObjectKey
from skerry.api.objects import Object
from skerry.kit.clock import Clock
from skerry.kit.log import Logger
from skerry.kit.timestamps import parse_rfc3339
from skerry.server.access import Authorizer
from skerry.server.admission.certificates import may_decide
from skerry.server.admission.operation import Operation
from skerry.server.codec import decode
from skerry.server.user import User
from skerry.server.workspaces.mailboxes import Mailboxes
from skerry.store.base import Entry, Store, Write

# How long a redeemed credential still counts for its key: a person may approve after a holiday.
REDEEMED_LIFETIME = timedelta(days=30)
# A manifest may lie about for so long; a credential that outlives its reason is a risk.
MAX_LIFETIME = timedelta(days=7)
# One for each machine somebody is about to set up; a revocation deletes them in one transaction.
MAX_CREDENTIALS = 20
_SECRETS = ("", "secrets")
_FIELDS = frozenset((TOKEN_ID, TOKEN_HASH, EXPIRATION, SYNC_TARGET, APPROVED))
_TOKEN_ID = re.compile("[a-z0-9]{6,32}").fullmatch
_DIGEST = re.compile("[0-9a-f]{64}").fullmatch

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
        if not right or not named or secret.get("type") != BOOTSTRAP_TYPE or is_inert(secret):
            raise Unauthorized
        if _is_useless(secret, self._clock.now()):
            log.info("bootstrap credential refused", v=2, reason="it has ended")
            raise Unauthorized
        name, uid = bootstrap_user(cluster, parsed.id), secret["metadata"]["uid"]
        return User(name, uid, BOOTSTRAP_GROUPS, home=cluster)


class BootstrapSecrets:
    """Guards the Secrets behind bootstrap credentials.

    They are well formed, in a mailbox and not passing through it; whoever makes one that is
    approved from the start may approve; and once made, a credential is redeemed or withdrawn but
    not changed.
    """

    def __init__(
        self, mailboxes: Mailboxes, authorizer: Authorizer, store: Store, clock: Clock
    ) -> None:
        self._mailboxes = mailboxes
        self._authorizer = authorizer
        self._store = store
        self._clock = clock

    async def admit(self, operation: Operation) -> None:
        if operation.type != _SECRETS or operation.verb == "DELETE":
            return
        secret, old = operation.obj, operation.old
        if old is not None:
            if old.get("type") == BOOTSTRAP_TYPE and old.get("data") != secret.get("data"):
                detail = "a bootstrap credential is not changed: delete it and make another"
                raise _invalid(secret, [FieldError.forbidden("data", detail)])
            return
        if secret.get("type") != BOOTSTRAP_TYPE:
            return
        mailbox = self._mailboxes.mailbox(operation.call.info.cluster)
        if mailbox is None or operation.call.namespace != MAILBOX_NAMESPACE:
            detail = f"wants the namespace {MAILBOX_NAMESPACE} of a mailbox"
            raise _invalid(secret, [FieldError.invalid("type", BOOTSTRAP_TYPE, detail)])
        if is_inert(secret):
            # The translator carries it with the rights of the hub, for whoever placed it.
            detail = "a projected copy or a report is no credential"
            raise _invalid(secret, [FieldError.invalid("type", BOOTSTRAP_TYPE, detail)])
        target = self._mailboxes.sync_target(mailbox)
        if errors := secret_errors(secret, target, self._clock.now()):
            raise _invalid(secret, errors)
        if secret_value(secret, APPROVED) == "true":
            user = operation.call.user
            if not may_decide(self._authorizer, user, mailbox.cluster, "approve", SIGNER):
                why = f'a credential that is approved needs the verb "approve" on signer {SIGNER} '
                raise _forbidden(secret, f"{why}in the workspace of the SyncTarget")
        await self._delete_ended(operation)

    async def _delete_ended(self, operation: Operation) -> None:
        """Delete credentials that nobody can use any more; refuse where too many are left."""
        now, left = self._clock.now(), 0
        async for entry, secret in credentials_in(self._store, operation.call.info.cluster):
            if _is_useless(secret, now):
                operation.writes.append(Write(entry.key, None, expected=entry.revision))
            else:
                left += 1
        if left >= MAX_CREDENTIALS:
            raise TooManyRequests(
                f"the mailbox has {left} bootstrap credentials: delete some of them, want at most "
                f"{MAX_CREDENTIALS}"
            )


async def credentials_in(store: Store, cluster: str) -> AsyncIterator[tuple[Entry, Object]]:
    """Yield the Secrets of bootstrap credentials in a mailbox."""
    prefix = _key(cluster, "")
    for entry in (await store.range(prefix)).entries:
        secret = decode(entry.value, entry.revision)
        if secret.get("type") == BOOTSTRAP_TYPE:
            yield entry, secret


def secret_errors(secret: Object, sync_target: str, now: datetime) -> list[FieldError]:
    """Return what is wrong with the Secret of a credential for *sync_target*."""
    values = {name: secret_value(secret, name) for name in _FIELDS}
    token_id = values[TOKEN_ID]
    errors = []
    if secret["metadata"].get("name") != bootstrap_secret_name(token_id):
        name = secret["metadata"].get("name") or ""
        detail = f'want "{bootstrap_secret_name("")}" and the token-id'
        errors.append(FieldError.invalid("metadata.name", name, detail))
    if _TOKEN_ID(token_id) is None:
        detail = "want 6 to 32 lower-case letters and digits"
        errors.append(FieldError.invalid(f"data[{TOKEN_ID}]", token_id, detail))
    if _DIGEST(values[TOKEN_HASH]) is None:
        detail = "want the SHA-256 of the secret part, 64 hexadecimal digits"
        errors.append(FieldError.invalid(f"data[{TOKEN_HASH}]", "<hidden>", detail))
    if values[APPROVED] not in ("true", "false"):
        errors.append(
            FieldError.not_supported(f"data[{APPROVED}]", values[APPROVED], ("true", "false"))
        )
    if values[SYNC_TARGET] != sync_target:
        detail = f'this is the mailbox of "{sync_target}"'
        errors.append(FieldError.invalid(f"data[{SYNC_TARGET}]", values[SYNC_TARGET], detail))
    ends = _expiration(secret)
    if ends is None or not now < ends <= now + MAX_LIFETIME:
        detail = f"want an RFC 3339 time within the next {MAX_LIFETIME.days} days"
        errors.append(FieldError.invalid(f"data[{EXPIRATION}]", values[EXPIRATION], detail))
    others = sorted((secret.get("data") or {}).keys() - _FIELDS)
    return errors + [
        FieldError.forbidden(f"data[{name}]", "the server alone writes it") for name in others
    ]


def secret_key_of(user: User) -> str:
    """Return the store key of the Secret behind a bootstrap user."""
    return _key(user.home, user.name.rpartition(":")[2])


def _key(cluster: str, token_id: str) -> str:
    name = bootstrap_secret_name(token_id)
    return ObjectKey("", "secrets", cluster, MAILBOX_NAMESPACE, name).path()


def _is_useless(secret: Object, now: datetime) -> bool:
    """Tell whether a credential has ended; one that was redeemed counts for its key a while."""
    ends = _expiration(secret)
    if ends is None:
        return True
    return now > (ends + REDEEMED_LIFETIME if secret_value(secret, KEY_DIGEST) else ends)


def _invalid(secret: Object, errors: Sequence[FieldError]) -> Invalid:
    return Invalid.of("", "Secret", secret["metadata"].get("name") or "", list(errors))


def _forbidden(secret: Object, why: str) -> Forbidden:
    return Forbidden.of(*_SECRETS, secret["metadata"].get("name") or "", why)


def _expiration(secret: Object) -> datetime | None:
    try:
        return parse_rfc3339(secret_value(secret, EXPIRATION))
    except ValueError:
        return None
