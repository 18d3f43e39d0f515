"""Builders the scheduler's tests share."""

from __future__ import annotations

from typing import Any

from skerry.api.objects import Object
from skerry.kit.ids import SeededIds
from skerry.scheduler.cache.cluster import Cluster
from skerry.scheduler.config.load import Configuration, default_configuration
from skerry.scheduler.cycle import Decider, Profile
from skerry.scheduler.framework.evaluation import Evaluator
from skerry.scheduler.framework.handle import Handle
from skerry.scheduler.framework.profile import assemble
from skerry.scheduler.framework.registry import Registry
from skerry.scheduler.framework.runner import Framework
from skerry.scheduler.registry import in_tree_registry


def node(name: str, labels: Object | None = None, **fields: Any) -> Object:
    allocatable = {"cpu": "4", "memory": "32Gi", "pods": "110"} | fields.pop("allocatable", {})
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": fields,
        "status": {"allocatable": allocatable},
    }


def pod(name: str, labels: Object | None = None, **spec: Any) -> Object:
    requests = spec.pop("requests", {"cpu": "100m", "memory": "500Mi"})
    status = spec.pop("status", {})
    namespace = spec.pop("namespace", "default")
    container = {"name": "main", "image": "pause", "resources": {"requests": requests}}
    return {
        "metadata": {"name": name, "uid": name, "namespace": namespace, "labels": labels or {}},
        "spec": {"containers": [container], **spec},
        "status": status,
    }


class Bench:
    """A cluster and one profile to decide with; ties go to the first node."""

    def __init__(
        self, configuration: Configuration | None = None, registry: Registry | None = None
    ) -> None:
        self.cluster = Cluster()
        self.handle = Handle(self.cluster, ids=SeededIds(1), framework=lambda: self.framework)
        configuration = configuration or default_configuration()
        assembled = assemble(configuration.profiles[0], registry or in_tree_registry(), self.handle)
        self.framework: Framework[Any, Any] = Framework(assembled)
        self.profile = Profile(self.framework, Evaluator(self.framework, self.cluster.table))
        self.decider = Decider(self.cluster, self.handle.nominations, SeededIds(1), ties="first")

    def nodes(self, *found: Object) -> Bench:
        for item in found:
            self.cluster.set_node(item)
        return self

    def place(self, item: Object, name: str) -> None:
        item = {**item, "spec": {**item["spec"], "nodeName": name}}
        self.cluster.set_pod(self.cluster.reader.read(item))

    def decide(self, item: Object) -> str:
        return self.decider.decide(self.profile, self.cluster.reader.read(item))[0]

    def why(self, item: Object) -> str:
        name, found = self.decider.decide(self.profile, self.cluster.reader.read(item))
        return f"on {name}" if name else found.diagnosis.message()
