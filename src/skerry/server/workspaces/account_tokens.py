"""Token Secrets of ServiceAccounts, as Kubernetes 1.24 and kcp have them.

A ServiceAccount somebody creates gets a Secret with a token, named in its ``.secrets``: programs
of that time wait for it. A Secret of the token type that names a ServiceAccount is filled in too.
The ``default`` accounts that come with namespaces get none; they ask for tokens when they need
one, and ten thousand workspaces do without ten thousand unused keys. In mailboxes there are none
at all: a token without end would outlive the edge it was read by.
"""

from __future__ import annotations

from collections.abc import Callable

from skerry.api.edge import is_inert
from skerry.api.errors import Forbidden
from skerry.api.keys import ObjectKey
from skerry.api.objects import Object
from skerry.kit.ids import IdSource
from skerry.logic.machinery.workspaces.names import SYSTEM_ADMIN
from skerry.server.admission.operation import Operation
from skerry.server.admission.token_secrets import ACCOUNT, TOKEN_TYPE, TokenSecrets
from skerry.server.codec import decode
from skerry.server.engine import ResourceHandler
from skerry.server.http.message import Answer
from skerry.server.request.call import Call
from skerry.server.seeding import Seeder
from skerry.server.workspaces.catalogue import HubCatalogue
from skerry.store.base import Store


class AccountTokens:
    """Brings Secrets with tokens."""

    def __init__(
        self,
        secrets: TokenSecrets,
        catalogue: HubCatalogue,
        seeder: Seeder,
        ids: IdSource,
        is_mailbox: Callable[[str], bool],
    ) -> None:
        self._secrets = secrets
        self._is_mailbox = is_mailbox
        self._catalogue = catalogue
        self._seeder = seeder
        self._ids = ids

    async def admit(self, operation: Operation) -> None:
        if operation.subresource or is_inert(operation.obj):
            return
        if operation.type[0] or self._is_mailbox(operation.call.info.cluster):
            return
        if operation.type == ("", "serviceaccounts") and operation.verb == "CREATE":
            self._account(operation)
        elif operation.type == ("", "secrets"):
            await self._secrets.admit(operation)

    def _account(self, operation: Operation) -> None:
        account, cluster = operation.obj, operation.call.info.cluster
        metadata = account["metadata"]
        if metadata["name"] == "default" or account.get("secrets") or operation.dry_run:
            return
        name = f"{metadata['name']}-token-{self._ids.suffix()}"
        secret: Object = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": name,
                "namespace": metadata["namespace"],
                "uid": self._ids.uid(),
                "annotations": {ACCOUNT: metadata["name"]},
            },
            "type": TOKEN_TYPE,
        }
        self._secrets.fill(secret, account, cluster)
        account["secrets"] = [{"name": name}]
        types = self._catalogue.types(SYSTEM_ADMIN)
        operation.writes.append(self._seeder.born(types, cluster, secret))


def for_own_accounts(plain: ResourceHandler, store: Store) -> ResourceHandler:
    """Return a handler of token requests that knows copies: those are accounts elsewhere only."""

    async def handle(call: Call) -> Answer:
        key = ObjectKey(
            "", "serviceaccounts", call.info.cluster, call.namespace, call.info.name
        ).path()
        entry = await store.get(key)
        if entry is not None and is_inert(decode(entry.value, entry.revision)):
            why = "it is a copy on its way to an edge, and no account here"
            raise Forbidden.of("", "serviceaccounts", call.info.name, why)
        return await plain(call)

    return handle
