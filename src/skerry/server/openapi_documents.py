"""OpenAPI documents by the form they are asked in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from skerry.logic.machinery import openapi
from skerry.logic.machinery.builtin import definitions
from skerry.logic.machinery.resource import Resource

Form = Literal["swagger", "swagger-protobuf", "v3"]


def document(form: Form, group: str, version: str, resources: Sequence[Resource]) -> bytes:
    """Return the document of *resources*; of one *group* and *version* in the form ``v3``."""
    if form == "swagger":
        return openapi.swagger_document(resources, definitions())
    if form == "swagger-protobuf":
        return openapi.swagger_document_protobuf(resources, definitions())
    return openapi.group_version_document(group, version, resources, definitions())
