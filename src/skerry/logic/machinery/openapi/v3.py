"""OpenAPI v3: one document per group version, and the index that names them with their hashes.

A client reads the index, and a document only when its hash is new to it. The hash is taken from
what the document is made of, so the index costs nothing but the resources' facts and no document
is built before somebody asks for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from skerry.api.kinds import GroupVersion
from skerry.api.schema import Definitions
from skerry.logic.machinery.discovery import content_hash
from skerry.logic.machinery.openapi.operations import (
    MEDIA_TYPES,
    RESPONSE_TEXTS,
    SECURITY_SCHEMES,
    Operation,
    group_version_operation,
    operations,
    root_path,
)
from skerry.logic.machinery.openapi.parameters import PARAMETERS, Parameter
from skerry.logic.machinery.openapi.schemas import (
    V3,
    built_in_schema,
    closure,
    custom_definitions,
    reference,
    referenced,
)
from skerry.logic.machinery.resource import Resource

# Counted up when the documents' form changes, so that clients do not trust what they cached.
_FORM = 1


def fingerprint(
    group: str, version: str, resources: Iterable[Resource], server_version: str = "unversioned"
) -> str:
    """Return the hash under which a group version's document is cached.

    It changes exactly when the document would: with the served facts, with a custom kind's
    schema, with the form of documents.
    """
    facts = [
        (resource.info, _schema_facts(resource))
        for resource in sorted(_at(group, version, resources), key=lambda each: each.info.resource)
    ]
    content = orjson.dumps([_FORM, server_version, group, version, facts], default=list)
    return content_hash(content)


def _schema_facts(resource: Resource) -> Any:
    return resource.schema.raw if resource.custom else resource.schema.name


def _at(group: str, version: str, resources: Iterable[Resource]) -> list[Resource]:
    return [
        resource
        for resource in resources
        if (resource.info.group, resource.info.version) == (group, version)
    ]


def document_path(group_version: GroupVersion) -> str:
    """Return a group version's place below ``/openapi/v3/``: ``api/v1``, ``apis/apps/v1``."""
    return root_path(group_version)[1:]


def index(hashes: Mapping[str, str], prefix: str = "") -> dict[str, Any]:
    """Return the document at ``/openapi/v3``.

    *hashes* is by ``document_path``; *prefix* is where a workspace is served.
    """
    return {
        "paths": {
            path: {"serverRelativeURL": f"{prefix}/openapi/v3/{path}?hash={hashes[path]}"}
            for path in sorted(hashes)
        }
    }


def group_version_document(
    group: str,
    version: str,
    resources: Sequence[Resource],
    definitions: Definitions,
    server_version: str = "unversioned",
) -> bytes:
    """Return the document of one group version, as JSON."""
    served = _at(group, version, resources)
    asked = [group_version_operation(GroupVersion(group, version))]
    asked += [operation for resource in served for operation in operations(resource)]
    paths = _paths(asked, _tag(group, version))
    document = {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": server_version},
        "paths": paths,
        "components": {
            "schemas": _components(served, paths, definitions),
            "securitySchemes": SECURITY_SCHEMES,
        },
    }
    return orjson.dumps(document)


def _tag(group: str, version: str) -> str:
    return f"{(group or 'core').removesuffix('.k8s.io').replace('.', '')}_{version}"


def _components(served: Sequence[Resource], paths: Any, definitions: Definitions) -> dict[str, Any]:
    custom: dict[str, Any] = {}
    for resource in served:
        if resource.custom:
            custom |= custom_definitions(resource, V3)
    names = closure({*referenced(paths), *referenced(custom)}, definitions.raw)
    built_in = {name: built_in_schema(name, definitions.raw[name], V3) for name in names}
    return dict(sorted({**built_in, **custom}.items()))


def _paths(asked: Sequence[Operation], tag: str) -> dict[str, Any]:
    paths: dict[str, Any] = {}
    for operation in sorted(asked, key=lambda each: each.path):
        item = paths.setdefault(operation.path, _path_item(operation))
        item[operation.method] = _operation(operation, tag)
    return paths


def _path_item(operation: Operation) -> dict[str, Any]:
    if not operation.action:
        return {}
    names = operation.in_path
    return {"parameters": [_parameter(PARAMETERS[name]) for name in (*names, "pretty")]}


def _operation(operation: Operation, tag: str) -> dict[str, Any]:
    written: dict[str, Any] = {
        "description": operation.description,
        "operationId": operation.id,
        "tags": [tag],
        "responses": _responses(operation),
    }
    if operation.query:
        written["parameters"] = [_parameter(PARAMETERS[name]) for name in operation.query]
    if operation.body:
        types = operation.body_types or ("*/*",)
        written["requestBody"] = {"content": _content(types, operation.body), "required": True}
    if operation.method == "delete":
        written.get("requestBody", {}).pop("required", None)
    return written | operation.extensions()


def _content(types: Iterable[str], definition: str) -> dict[str, Any]:
    schema = reference(definition, V3) if definition else {"type": "string"}
    return {media_type: {"schema": schema} for media_type in types}


def _responses(operation: Operation) -> dict[str, Any]:
    responses: dict[str, Any] = {}
    for code, definition in operation.responses.items():
        types = MEDIA_TYPES if definition else ("*/*",)
        if operation.action == "list":
            types = (*types, "application/json;stream=watch")
        content = _content(types, definition)
        responses[code] = {"description": RESPONSE_TEXTS[code], "content": content}
    responses["401"] = {"description": "Unauthorized"}
    return responses


def _parameter(parameter: Parameter) -> dict[str, Any]:
    written: dict[str, Any] = {
        "name": parameter.name,
        "in": parameter.location,
        "description": parameter.description,
        "schema": {"type": parameter.type, "uniqueItems": True},
    }
    if parameter.location == "path":
        written["required"] = True
    return written
