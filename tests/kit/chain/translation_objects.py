"""One mailbox, two workspaces and a book of grants, for tests of ``desired`` and ``difference``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skerry.api.edge import Mailbox, edge_placement_ref, location_ref
from skerry.api.objects import Object
from skerry.api.refs import ClusterName, ObjectRef
from skerry.logic.fleet.placement.grants import Rule
from skerry.logic.fleet.tables.completeness import Completeness
from skerry.logic.fleet.translation.desired import Desired, DesiredThere
from skerry.logic.fleet.translation.difference import Accepted, Difference, ItemDiff
from skerry.logic.fleet.translation.route import Route
from skerry.logic.fleet.translation.selected import placement_row
from skerry.logic.fleet.translation.sources import WatchKey, record_of, wide
from skerry.logic.fleet.translation.types import ServedType
from skerry.logic.fleet.translation.workspaces import (
    BASIC_WATCHES,
    GRANTS,
    NAMESPACE_WATCH,
    Mailboxes,
    Scope,
    Workspaces,
    types_scope,
)

MAILBOX, CLUSTER = Mailbox("imw", "u"), "mb"
FLORIN = location_ref("imw", "florin")
MAPS = wide("", "v1", "configmaps")
SECRETS = wide("", "v1", "secrets")
ROLES = wide("rbac.authorization.k8s.io", "v1", "clusterroles")
COMMON = (
    ServedType("", "namespaces", "Namespace", False, ("v1",)),
    ServedType("", "configmaps", "ConfigMap", True, ("v1",)),
    ServedType("", "secrets", "Secret", True, ("v1",)),
    ServedType("rbac.authorization.k8s.io", "clusterroles", "ClusterRole", False, ("v1",)),
    ServedType("apis.kcp.io", "apibindings", "APIBinding", False, ("v1alpha1",)),
    ServedType(
        "apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition", False,
        ("v1",),
    ),
)  # fmt: skip
PAGE = ObjectRef("", "", "configmaps", "n", "page")
ROLE = ObjectRef("", *ROLES.group_resource, "", "r")
GO = {"matchLabels": {"go": "yes"}}
COPY = {"edge.kcp.io/projected": "yes"}
ANY_MAP = Rule(frozenset([""]), frozenset(["configmaps"]), namespaced=True, cluster_scoped=False)


class Book:
    """Grants as a test says; ``mode`` empty: there are none."""

    def __init__(self) -> None:
        self.mode = ""
        self.granted: Sequence[Rule] = ()
        # Instead, by source workspace.
        self.granted_to: dict[str, Sequence[Rule]] | None = None

    @property
    def is_used(self) -> bool:
        return bool(self.mode)

    def is_enforced(self, inventory: str) -> bool:
        return self.mode == "Enforce"

    def is_observed(self, inventory: str) -> bool:
        return self.mode == "Observe"

    def rules(self, source: str, location: ObjectRef, mailbox: Mailbox) -> Sequence[Rule]:
        return self.granted if self.granted_to is None else self.granted_to.get(source, ())

    def scopes(self, mailbox: Mailbox) -> tuple[Scope, ...]:
        return (GRANTS,) if self.mode else ()

    def governs(self, mailbox: Mailbox) -> bool:
        return self.mode in ("Enforce", "Observe")

    def refusing(self, inventory: ClusterName) -> str:
        return "root:imw/g"


def thing(name: str, cluster: str, namespace: str = "", **more: Any) -> Object:
    notes = {"kcp.io/cluster": cluster, **more.pop("notes", {})}
    metadata: Object = {"name": name, "uid": f"u-{name}", "annotations": notes}
    metadata |= {"resourceVersion": more.pop("rv", "1"), "labels": more.pop("labels", {})}
    if namespace:
        metadata["namespace"] = namespace
    return {
        "apiVersion": "v1",
        "kind": "Thing",
        "metadata": metadata | more.pop("meta", {}),
        **more,
    }


class There:
    """The tables around one mailbox; everything has been read unless a test says otherwise."""

    def __init__(self, schemas: Mapping[tuple[str, str], Object] | None = None) -> None:
        """*schemas* are those that bindings may refer to, by cluster and name."""
        self.workspaces = Workspaces(lambda: schemas or {})
        self.workspaces.learn_hub(COMMON, copies_are_inert=True)
        self.route = Route(self.workspaces)
        self.mailboxes = Mailboxes()
        self.mailboxes.put(MAILBOX, CLUSTER)
        self.book = Book()
        self.scopes: Completeness[Scope, tuple[Mailbox, Scope]] = Completeness()
        self.accepted: Accepted = {}
        self.released: set[ObjectRef] = set()
        self.live: Object | None = None
        for cluster in ("one", "two", CLUSTER):
            self.workspaces.follow(cluster)
            self.workspaces.retype(cluster)
            self.scopes.complete(types_scope(cluster))
            self.workspaces.learn_path(cluster, f"root:{cluster}")
        for key in (*BASIC_WATCHES, MAPS, SECRETS, ROLES):
            self.workspaces.watch(key)
            self.scopes.complete(key)

    def is_released(self, mailbox: Mailbox, item: ObjectRef) -> bool:
        return item in self.released

    def put(self, key: WatchKey, obj: Object) -> None:
        self.workspaces.watch(key).put(record_of(key, obj))
        for cluster in ("one", "two"):
            self.route.put_candidates(cluster)
        self.route.settle()

    def place(self, cluster: ClusterName, name: str = "p", **spec: Any) -> ObjectRef:
        placement = edge_placement_ref(cluster, name)
        self.route.put_placement(placement, placement_row({"spec": spec}))
        self.route.put_destinations(placement, {MAILBOX: (FLORIN,)})
        self.route.settle()
        return placement

    def placed(self, cluster: ClusterName = "one", **page: Any) -> ObjectRef:
        """Have a workspace's Namespace ``n`` with ConfigMap ``page`` go to the mailbox."""
        self.put(NAMESPACE_WATCH, thing("n", cluster, labels={"go": "yes"}))
        self.put(MAPS, thing("page", cluster, "n", **{"data": {"k": "v"}, **page}))
        return self.place(cluster, namespaceSelector=GO)

    def copy(self, **more: Any) -> None:
        """Have a copy of ``page`` in the mailbox."""
        self.put(MAPS, thing("page", CLUSTER, "n", **{"labels": COPY, "data": {"k": "v"}, **more}))

    def desired(self, **settings: Any) -> Desired:
        return Desired(
            self.workspaces,
            self.route,
            self.mailboxes,
            self.book,
            lambda *_: None,
            lambda *_: {"metadata": {"labels": {"env": "prod"}}},
            lambda _, item: item not in self.released,
            **{"withhold_denatured": False, **settings},
        )

    def at(self, **settings: Any) -> DesiredThere:
        return self.desired(**settings).at(MAILBOX)

    def diff(self, item: ObjectRef = PAGE) -> ItemDiff:
        difference = Difference(
            self.workspaces,
            self.desired(),
            self.book,
            self,
            self.accepted,
            lambda _: self.live,
            self.scopes,
        )
        [row] = difference.rows(MAILBOX, CLUSTER, [item])
        return row
