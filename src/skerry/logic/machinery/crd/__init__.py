"""CustomResourceDefinitions: what may be defined, which names it gets, what it then serves."""

from skerry.logic.machinery.api_versions import ordered, priority
from skerry.logic.machinery.crd.conditions import (
    TakenNames,
    establish,
    names_conditions,
    taken_names,
)
from skerry.logic.machinery.crd.defaults import default_crd, remember_storage_version
from skerry.logic.machinery.crd.definition import established
from skerry.logic.machinery.crd.resources import resources_of
from skerry.logic.machinery.crd.validation import validate_crd, validate_crd_in_workspace

__all__ = [
    "TakenNames",
    "default_crd",
    "establish",
    "established",
    "names_conditions",
    "ordered",
    "priority",
    "remember_storage_version",
    "resources_of",
    "taken_names",
    "validate_crd",
    "validate_crd_in_workspace",
]
