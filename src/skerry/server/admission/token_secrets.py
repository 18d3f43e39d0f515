"""Secrets that ask for a ServiceAccount's token, filled as they are written.

In Kubernetes a controller fills a Secret of type ``kubernetes.io/service-account-token`` a moment
after it was created, and again when somebody takes the token out. Here the write itself does, so
that the answer holds the token. Nobody gets one unasked: accounts request tokens that end.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import ClassVar

from skerry.api.keys import ObjectKey
from skerry.api.objects import Object
from skerry.server.admission.operation import Operation
from skerry.server.codec import decode
from skerry.server.security.tokens import BoundObject, ServiceAccountTokens, TokenRequest
from skerry.store.base import Store

TOKEN_TYPE = "kubernetes.io/service-account-token"  # noqa: S105 - a type, not a token
ACCOUNT = "kubernetes.io/service-account.name"
_ACCOUNT_UID = "kubernetes.io/service-account.uid"
# Such tokens have no end in Kubernetes; they die with the Secret or the account.
_LIFETIME_SECONDS = 10 * 365 * 24 * 3600


def _none(_: Object) -> bool:
    return False


class TokenSecrets:
    """Fills Secrets that name an account; those of *inert* accounts stay empty."""

    TYPES: ClassVar = frozenset({("", "secrets")})

    def __init__(
        self,
        store: Store,
        tokens: ServiceAccountTokens,
        root_ca: Callable[[], str],
        inert: Callable[[Object], bool] = _none,
    ) -> None:
        self._store = store
        self._tokens = tokens
        self._root_ca = root_ca
        self._inert = inert

    async def admit(self, operation: Operation) -> None:
        if operation.type != ("", "secrets") or operation.obj.get("type") != TOKEN_TYPE:
            return
        if operation.verb == "DELETE" or operation.dry_run:
            return
        secret = operation.obj
        account = None if (secret.get("data") or {}).get("token") else await self._named(operation)
        if account is not None:
            self.fill(secret, account, operation.call.info.cluster)

    async def _named(self, operation: Operation) -> Object | None:
        """Return the account a Secret is for, if it is that very one."""
        annotations = operation.obj["metadata"].get("annotations") or {}
        call, name = operation.call, annotations.get(ACCOUNT, "")
        key = ObjectKey("", "serviceaccounts", call.info.cluster, call.namespace, name)
        entry = await self._store.get(key.path()) if name else None
        account = None if entry is None else decode(entry.value, entry.revision)
        if account is None or self._inert(account):
            return None
        uid = account["metadata"]["uid"]
        return account if annotations.get(_ACCOUNT_UID, uid) == uid else None

    def fill(self, secret: Object, account: Object, cluster: str) -> None:
        """Put a token of *account* into *secret*, bound to both."""
        metadata, owner = secret["metadata"], account["metadata"]
        metadata["annotations"][_ACCOUNT_UID] = owner["uid"]
        token, _ = self._tokens.issue(
            TokenRequest(
                namespace=owner["namespace"],
                name=owner["name"],
                uid=owner["uid"],
                lifetime_seconds=_LIFETIME_SECONDS,
                bound=BoundObject("Secret", metadata["name"], metadata["uid"]),
                cluster=cluster,
            )
        )
        values = {"ca.crt": self._root_ca(), "namespace": owner["namespace"], "token": token}
        secret["data"] = {
            **(secret.get("data") or {}),
            **{key: base64.b64encode(text.encode()).decode() for key, text in values.items()},
        }
