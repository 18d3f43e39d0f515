"""A deliberately simple twin of the index: it scans everything, every time."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.machinery.selectors import Selector

# In place of a group, a resource and whether it is namespaced.
ANYTHING = ("", "", True)


@dataclass
class Reference:
    """Objects as they are, by place."""

    placements: dict[ObjectRef, Object] = field(default_factory=dict)
    locations: dict[ObjectRef, Object] = field(default_factory=dict)
    sync_targets: dict[ObjectRef, Object] = field(default_factory=dict)
    workspaces: dict[str, Mapping[str, str]] = field(default_factory=dict)
    grants: dict[ObjectRef, Object] = field(default_factory=dict)
    # Workspace objects: the cluster each names, and its labels.
    tree: dict[ObjectRef, tuple[str, Mapping[str, str]]] = field(default_factory=dict)
    remembered: set[str] = field(default_factory=set)

    def destinations(
        self, ref: ObjectRef, present: Collection[ObjectRef] = ()
    ) -> list[Destination]:
        """Return the destinations of a placement, given the Locations it has already."""
        if ref not in self.placements:
            return []
        spec = self.placements[ref]["spec"]
        found = []
        for where, location in self.locations.items():
            if not self._selected(spec, where, location):
                continue
            if not self.is_admitted(ref.cluster, where) and where not in present:
                continue
            instances = Selector.from_label_selector(location["spec"].get("instanceSelector"))
            for at, target in self.sync_targets.items():
                if at.cluster == where.cluster and instances.matches(target["metadata"]["labels"]):
                    uid = target["metadata"]["uid"]
                    found.append(Destination(where.cluster, where.name, at.name, uid))
        return sorted(found)

    # -- consent -----------------------------------------------------------------------------

    def mode(self, inventory: str) -> str | None:
        modes = {g["spec"]["mode"] for at, g in self.grants.items() if at.cluster == inventory}
        if "Enforce" in modes or inventory in self.remembered:
            return "Enforce"
        return "Observe" if modes else None

    def is_admitted(
        self, source: str, where: ObjectRef, kind: tuple[str, str, bool] = ANYTHING
    ) -> bool:
        """Tell whether *source* may place at a Location; a *kind*, if one is given."""
        return self.mode(where.cluster) != "Enforce" or self._is_granted(source, where, kind)

    def would_be_refused(self, source: str, where: ObjectRef) -> bool:
        """Tell whether grants that only observe would refuse *source*."""
        mode = self.mode(where.cluster)
        return mode == "Observe" and not self._is_granted(source, where, ANYTHING)

    def instances(self, where: ObjectRef) -> set[str]:
        """Return the UIDs of the SyncTargets that are instances of a Location."""
        if where not in self.locations:
            return set()
        spec = self.locations[where]["spec"]
        selector = Selector.from_label_selector(spec.get("instanceSelector"))
        return {
            target["metadata"]["uid"]
            for at, target in self.sync_targets.items()
            if at.cluster == where.cluster
            and selector.matches(target["metadata"].get("labels") or {})
        }

    def rules(self, source: str, where: ObjectRef) -> list[Object]:
        """Return the rules of the grants that count and admit *source* to a Location."""
        enforced = self.mode(where.cluster) == "Enforce"
        return [
            rule
            for at, grant in self.grants.items()
            if at.cluster == where.cluster
            and (grant["spec"]["mode"] == "Enforce" or not enforced)
            and self._admits(grant["spec"], source, where)
            for rule in grant["spec"]["rules"]
        ]

    def _is_granted(self, source: str, where: ObjectRef, kind: tuple[str, str, bool]) -> bool:
        found = self.rules(source, where)
        return bool(found) if kind == ANYTHING else any(_covers(rule, kind) for rule in found)

    def _admits(self, spec: Object, source: str, where: ObjectRef) -> bool:
        if where not in self.locations:
            return False
        chosen = spec["locations"]
        by_labels = Selector.from_label_selector(chosen.get("selector"))
        labels = self.locations[where]["metadata"]["labels"]
        if where.name not in chosen["names"] and not by_labels.matches(labels):
            return False
        path = self.path(source)
        if path and path in spec["workspaces"]["paths"]:
            return True
        return any(
            path
            and path.rpartition(":")[0] == each["path"]
            and Selector.from_label_selector(each["selector"]).matches(self._own_labels(source))
            for each in spec["workspaces"]["childrenOf"]
        )

    def path(self, cluster: str, *, depth: int = 20) -> str:
        if cluster == "root":
            return "root"
        claims = [ref for ref, (named, _) in self.tree.items() if named == cluster]
        if len(claims) != 1 or not depth:
            return ""
        parent = self.path(claims[0].cluster, depth=depth - 1)
        return f"{parent}:{claims[0].name}" if parent else ""

    def _own_labels(self, cluster: str) -> Mapping[str, str]:
        return next(labels for named, labels in self.tree.values() if named == cluster)

    def _selected(self, spec: Object, where: ObjectRef, location: Object) -> bool:
        labels = location["metadata"]["labels"]
        selectors = [Selector.from_label_selector(s) for s in spec["locationSelectors"]]
        if not any(selector.matches(labels) for selector in selectors):
            return False
        if "locationWorkspaceSelector" not in spec:
            return True
        workspace = Selector.from_label_selector(spec["locationWorkspaceSelector"])
        return workspace.matches(self.workspaces.get(where.cluster, {}))


def _covers(rule: Object, kind: tuple[str, str, bool]) -> bool:
    group, resource, namespaced = kind
    return (
        ("*" in rule["apiGroups"] or group in rule["apiGroups"])
        and ("*" in rule["resources"] or resource in rule["resources"])
        and rule.get("scope", "Namespaced") in ("*", "Namespaced" if namespaced else "Cluster")
    )
