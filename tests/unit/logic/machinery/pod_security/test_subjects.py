"""What a policy is about, and which changes matter to it."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.logic.machinery.pod_security.subjects import TEMPLATES, is_significant, template_of

POD = {"spec": {"containers": [{"name": "a", "image": "x"}]}}


@pytest.mark.parametrize(("kind", "path"), list(TEMPLATES.items()))
def test_each_kind_that_makes_pods_has_its_template_in_its_place(
    kind: tuple[str, str], path: tuple[str, ...]
) -> None:
    obj: Any = POD
    for name in reversed(path):
        obj = {name: obj}
    assert template_of(kind, obj) is POD


def test_other_kinds_and_broken_objects_have_none() -> None:
    assert template_of(("", "pods"), POD) is None
    assert template_of(("apps", "deployments"), {"spec": None}) is None
    assert template_of(("apps", "deployments"), {"spec": {"template": "x"}}) is None


def pod(*containers: tuple[str, str], init: tuple[tuple[str, str], ...] = ()) -> dict[str, Any]:
    def listed(found: Any) -> list[dict[str, str]]:
        return [{"name": name, "image": image} for name, image in found]

    return {"spec": {"containers": listed(containers), "initContainers": listed(init)}}


def test_labels_are_no_matter_and_images_and_containers_are() -> None:
    old = pod(("a", "x"))
    assert not is_significant({**old, "metadata": {"labels": {"b": "c"}}}, old)
    assert is_significant(pod(("a", "y")), old)
    assert is_significant(pod(("b", "x")), old)
    assert is_significant(pod(("a", "x"), ("b", "x")), old)
    assert is_significant(pod(("a", "x"), init=(("i", "x"),)), old)
    assert is_significant({"spec": None}, old)
