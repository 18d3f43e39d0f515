"""OpenAPI v2 ("swagger"): everything in one document, for clients that know no newer form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from skerry.api.kinds import GroupVersion
from skerry.api.schema import Definitions
from skerry.logic.machinery.discovery import groups
from skerry.logic.machinery.openapi.operations import (
    MEDIA_TYPES,
    RESPONSE_TEXTS,
    SECURITY_SCHEMES,
    Operation,
    group_version_operation,
    operations,
)
from skerry.logic.machinery.openapi.parameters import PARAMETERS, Parameter
from skerry.logic.machinery.openapi.schemas import (
    V2,
    built_in_schema,
    closure,
    custom_definitions,
    reference,
    referenced,
)
from skerry.logic.machinery.openapi.v2_protobuf import swagger_protobuf
from skerry.logic.machinery.resource import Resource

# What a client may accept the protobuf form as; it is always answered as the first. client-go
# asks for the second, and for nothing else.
SWAGGER_PROTOBUF_TYPES = (
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
)


def swagger_document(
    resources: Sequence[Resource], definitions: Definitions, server_version: str = "unversioned"
) -> bytes:
    """Return the document at ``/openapi/v2``, as JSON."""
    return orjson.dumps(swagger(resources, definitions, server_version))


def swagger_document_protobuf(
    resources: Sequence[Resource], definitions: Definitions, server_version: str = "unversioned"
) -> bytes:
    """Return the same document as protobuf, the only form client-go asks for."""
    return swagger_protobuf(swagger(resources, definitions, server_version))


def swagger(
    resources: Sequence[Resource],
    definitions: Definitions,
    server_version: str = "unversioned",
) -> dict[str, Any]:
    """Return the same document, as it is before it is written down."""
    paths = _paths(resources)
    custom: dict[str, Any] = {}
    for resource in resources:
        if resource.custom:
            custom |= custom_definitions(resource, V2)
    names = closure({*referenced(paths), *referenced(custom)}, definitions.raw)
    built_in = {name: built_in_schema(name, definitions.raw[name], V2) for name in names}
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": server_version},
        "paths": paths,
        "definitions": dict(sorted({**built_in, **custom}.items())),
        "securityDefinitions": SECURITY_SCHEMES,
        "security": [{"BearerToken": []}],
    }


def _paths(resources: Sequence[Resource]) -> dict[str, Any]:
    asked: list[Operation] = [
        group_version_operation(GroupVersion(group, version))
        for group, versions in groups(resources).items()
        for version in versions
    ]
    asked += [operation for resource in resources for operation in operations(resource)]
    paths: dict[str, Any] = {}
    for operation in sorted(asked, key=lambda each: each.path):
        item = paths.setdefault(operation.path, _path_item(operation))
        item[operation.method] = _operation(operation)
    return paths


def _path_item(operation: Operation) -> dict[str, Any]:
    if not operation.action:
        return {}
    names = operation.in_path
    return {"parameters": [_parameter(PARAMETERS[name]) for name in (*names, "pretty")]}


def _operation(operation: Operation) -> dict[str, Any]:
    parameters = [_parameter(PARAMETERS[name]) for name in operation.query]
    if operation.body:
        parameters.insert(0, _body(operation))
    written: dict[str, Any] = {
        "description": operation.description,
        "operationId": operation.id,
        "consumes": list(operation.body_types) or ["*/*"],
        "produces": [*MEDIA_TYPES],
        "schemes": ["https"],
        "parameters": parameters,
        "responses": _responses(operation),
    }
    return written | operation.extensions()


def _body(operation: Operation) -> dict[str, Any]:
    written = {"name": "body", "in": "body", "schema": reference(operation.body, V2)}
    return written if operation.method == "delete" else {**written, "required": True}


def _responses(operation: Operation) -> dict[str, Any]:
    responses: dict[str, Any] = {
        code: {
            "description": RESPONSE_TEXTS[code],
            "schema": reference(definition, V2) if definition else {"type": "string"},
        }
        for code, definition in operation.responses.items()
    }
    return {**responses, "401": {"description": "Unauthorized"}}


def _parameter(parameter: Parameter) -> dict[str, Any]:
    written: dict[str, Any] = {
        "name": parameter.name,
        "in": parameter.location,
        "description": parameter.description,
        "type": parameter.type,
        "uniqueItems": True,
    }
    if parameter.location == "path":
        written["required"] = True
    return written
