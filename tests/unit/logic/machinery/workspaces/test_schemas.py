"""Schemas that an export offers, as types that are served."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.kcp import compute, edge, tenancy
from skerry.logic.machinery import crd
from skerry.logic.machinery.builtin import builtin_resources
from skerry.logic.machinery.workspaces.schemas import (
    native_schema_object,
    resources_of,
    schema_object,
)


@pytest.mark.parametrize(
    "definition",
    [*edge.definitions(), tenancy.workspace(), tenancy.workspace_type(), compute.sync_target(),
     compute.location()],
    ids=lambda d: d["metadata"]["name"],
)  # fmt: skip
def test_a_schema_brings_the_type_its_definition_defines(definition: dict[str, Any]) -> None:
    [own] = crd.resources_of(definition)
    [bound] = resources_of(schema_object(definition, "v1"), "id")
    assert (bound.info, bound.schema, bound.identity) == (own.info, own.schema, "id")


def test_native_kinds_are_served_in_their_own_form_but_inert() -> None:
    native = next(r for r in builtin_resources() if r.info.resource == "deployments")
    [served] = resources_of(native_schema_object(native, "v124"), "id")
    assert served.schema is native.schema
    assert served.columns == native.columns
    obj = {"metadata": {"name": "d"}, "spec": {}}
    served.default(obj)
    served.prepare_create(obj)
    assert obj == {"metadata": {"name": "d"}, "spec": {}}


@pytest.mark.parametrize(
    ("plural", "field"),
    [
        ("deployments", "replicas"),
        ("deployments", "progressDeadlineSeconds"),
        ("statefulsets", "replicas"),
        ("daemonsets", "minReadySeconds"),
        ("jobs", "parallelism"),
        ("cronjobs", "failedJobsHistoryLimit"),
    ],
)
def test_counts_of_native_kinds_are_not_below_zero(plural: str, field: str) -> None:
    native = next(
        r
        for r in builtin_resources()
        if r.info.resource == plural and r.info.version == r.storage_version
    )
    [served] = resources_of(native_schema_object(native, "v124"), "id")
    needed: dict[str, Any] = {"selector": {}, "template": {}, "serviceName": "s"}
    needed |= {"schedule": "@daily", "jobTemplate": {}}
    wrong = {"metadata": {"name": "w"}, "spec": {**needed, field: -1}}
    right = {"metadata": {"name": "w"}, "spec": {**needed, field: 0}}
    assert served.validate_create(right) == []
    (error,) = served.validate_create(wrong)
    assert str(error) == f"spec.{field}: Invalid value: -1: must be greater than or equal to 0"
    assert served.validate_update(wrong, right) == [error]
    # What an earlier version took can still be changed otherwise.
    assert served.validate_update({**wrong, "metadata": {"name": "w", "labels": {}}}, wrong) == []
