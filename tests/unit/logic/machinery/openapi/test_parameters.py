"""Parameters of the API: each once, described, and used by somebody."""

from __future__ import annotations

from skerry.logic.machinery.openapi import parameters
from skerry.logic.machinery.openapi.parameters import (
    DELETING,
    DELETING_MANY,
    LISTING,
    PARAMETERS,
    PATCHING,
    WRITING,
)

IN_PATH = {"name", "namespace", "path"}


def test_every_parameter_is_there_once_and_described() -> None:
    assert len(PARAMETERS) == len(parameters._TABLE)
    for name, each in PARAMETERS.items():
        assert each.name == name
        assert each.description.endswith(".")
        assert each.type in ("string", "boolean", "integer")


def test_what_stands_in_a_path_is_marked_so() -> None:
    assert {name for name, each in PARAMETERS.items() if each.location == "path"} == IN_PATH


def test_every_parameter_is_used_and_every_use_is_known() -> None:
    used = {*LISTING, *WRITING, *PATCHING, *DELETING, *DELETING_MANY, *IN_PATH, "pretty"}
    assert used == set(PARAMETERS)


def test_deleting_many_selects_as_listing_does_and_watches_nothing() -> None:
    assert {"labelSelector", "fieldSelector"} <= set(DELETING_MANY)
    assert set(DELETING) <= set(DELETING_MANY)
    assert not {"watch", "allowWatchBookmarks"} & set(DELETING_MANY)
    assert set(PATCHING) - set(WRITING) == {"force"}
