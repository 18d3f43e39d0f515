"""The kinds Kubernetes itself defines: facts, schemas, defaulting, validation, conversion.

``builtin_resources()`` is the way in. Rules follow Kubernetes 1.32 with its default feature
gates, message by message; where a kind has no rules of its own beyond its schema (flow control,
CSI objects ...) its objects are data.
"""

from __future__ import annotations

from skerry.logic.machinery.builtin.configuration import finalizer_errors
from skerry.logic.machinery.builtin.definitions import definitions, schema_of
from skerry.logic.machinery.builtin.metadata import field_manager_errors, validate_metadata
from skerry.logic.machinery.builtin.pods import ephemeral_container_errors, quality_of_service
from skerry.logic.machinery.builtin.resources import builtin_resources

__all__ = [
    "builtin_resources",
    "definitions",
    "ephemeral_container_errors",
    "field_manager_errors",
    "finalizer_errors",
    "quality_of_service",
    "schema_of",
    "validate_metadata",
]
