"""The schema engine: pruning, defaulting and validation, compiled once per schema.

``prune``, ``apply_defaults`` and ``validate`` follow structural schemas as apiextensions does;
``type_errors`` and ``duplicate_keys`` give the answers kube-apiserver's decoder gives for
built-in kinds and for strict field validation.
"""

from skerry.logic.machinery.schema.decoding import restoration_error, type_errors
from skerry.logic.machinery.schema.defaulting import apply_defaults
from skerry.logic.machinery.schema.duplicates import duplicate_fields, duplicate_keys
from skerry.logic.machinery.schema.pruning import declared_path, prune, unknown_fields
from skerry.logic.machinery.schema.validation import validate, validate_update

__all__ = [
    "apply_defaults",
    "declared_path",
    "duplicate_fields",
    "duplicate_keys",
    "prune",
    "restoration_error",
    "type_errors",
    "unknown_fields",
    "validate",
    "validate_update",
]
