"""On which nodes a DaemonSet should run."""

from __future__ import annotations

from skerry.api.objects import Object
from skerry.logic.workloads.nodes import selects


class TestNodes:
    node: Object = {  # noqa: RUF012 - read only
        "metadata": {"name": "n1", "labels": {"zone": "a"}},
        "spec": {},
    }

    def affine(self, *terms: Object) -> Object:
        required = {"nodeSelectorTerms": list(terms)}
        key = "requiredDuringSchedulingIgnoredDuringExecution"
        return {"affinity": {"nodeAffinity": {key: required}}}

    def test_selector_and_affinity_choose_nodes(self) -> None:
        assert selects({}, self.node)
        assert selects({"nodeSelector": {"zone": "a"}}, self.node)
        assert not selects({"nodeSelector": {"zone": "b"}}, self.node)
        assert not selects({"nodeName": "n2"}, self.node)
        by_name = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
        assert selects(self.affine({"matchFields": [by_name]}), self.node)
        by_zone = {"key": "zone", "operator": "NotIn", "values": ["a"]}
        assert not selects(self.affine({"matchExpressions": [by_zone]}), self.node)
        assert not selects(self.affine({}), self.node), "an empty term allows nothing"
