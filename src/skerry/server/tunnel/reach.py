"""Which edge a request through a tunnel is about, and by which right.

An edge is named in its inventory workspace by the name of its SyncTarget, elsewhere by the path of
that workspace and the name, ``root:imw:florin``, or by the name alone where that is plain.

* Whoever asks **in the inventory workspace** is its operator: the right to ``edges/log``,
  ``edges/exec`` and so on there is enough, for a namespace of the edge or for all.
* Whoever asks **in another workspace** needs the same right in that workspace, and the workspace
  must own the namespace at that edge: the copy of the Namespace in the mailbox, which no edge and
  no tenant writes, records whose it is.

To a workspace that owns nothing there, an edge that exists and one that does not are the same.
"""

from __future__ import annotations

from typing import NamedTuple

from skerry.api.edge import OWNER_WORKSPACE, Mailbox, is_projected
from skerry.api.errors import BadRequest, Forbidden, NotFound
from skerry.api.kcp.resources import SYNC_TARGETS
from skerry.logic.machinery.edges.tunnel import RIGHTS_ON, PodRequest
from skerry.server.access import Attributes
from skerry.server.observed import ObservedObjects
from skerry.server.workspaces.mailboxes import Mailboxes


class Reached(NamedTuple):
    """An edge as one workspace reaches it: its mailbox, and what people call it."""

    mailbox: str
    edge: str
    as_operator: bool


class EdgeReach:
    """Finds edges by what requests call them."""

    def __init__(self, mailboxes: Mailboxes, namespaces: ObservedObjects) -> None:
        """*namespaces* are those of all clusters, mailboxes among them."""
        self._mailboxes = mailboxes
        self._state = mailboxes.state
        self._namespaces = namespaces

    def right(self, cluster: str, name: str, wanted: PodRequest) -> Attributes:
        """Return what somebody must be allowed in *cluster* for it."""
        found = self._meant(cluster, name, wanted.namespace)
        only = found[0] if len(found) == 1 else None
        return Attributes(
            cluster=cluster,
            verb=wanted.verb,
            group=RIGHTS_ON.group,
            resource=RIGHTS_ON.resource,
            subresource=wanted.action,
            namespace=wanted.namespace,
            name=name if only is None else self._called(cluster, only),
        )

    def reached(self, cluster: str, name: str, namespace: str) -> Reached:
        """Return the edge that *cluster* calls *name*; raises what keeps it from it."""
        several = self._meant(cluster, name, namespace)
        if len(several) > 1:
            paths = ", ".join(sorted(map(self._path, several)))
            raise BadRequest(f'edge "{name}": there are several of this name: {paths}')
        found = several[0] if several else None
        place = None if found is None else self._mailboxes.cluster_of(found)
        operator = found is not None and found.cluster == cluster
        if operator or self._is_inventory_name(cluster, name):
            if found is None or place is None:
                raise NotFound.of(*SYNC_TARGETS.group_resource, name)
            return Reached(place, self._path(found), as_operator=True)
        if found is None or place is None or not self.is_owned(place, namespace, cluster):
            raise Forbidden(
                f'edge "{name}": it is none of this workspace, which owns no namespace '
                f'"{namespace}" at another edge of that name'
            )
        return Reached(place, self._path(found), as_operator=False)

    def is_owned(self, mailbox: str, namespace: str, cluster: str) -> bool:
        """Tell whether *namespace* at the edge of *mailbox* is one that *cluster* placed."""
        copy = self._namespaces.within(mailbox, "").get(namespace)
        if copy is None or not is_projected(copy):
            return False
        return (copy["metadata"].get("annotations") or {}).get(OWNER_WORKSPACE) == cluster

    def _meant(self, cluster: str, name: str, namespace: str) -> list[Mailbox]:
        """Return the edges that *name* may mean in *cluster*."""
        path, _, short = name.rpartition(":")
        inventory = self._state.resolve(path) if path else cluster
        own = None if inventory is None else self._mailboxes.named(inventory, short)
        if own is not None:
            return [own]
        if path:
            return []
        named = self._mailboxes.all_named(name)
        return [each for each in named if self._has(each, namespace, cluster)]

    def _has(self, mailbox: Mailbox, namespace: str, cluster: str) -> bool:
        place = self._mailboxes.cluster_of(mailbox)
        return place is not None and self.is_owned(place, namespace, cluster)

    def _is_inventory_name(self, cluster: str, name: str) -> bool:
        """Tell whether a name means an edge of *cluster* itself, be there one or not."""
        path = name.rpartition(":")[0]
        return bool(path) and self._state.resolve(path) == cluster

    def _called(self, cluster: str, mailbox: Mailbox) -> str:
        own = mailbox.cluster == cluster
        return self._mailboxes.sync_target(mailbox) if own else self._path(mailbox)

    def _path(self, mailbox: Mailbox) -> str:
        inventory = self._state.path_of(mailbox.cluster)
        return f"{inventory}:{self._mailboxes.sync_target(mailbox)}"
