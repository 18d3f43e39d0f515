"""Paths into an object, as the two families of messages write them."""

from __future__ import annotations

from skerry.logic.machinery.schema.paths import MapKey, Path, bracketed, dotted, segments


def path(*steps: str | int) -> Path:
    found: Path = None
    for step in steps:
        found = (found, step)
    return found


def test_segments_are_in_order_from_the_root() -> None:
    assert segments(path("spec", "ports", 0, "name")) == ["spec", "ports", 0, "name"]
    assert segments(None) == []


def test_schema_rules_write_keys_of_maps_like_fields() -> None:
    it = path("spec", MapKey("a.b/c"), 3)
    assert dotted(it) == "spec.a.b/c[3]"
    assert dotted(it, "root") == "root.spec.a.b/c[3]"


def test_field_paths_write_keys_of_maps_in_brackets() -> None:
    it = path("metadata", "labels", MapKey("app"))
    assert bracketed(it) == "metadata.labels[app]"
    assert bracketed(path(MapKey("app")), "data") == "data[app]"


def test_the_root_is_its_prefix() -> None:
    assert dotted(None) == bracketed(None) == ""
    assert dotted(None, "spec") == "spec"
