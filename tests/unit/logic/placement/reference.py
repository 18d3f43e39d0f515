"""A deliberately simple twin of the index: it scans everything, every time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from skerry.logic.placement.records import Destination, Place
from skerry.logic.selectors import Selector

Object = dict[str, Any]


@dataclass
class Reference:
    """Objects as they are, by place."""

    placements: dict[Place, Object] = field(default_factory=dict)
    locations: dict[Place, Object] = field(default_factory=dict)
    sync_targets: dict[Place, Object] = field(default_factory=dict)
    workspaces: dict[str, Mapping[str, str]] = field(default_factory=dict)

    def destinations(self, place: Place) -> list[Destination]:
        if place not in self.placements:
            return []
        spec = self.placements[place]["spec"]
        found = []
        for where, location in self.locations.items():
            if not self._selected(spec, where, location):
                continue
            instances = Selector.from_label_selector(location["spec"].get("instanceSelector"))
            for at, target in self.sync_targets.items():
                if at.cluster == where.cluster and instances.matches(target["metadata"]["labels"]):
                    uid = target["metadata"]["uid"]
                    found.append(Destination(where.cluster, where.name, at.name, uid))
        return sorted(found)

    def _selected(self, spec: Object, where: Place, location: Object) -> bool:
        labels = location["metadata"]["labels"]
        selectors = [Selector.from_label_selector(s) for s in spec["locationSelectors"]]
        if not any(selector.matches(labels) for selector in selectors):
            return False
        if "locationWorkspaceSelector" not in spec:
            return True
        workspace = Selector.from_label_selector(spec["locationWorkspaceSelector"])
        return workspace.matches(self.workspaces.get(where.cluster, {}))
