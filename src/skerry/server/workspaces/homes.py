"""Home workspaces: everybody's own, made at the first look.

``kubectl ws ~`` asks for the workspace called ``~`` in root. There is no such object: the answer
describes the logical cluster that is the user's home. Where somebody has to initialize homes,
clients are asked to come back until that is done, as kcp tells them.
"""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from skerry.api.errors import Forbidden
from skerry.api.keys import ObjectKey
from skerry.api.objects import Object
from skerry.kit.clock import Clock
from skerry.kit.timestamps import parse_rfc3339
from skerry.logic.machinery.workspaces.names import ROOT, home_cluster_name, home_path
from skerry.logic.machinery.workspaces.types import TypeName, resolve
from skerry.server.access import Authorizer
from skerry.server.codec import decode, dump
from skerry.server.engine import ResourceHandler, attributes_of
from skerry.server.http.message import Answer, Response
from skerry.server.request.call import Call
from skerry.server.security.authorization import forbidden
from skerry.server.watch.dispatcher import Dispatcher
from skerry.server.workspaces.state import CORE, TENANCY, HubState
from skerry.server.workspaces.workspace_creation import WorkspaceInitializer
from skerry.store.base import Conflict, Store

HOME = "~"
_TEXT = "text/plain; charset=utf-8"
# Initializers are controllers that watch; after a minute nobody is there.
_PATIENCE = timedelta(minutes=1)


class Homes:
    """Answers for ``~`` and leaves everything else to the plain handler."""

    def __init__(
        self,
        store: Store,
        dispatcher: Dispatcher,
        state: HubState,
        initializer: WorkspaceInitializer,
        authorizer: Authorizer,
        clock: Clock,
    ) -> None:
        self._authorizer = authorizer
        self._clock = clock
        self._store = store
        self._dispatcher = dispatcher
        self._state = state
        self._initializer = initializer

    def before(self, plain: ResourceHandler) -> ResourceHandler:
        """Return a handler of get that knows ``~``."""

        async def get(call: Call) -> Answer:
            info = call.resource.info
            if call.info.name != HOME or (info.group, info.resource) != (TENANCY, "workspaces"):
                return await plain(call)
            if call.info.cluster != ROOT:
                raise call.not_found()
            if call.user.home:
                why = "it is a user's of the hub, not a workspace's principal's"
                raise Forbidden.of(TENANCY, "workspaces", HOME, why)
            return self._answer(await self._home(call))

        return get

    def _answer(self, home: Object) -> Response:
        if home["status"]["phase"] == "Ready":
            return Response(body=dump(home))
        age = self._clock.now() - parse_rfc3339(home["metadata"]["creationTimestamp"])
        if age > _PATIENCE:
            return Response(500, b"home workspace creation timeout\n", _TEXT)
        return Response(429, b"Creating the home workspace\n", _TEXT, (("Retry-After", "1"),))

    async def _home(self, call: Call) -> Object:
        user = call.user.name
        cluster = home_cluster_name(user)
        key = ObjectKey(CORE, "logicalclusters", cluster, "", "cluster").path()
        entry = await self._store.get(key)
        if entry is None:
            self._check_create(call)
            await self._create(cluster, user)
            entry = await self._store.get(key)
        if entry is None:
            raise LookupError(f"home {cluster} went away while it was being made")
        found = decode(entry.value, entry.revision)
        return {
            "apiVersion": "tenancy.kcp.io/v1alpha1",
            "kind": "Workspace",
            "metadata": {
                "name": "cluster",
                "creationTimestamp": found["metadata"]["creationTimestamp"],
            },
            "spec": {"cluster": cluster, "URL": found["status"]["URL"], "type": {"name": ""}},
            "status": {
                "phase": found["status"]["phase"],
                "conditions": found["status"].get("conditions") or [],
            },
        }

    def _check_create(self, call: Call) -> None:
        creating = replace(attributes_of(call.info), verb="create")
        if not self._authorizer.authorize(call.user, creating).allowed:
            raise forbidden(call.user, creating, "workspace access not permitted")

    async def _create(self, cluster: str, user: str) -> None:
        resolved = resolve(TypeName(ROOT, "home"), self._state.workspace_type)
        new = self._initializer.new_workspace(resolved, cluster, home_path(user), user)
        writes = self._initializer.content(resolved, new, None, deletable=True)
        try:
            revisions = await self._store.commit(writes)
        except Conflict:
            # The same user asked twice at once; the other request made it.
            return
        await self._dispatcher.acknowledge(max(revisions))
