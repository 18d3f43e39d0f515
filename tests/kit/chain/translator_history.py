"""Histories of a hub, by seed: what people, administrators and accidents may do to it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from skerry.api.edge import CUSTOMIZERS, EDGE_PLACEMENTS, SYNCER_CONFIGS, is_projected
from skerry.api.edge import SINGLE_PLACEMENT_SLICES as SLICES
from skerry.api.errors import ApiError
from skerry.api.kcp.resources import API_BINDINGS, LOCATIONS
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.kit.ids import SeededIds
from tests.kit.chain.translator_hub import (
    CLUSTER_ROLES,
    CONFIG_MAPS,
    DEFINITIONS,
    DEPLOYMENTS,
    EDGE,
    NAMESPACES,
    WIDGETS,
    Hub,
    config_map,
    deployment,
    widget_definition,
)

EDGES = ("florin", "guilder", "mark")
OWNERS = ("one", "two")
SPACES = ("a", "b")
NAMES = ("x", "y")
PLACEMENTS = ("p", "q")
_VERSIONS = {"apis.kcp.io": "v1alpha1"}

T = TypeVar("T")


class History:
    """One seed's sequence of events."""

    def __init__(self, hub: Hub, seed: int) -> None:
        self._hub = hub
        self._ids = SeededIds(seed * 7919 + 3)
        self._deeds: Sequence[Callable[[], Awaitable[object]]] = (
            self._make_namespace,
            self._make_namespace,
            self._relabel_namespace,
            self._remove_namespace,
            self._put_config_map,
            self._put_config_map,
            self._put_config_map,
            self._remove_config_map,
            self._put_deployment,
            self._remove_deployment,
            self._put_role,
            self._remove_role,
            self._define_widgets,
            self._undefine_widgets,
            self._put_widget,
            self._put_widget,
            self._remove_widget,
            self._put_customizer,
            self._remove_customizer,
            self._relabel_location,
            self._place,
            self._place,
            self._edit_placement,
            self._edit_placement,
            self._reslice,
            self._reslice,
            self._unplace,
            self._rebind,
            self._drift,
            self._drift,
            self._drift_config,
            self._put_foreign,
            self._pause,
            self._pause,
        )

    async def happen(self, count: int) -> None:
        """Let *count* things happen; what the hub refuses did not happen."""
        for _ in range(count):
            try:
                await self._one(self._deeds)()
            except ApiError:
                await asyncio.sleep(0.01)

    async def begin(self) -> None:
        """Furnish both workspaces, so that there is something for things to happen to."""
        for owner in OWNERS:
            for space in SPACES:
                await self._hub.namespace(space, owner, go="yes")
                await self._hub.put(CONFIG_MAPS, config_map("x", {"k": owner}), space, owner)
            await self._hub.put(DEPLOYMENTS, deployment("x"), "a", owner)
        await self._hub.put(DEFINITIONS, widget_definition(), owner=self._one(OWNERS))
        await self._hub.place("p", *EDGES, owner=self._one(OWNERS), **self._spec())
        await self._hub.place("q", *self._some(EDGES), owner=self._one(OWNERS), **self._spec())

    async def tidy(self) -> None:
        """Remove whatever in a mailbox is no copy, and would hold its namespace open.

        A copy whose mark somebody took away just before it was to go is among them: nothing
        tells it from an object of somebody else.
        """
        for edge in EDGES:
            mailbox = self._hub.mailbox(edge)
            for gvr in (CONFIG_MAPS, DEPLOYMENTS, WIDGETS):
                try:
                    found = (await mailbox.list(gvr)).items
                except ApiError:
                    continue
                for obj in found:
                    name, space = obj["metadata"]["name"], obj["metadata"]["namespace"]
                    if not is_projected(obj) and name != "kube-root-ca.crt":
                        await mailbox.delete(gvr, name, space)

    # -- choices -----------------------------------------------------------------------------

    def _one(self, options: Sequence[T]) -> T:
        return options[int(self._ids.fraction() * len(options))]

    def _some(self, options: Sequence[T]) -> list[T]:
        return [each for each in options if self._ids.fraction() < 0.5]

    async def _pause(self) -> None:
        await asyncio.sleep(self._ids.fraction() * 2)

    # -- workload ----------------------------------------------------------------------------

    async def _make_namespace(self) -> None:
        await self._hub.namespace(self._one(SPACES), self._one(OWNERS), go=self._one(("yes", "no")))

    async def _relabel_namespace(self) -> None:
        patch = {"metadata": {"labels": {"go": self._one(("yes", "no")), "t": self._one(NAMES)}}}
        await self._owner().patch(NAMESPACES, self._one(SPACES), patch)

    async def _remove_namespace(self) -> None:
        if self._ids.fraction() < 0.5:
            return
        await self._owner().delete(NAMESPACES, self._one(SPACES))

    async def _put_config_map(self) -> None:
        notes = self._one(
            ({}, {}, {"expand_parameters": "true"}, {"customizer": "c"}, {"customizer": "a/c"})
        )
        data = {key: self._one(("1", "2", "%(env)")) for key in self._some(("k", "l"))}
        obj = config_map(self._one(NAMES), data, **notes)
        if self._ids.fraction() < 0.3:
            obj["metadata"]["labels"] = {"l": self._one(NAMES)}
        await self._put(CONFIG_MAPS, obj, self._one(SPACES))

    async def _remove_config_map(self) -> None:
        await self._owner().delete(CONFIG_MAPS, self._one(NAMES), self._one(SPACES))

    async def _put_deployment(self) -> None:
        obj = deployment(self._one(NAMES))
        obj["spec"]["replicas"] = self._one((1, 2))
        await self._put(DEPLOYMENTS, obj, self._one(SPACES))

    async def _remove_deployment(self) -> None:
        await self._owner().delete(DEPLOYMENTS, self._one(NAMES), self._one(SPACES))

    async def _put_role(self) -> None:
        rule = {"apiGroups": [""], "resources": [self._one(("pods", "nodes"))], "verbs": ["get"]}
        metadata = {"name": self._one(NAMES), "labels": {"go": self._one(("yes", "no"))}}
        body = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
        await self._put(CLUSTER_ROLES, {**body, "metadata": metadata, "rules": [rule]})

    async def _remove_role(self) -> None:
        await self._owner().delete(CLUSTER_ROLES, self._one(NAMES))

    async def _define_widgets(self) -> None:
        await self._put(DEFINITIONS, widget_definition())

    async def _undefine_widgets(self) -> None:
        if self._ids.fraction() < 0.3:
            await self._owner().delete(DEFINITIONS, "widgets.example.io")

    async def _put_widget(self) -> None:
        metadata = {"name": self._one(NAMES)}
        body = {"apiVersion": "example.io/v1", "kind": "Widget", "metadata": metadata}
        await self._put(WIDGETS, {**body, "spec": {"n": self._one((1, 2))}}, self._one(SPACES))

    async def _remove_widget(self) -> None:
        await self._owner().delete(WIDGETS, self._one(NAMES), self._one(SPACES))

    async def _put_customizer(self) -> None:
        path = self._one(("$.data.k", "$.data['new']", "nonsense", "$.metadata.annotations.m"))
        metadata: Object = {"name": "c"}
        if self._ids.fraction() < 0.5:
            metadata["annotations"] = {"edge.kcp.io/expand-parameters": "true"}
        replacement = {"path": path, "value": self._one(('"%(env)"', '"fixed"'))}
        body = {"apiVersion": EDGE, "kind": "Customizer", "metadata": metadata}
        await self._put(CUSTOMIZERS, {**body, "replacements": [replacement]}, self._one(SPACES))

    async def _remove_customizer(self) -> None:
        await self._owner().delete(CUSTOMIZERS, "c", self._one(SPACES))

    async def _rebind(self) -> None:
        """Bind the workload kinds under another name, or unbind them, which removes objects."""
        if self._ids.fraction() < 0.6:
            return
        owner = self._one(OWNERS)
        for name in ("bind-kube", "a-kube"):
            try:
                await self._hub.at(f"root:{owner}").delete(API_BINDINGS, name)
            except ApiError:
                continue
        await asyncio.sleep(self._ids.fraction())
        await self._hub.bind(
            f"root:{owner}", self._one(("bind-kube", "a-kube")), "root:compute", "kubernetes"
        )

    # -- placement ---------------------------------------------------------------------------

    def _spec(self) -> Object:
        names = {"apiGroup": "", "resources": ["namespaces"], "resourceNames": self._some(SPACES)}
        roles = {
            "apiGroup": "rbac.authorization.k8s.io",
            "resources": ["clusterroles"],
            "labelSelectors": [{"matchLabels": {"go": "yes"}}],
        }
        bindings = {
            "apiGroup": "apis.kcp.io",
            "resources": ["apibindings"],
            "resourceNames": self._one((["*"], ["bind-kube"], [])),
        }
        up = {"apiGroup": self._one(("apps", "g")), "resources": ["deployments"], "names": ["*"]}
        return {
            "namespaceSelector": self._one(
                ({"matchLabels": {"go": "yes"}}, {}, {"matchLabels": {"t": "x"}})
            ),
            "nonNamespacedObjects": self._some([names, roles, bindings]),
            "upsync": self._some([up]),
        }

    async def _place(self) -> None:
        await self._hub.place(
            self._one(PLACEMENTS), *self._some(EDGES), owner=self._one(OWNERS), **self._spec()
        )

    async def _edit_placement(self) -> None:
        client, name = self._owner(), self._one(PLACEMENTS)
        live = await client.get(EDGE_PLACEMENTS, name)
        await client.update(EDGE_PLACEMENTS, {**live, "spec": {**live["spec"], **self._spec()}})

    async def _reslice(self) -> None:
        edges = self._some(EDGES)
        client, name = self._owner(), self._one(PLACEMENTS)
        destinations = [await self._hub.destination(edge) for edge in edges]
        destinations += [
            await self._hub.destination(edge, self._one(EDGES)) for edge in self._some(edges)[:1]
        ]
        unique = {tuple(sorted(each.items())): each for each in destinations}
        await client.patch(SLICES, name, {"destinations": list(unique.values())})

    async def _unplace(self) -> None:
        if self._ids.fraction() < 0.4:
            return
        await self._hub.unplace(self._one(PLACEMENTS), self._one(OWNERS))

    async def _relabel_location(self) -> None:
        patch = {"metadata": {"labels": {"env": self._one(("prod", "test"))}}}
        await self._hub.at("root:imw").patch(LOCATIONS, self._one(EDGES), patch)

    # -- accidents ---------------------------------------------------------------------------

    async def _drift(self) -> None:
        """Change or remove a copy by hand."""
        edge = self._one(EDGES)
        copies = sorted(await self._hub.copies(edge))
        if not copies:
            return
        item, mailbox = self._one(copies), self._hub.mailbox(edge)
        if self._ids.fraction() < 0.4:
            await mailbox.delete(_gvr(item), item.name, item.namespace)
            return
        patch: Any = self._one(
            (
                {"metadata": {"labels": {"drift": "x"}}},
                {"metadata": {"annotations": {"drift": "x"}}},
                {"metadata": {"labels": {"edge.kcp.io/projected": None}}},
                {"metadata": {"annotations": {"edge.kcp.io/applied": "3"}}},
            )
        )
        if item.resource == "configmaps":
            patch = {"data": {"k": "drift"}}
        await mailbox.patch(_gvr(item), item.name, patch, item.namespace)

    async def _drift_config(self) -> None:
        mailbox = self._hub.mailbox(self._one(EDGES))
        if self._ids.fraction() < 0.5:
            await mailbox.delete(SYNCER_CONFIGS, "the-one")
        else:
            await mailbox.patch(SYNCER_CONFIGS, "the-one", {"spec": {"clusterScope": []}})

    async def _put_foreign(self) -> None:
        edge, space = self._one(EDGES), self._one(SPACES)
        await self._hub.mailbox(edge).create(CONFIG_MAPS, config_map("foreign"), space)

    def _owner(self) -> Any:
        return self._hub.at(f"root:{self._one(OWNERS)}")

    async def _put(self, gvr: GroupVersionResource, obj: Object, space: str = "") -> None:
        await self._hub.put(gvr, obj, space, self._one(OWNERS))


def _gvr(item: ObjectRef) -> GroupVersionResource:
    return GroupVersionResource(item.group, _VERSIONS.get(item.group, "v1"), item.resource)
