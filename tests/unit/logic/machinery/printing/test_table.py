"""Tables and metadata-only answers have the shape clients decode."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from skerry.api.errors import BadRequest
from skerry.logic.machinery.printing import (
    columns_for,
    partial_metadata_list,
    render_table,
)

NOW = datetime(2025, 3, 1, 12, 0, tzinfo=UTC)
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "creationTimestamp": "2025-03-01T11:55:00Z"},
    "status": {"phase": "Succeeded"},
}
CONFIG: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}


def test_a_table_has_definitions_cells_and_metadata() -> None:
    table = render_table(columns_for("", "ConfigMap"), [CONFIG], NOW, "", {"resourceVersion": "7"})
    assert table["kind"] == "Table"
    assert table["apiVersion"] == "meta.k8s.io/v1"
    assert table["metadata"] == {"resourceVersion": "7"}
    assert set(table["columnDefinitions"][0]) == {
        "name",
        "type",
        "format",
        "description",
        "priority",
    }
    assert table["columnDefinitions"][0]["format"] == "name"
    assert table["rows"] == [
        {
            "cells": ["c", 0, "<unknown>"],
            "object": {
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": {"name": "c"},
            },
        }
    ]


@pytest.mark.parametrize(("include", "included"), [("None", None), ("Object", CONFIG)])
def test_rows_carry_what_the_client_asked_for(include: str, included: Any) -> None:
    table = render_table(columns_for("", "ConfigMap"), [CONFIG], NOW, include)
    assert table["rows"][0]["object"] == included


def test_an_unknown_wish_is_refused() -> None:
    with pytest.raises(BadRequest, match='unrecognized includeObject value: "All"'):
        render_table((), [], NOW, "All")


def test_later_tables_of_a_watch_have_no_head() -> None:
    table = render_table(columns_for("", "ConfigMap"), [CONFIG], NOW, headers=False)
    assert table["columnDefinitions"] is None


def test_pods_that_ended_are_marked_completed() -> None:
    row = render_table(columns_for("", "Pod"), [POD], NOW)["rows"][0]
    assert row["conditions"][0]["type"] == "Completed"


def test_the_beta_version_of_the_table_is_served_too() -> None:
    table = render_table(columns_for("", "ConfigMap"), [CONFIG], NOW, version="v1beta1")
    assert table["apiVersion"] == "meta.k8s.io/v1beta1"
    assert table["rows"][0]["object"]["apiVersion"] == "meta.k8s.io/v1beta1"


def test_a_list_can_be_reduced_to_metadata() -> None:
    listed = partial_metadata_list([POD, CONFIG], {"resourceVersion": "9"})
    assert listed["kind"] == "PartialObjectMetadataList"
    assert listed["metadata"] == {"resourceVersion": "9"}
    assert [item["metadata"]["name"] for item in listed["items"]] == ["p", "c"]
    assert all("status" not in item for item in listed["items"])
