"""What is born with a server is what a client could have written."""

from __future__ import annotations

from skerry.logic.machinery.builtin.resources import builtin_resources
from skerry.logic.machinery.flow_bootstrap import flow_control_objects


def test_every_object_passes_the_rules_of_its_kind() -> None:
    resources = {(r.info.group, r.info.kind): r for r in builtin_resources()}
    for obj in flow_control_objects():
        resource = resources["flowcontrol.apiserver.k8s.io", obj["kind"]]
        resource.default(obj)
        assert resource.validate_create(obj) == [], obj["metadata"]["name"]


def test_there_are_thirteen_schemas_and_eight_levels() -> None:
    kinds = [obj["kind"] for obj in flow_control_objects()]
    assert kinds.count("FlowSchema") == 13
    assert kinds.count("PriorityLevelConfiguration") == 8
