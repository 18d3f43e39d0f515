"""OpenAPI documents: what ``kubectl explain``, client-side validation and apply read."""

from __future__ import annotations

from skerry.logic.openapi.v2 import swagger_document, swagger_document_protobuf
from skerry.logic.openapi.v3 import fingerprint, group_version_document, index

__all__ = [
    "fingerprint",
    "group_version_document",
    "index",
    "swagger_document",
    "swagger_document_protobuf",
]
