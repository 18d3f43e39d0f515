"""The rules of resources inside resources (``x-kubernetes-embedded-resource``).

They need an apiVersion and a kind, and their metadata must be such as an object could have.
"""

from __future__ import annotations

from typing import Any

from skerry.api.errors import FieldError
from skerry.logic.machinery import names
from skerry.logic.machinery.schema.findings import Finding
from skerry.logic.machinery.schema.paths import Path, bracketed

_STRINGS = ("name", "generateName", "namespace", "uid", "resourceVersion", "selfLink")
_STRING_MAPS = ("labels", "annotations")


def embedded_rule(value: Any, path: Path, found: list[Finding]) -> None:
    """Check the apiVersion, kind and metadata of an embedded resource."""
    errors = [
        *_api_version(value, bracketed((path, "apiVersion"))),
        *_kind(value, bracketed((path, "kind"))),
    ]
    if value.get("metadata") is not None:
        errors += _metadata(value["metadata"], bracketed((path, "metadata")))
    found.extend(Finding(path, error) for error in errors)


def _api_version(value: dict[str, Any], where: str) -> list[FieldError]:
    if "apiVersion" not in value:
        return [FieldError.required(where)]
    text = value["apiVersion"]
    if not isinstance(text, str):
        return [FieldError.invalid(where, text, "must be a string")]
    if not text:
        return [FieldError.invalid(where, text, "must not be empty")]
    if text.count("/") > 1:
        return [FieldError.invalid(where, text, f"unexpected GroupVersion string: {text}")]
    return []


def _kind(value: dict[str, Any], where: str) -> list[FieldError]:
    if "kind" not in value:
        return [FieldError.required(where)]
    text = value["kind"]
    if not isinstance(text, str):
        return [FieldError.invalid(where, text, "must be a string")]
    if not text:
        return [FieldError.invalid(where, text, "must not be empty")]
    wrong = names.dns1035_label(text.lower())
    if wrong:
        detail = "may have mixed case, but should otherwise match: " + ",".join(wrong)
        return [FieldError.invalid(where, text, detail)]
    return []


def _metadata(meta: Any, where: str) -> list[FieldError]:
    if not isinstance(meta, dict):
        return [FieldError.invalid(where, meta, "must be an object")]
    errors = [
        FieldError.invalid(f"{where}.{name}", meta[name], "must be a string")
        for name in _STRINGS
        if meta.get(name) is not None and not isinstance(meta[name], str)
    ]
    for name in _STRING_MAPS:
        errors += _string_map(meta.get(name), f"{where}.{name}")
    return errors or _names(meta, where)


def _string_map(members: Any, where: str) -> list[FieldError]:
    if members is None:
        return []
    if not isinstance(members, dict):
        return [FieldError.invalid(where, members, "must be an object")]
    return [
        FieldError.invalid(f"{where}[{key}]", text, "must be a string")
        for key, text in members.items()
        if not isinstance(text, str)
    ]


def _names(meta: dict[str, Any], where: str) -> list[FieldError]:
    errors = [
        FieldError.invalid(f"{where}.name", meta["name"], text)
        for text in names.path_segment(meta.get("name") or "")
    ]
    for key, text in (meta.get("labels") or {}).items():
        errors += [FieldError.invalid(f"{where}.labels", key, w) for w in names.qualified_name(key)]
        errors += [FieldError.invalid(f"{where}.labels", text, w) for w in names.label_value(text)]
    for key in meta.get("annotations") or {}:
        wrong = names.qualified_name(key.lower())
        errors += [FieldError.invalid(f"{where}.annotations", key, text) for text in wrong]
    return errors
