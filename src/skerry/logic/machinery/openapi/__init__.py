"""OpenAPI documents: what ``kubectl explain``, client-side validation and apply read."""

from __future__ import annotations

from skerry.logic.machinery.openapi.v2 import (
    SWAGGER_PROTOBUF_TYPES,
    swagger,
    swagger_document,
    swagger_document_protobuf,
)
from skerry.logic.machinery.openapi.v2_protobuf import swagger_protobuf
from skerry.logic.machinery.openapi.v3 import (
    document_path,
    fingerprint,
    group_version_document,
    index,
)

__all__ = [
    "SWAGGER_PROTOBUF_TYPES",
    "document_path",
    "fingerprint",
    "group_version_document",
    "index",
    "swagger",
    "swagger_document",
    "swagger_document_protobuf",
    "swagger_protobuf",
]
