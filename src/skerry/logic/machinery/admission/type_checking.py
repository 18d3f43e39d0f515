"""Warnings of what a policy's expressions read and the kinds it matches do not have.

An expression is compiled once more for every kind that the policy's rules name outright, with
``object`` of that kind's own type. What then fails is only a warning in ``status.typeChecking``:
the policy may match other kinds too, and a field may come with the next version of a schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import orjson

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.api.schema import Schema
from skerry.kit.invariant import present
from skerry.logic.machinery.admission.policies import (
    BOOL,
    STRING,
    ExpressionError,
    Scopes,
    compiled,
)
from skerry.logic.machinery.cel import types
from skerry.logic.machinery.cel.types import CelType, declared
from skerry.logic.machinery.resource import Resource

# As many kinds as Kubernetes checks.
MAX_KINDS: Final = 10
_CONFIG_MAPS: Final = GroupVersionResource("", "v1", "configmaps")
_COMPILATION_FAILED: Final = "compilation failed: "


def named_types(spec: Mapping[str, Any]) -> Iterator[GroupVersionResource]:
    """Yield the types that a policy's rules name without a wildcard; subresources are left out."""
    for rule in (spec.get("matchConstraints") or {}).get("resourceRules") or ():
        for group in rule.get("apiGroups") or ():
            for version in rule.get("apiVersions") or ():
                for resource in rule.get("resources") or ():
                    if "*" not in (group, version) and not {"*", "/"} & set(resource):
                        yield GroupVersionResource(group, version, resource)


def checked_types(
    policy: Mapping[str, Any], builtin: Iterable[Resource], custom: Mapping[str, Any]
) -> str:
    """Return ``status.typeChecking`` of a policy, as JSON.

    *builtin* are Kubernetes' own types; *custom* has the kind and the schema of others, by
    ``group/version/resource``.
    """
    spec = policy.get("spec") or {}
    known = {resource.info.gvr: resource for resource in builtin}
    metadata = present(known[_CONFIG_MAPS].schema.field("metadata"), "ConfigMaps have metadata")
    kinds: dict[str, CelType] = {}
    for name in named_types(spec):
        if name in known:
            kind, schema = known[name].info.kind, known[name].schema
        elif found := custom.get("/".join(name)):
            kind, schema = found["kind"], Schema(found["schema"])
        else:
            continue
        kinds.setdefault(f"{name.group}/{name.version}, Kind={kind}", object_type(schema, metadata))
    warnings = warnings_of(spec, list(kinds.items()))
    return orjson.dumps({"expressionWarnings": warnings} if warnings else {}).decode()


def object_type(schema: Schema, metadata: Schema) -> CelType:
    """Return the type of whole objects of *schema*, whose metadata is as *metadata* says."""
    try:
        made = declared(schema)
    except RecursionError:
        # A schema that contains itself, such as that of definitions, has no type.
        made = None
    if made is None or made.name != "object":
        return types.DYN
    described = declared(metadata) or types.DYN
    fields = {
        "apiVersion": ("apiVersion", types.STRING),
        "kind": ("kind", types.STRING),
        **made.fields,
        "metadata": ("metadata", described),
    }
    return replace(made, fields=fields)


def warnings_of(spec: Mapping[str, Any], kinds: Sequence[tuple[str, CelType]]) -> list[Object]:
    """Return ``expressionWarnings``; *kinds* are the names and types of what is matched."""
    found: dict[str, list[str]] = {}
    for shown, kind in kinds[:MAX_KINDS]:
        for field, complaint in _complaints(spec, kind):
            found.setdefault(field, []).append(f"{shown}: {complaint}\n")
    return [
        {"fieldRef": field, "warning": "\n".join(texts)} for field, texts in sorted(found.items())
    ]


def _complaints(spec: Mapping[str, Any], kind: CelType) -> Iterator[tuple[str, str]]:
    scopes = Scopes(spec, kind)
    for variable in spec.get("variables") or ():
        try:
            made = compiled(variable.get("expression") or "", scopes.validations).type
        except ExpressionError:
            # What is built on it is not blamed for it.
            made = types.DYN
        scopes.declare(variable.get("name") or "", made)
    for index, validation in enumerate(spec.get("validations") or ()):
        for name, scope, wanted in (
            ("expression", scopes.validations, BOOL),
            ("messageExpression", scopes.messages, STRING),
        ):
            text = validation.get(name)
            if not text:
                continue
            try:
                compiled(text, scope, wanted)
            except ExpressionError as error:
                why = str(error).removeprefix(_COMPILATION_FAILED)
                yield f"spec.validations[{index}].{name}", why
