"""The object that a create is compared with: whose fields nobody owns for creating it."""

from __future__ import annotations

from skerry.api.schema import Schema
from skerry.logic.machinery.apply.blank import blank_for
from skerry.server.catalogue import builtin_types


def blank_of(kind: str) -> dict[str, object]:
    [resource] = [each for each in builtin_types() if each.info.kind == kind][:1]
    return blank_for(resource.schema)


def test_plain_structs_of_built_in_kinds_are_there_from_the_beginning() -> None:
    deployment = blank_of("Deployment")
    assert deployment["spec"] == {
        "selector": None,
        "strategy": {},
        "template": {"metadata": {}, "spec": {"containers": None}},
    }
    assert deployment["status"] == {}
    assert blank_of("ConfigMap") == {"metadata": {}}
    assert "template" in blank_of("PodTemplate")


def test_custom_kinds_and_unknown_ones_have_no_blank() -> None:
    assert blank_for(None) == {"metadata": {}}
    custom = Schema({"type": "object", "properties": {"spec": {}, "status": {}}}, name="x.y.Z")
    assert blank_for(custom) == {"metadata": {}}
