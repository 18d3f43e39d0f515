"""The class of a claim that names none."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.logic.machinery.storage_classes import IS_DEFAULT, default_class, has_class

BETA = "storageclass.beta.kubernetes.io/is-default-class"


def storage_class(name: str, created: str, mark: str = IS_DEFAULT, value: str = "true") -> Any:
    metadata = {"name": name, "creationTimestamp": created, "annotations": {mark: value}}
    return {"metadata": metadata}


def test_the_newest_default_is_taken_and_of_equally_new_ones_the_first_by_name() -> None:
    old, one, two = (
        storage_class("old", "2026-01-01T00:00:00Z"),
        storage_class("b", "2026-01-02T00:00:00Z", BETA),
        storage_class("a", "2026-01-02T00:00:00Z"),
    )
    no = storage_class("no", "2026-01-03T00:00:00Z", value="false")
    assert default_class([one, old, two, no]) == two
    assert default_class([no]) is None


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ({"metadata": {}, "spec": {}}, False),
        ({"metadata": {}, "spec": {"storageClassName": ""}}, True),
        (
            {
                "metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": "x"}},
                "spec": {},
            },
            True,
        ),
    ],
)
def test_an_empty_name_is_a_choice_and_so_is_the_former_annotation(
    claim: Any, *, expected: bool
) -> None:
    assert has_class(claim) is expected
