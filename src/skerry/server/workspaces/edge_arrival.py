"""What an edge no longer needs once it has arrived with its certificate.

The first heartbeats by certificate take away, in their own transaction, what the edge was let in
by: its redeemed bootstrap credential, and the ServiceAccount, role and binding that the previous
version made. Until then they stay: an edge that dies between getting a certificate and keeping it
must be able to ask again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from skerry.api.edge_identity import (
    EDGE_GROUPS,
    KEY_DIGEST,
    MAILBOX_NAMESPACE,
    account_name,
    edge_of_user,
    secret_value,
)
from skerry.api.keys import ObjectKey
from skerry.api.kinds import GroupResource
from skerry.logic.machinery.edges.rights import is_heartbeat
from skerry.server.admission.operation import Operation
from skerry.server.codec import decode
from skerry.server.security.client_certificates import CREDENTIAL
from skerry.server.workspaces.bootstrap_credentials import credentials_in
from skerry.server.workspaces.mailboxes import Mailboxes
from skerry.store.base import Entry, Store, Write

_RBAC = "rbac.authorization.k8s.io"
_ACCOUNT = "kubernetes.io/service-account.name"


class EdgeArrival:
    """Deletes former credentials of an edge that uses its certificate."""

    def __init__(self, mailboxes: Mailboxes, store: Store) -> None:
        self._mailboxes = mailboxes
        self._store = store
        # By mailbox, the certificate under which nothing was left to delete; looked for once each.
        self._settled: dict[str, str] = {}

    async def admit(self, operation: Operation) -> None:
        user = operation.call.user
        if user.groups != EDGE_GROUPS or operation.dry_run or edge_of_user(user.name) is None:
            return
        name = operation.obj["metadata"].get("name") or ""
        if not is_heartbeat(GroupResource(*operation.type), operation.call.namespace, name):
            return
        (credential,) = user.extra.get(CREDENTIAL) or ("",)
        if self._settled.get(user.home) == credential:
            return
        left = [entry async for entry in self._leftovers(user.home)]
        operation.writes += [Write(entry.key, None, expected=entry.revision) for entry in left]
        if not left:
            self._settled[user.home] = credential

    async def _leftovers(self, cluster: str) -> AsyncIterator[Entry]:
        mailbox = self._mailboxes.mailbox(cluster)
        account = "" if mailbox is None else account_name(self._mailboxes.sync_target(mailbox))
        for key in (
            ObjectKey("", "serviceaccounts", cluster, MAILBOX_NAMESPACE, account),
            ObjectKey(_RBAC, "clusterroles", cluster, "", account),
            ObjectKey(_RBAC, "clusterrolebindings", cluster, "", account),
        ):
            entry = await self._store.get(key.path())
            if entry is not None:
                yield entry
        async for entry, secret in credentials_in(self._store, cluster):
            if secret_value(secret, KEY_DIGEST):
                yield entry
        # Tokens without end that earlier versions made for the account.
        tokens = ObjectKey("", "secrets", cluster, MAILBOX_NAMESPACE, f"{account}-token-").path()
        for entry in (await self._store.range(tokens)).entries:
            notes = decode(entry.value, entry.revision)["metadata"].get("annotations") or {}
            if notes.get(_ACCOUNT) == account:
                yield entry
