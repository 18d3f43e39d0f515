"""Amounts of resources: lists of quantities, as containers, quotas and volumes carry them.

The API server decodes a quantity and prints it again, so ``0.5`` is stored as ``500m``; amounts
finer than a thousandth are rounded up. Objects repeat the same few texts, so both directions are
cached.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from skerry.api.errors import FieldError
from skerry.api.objects import Object
from skerry.kit.caching import SHORT
from skerry.logic.machinery.builtin.rules import NEGATIVE, Errors, each
from skerry.logic.machinery.names import qualified_name
from skerry.logic.machinery.quantity import Quantity, QuantityError

NOT_INTEGER = "must be an integer"
_HUGE = "hugepages-"
_NATIVE_DOMAIN = "kubernetes.io/"
_REQUESTS = "requests."

CONTAINER_RESOURCES = frozenset(("cpu", "memory", "ephemeral-storage"))
_QUOTA_RESOURCES = frozenset(
    (
        "cpu", "memory", "ephemeral-storage",
        "requests.cpu", "requests.memory", "requests.storage", "requests.ephemeral-storage",
        "limits.cpu", "limits.memory", "limits.ephemeral-storage",
        "pods", "resourcequotas", "services", "replicationcontrollers", "secrets",
        "persistentvolumeclaims", "configmaps", "services.nodeports", "services.loadbalancers",
    )
)  # fmt: skip
_STANDARD_RESOURCES = _QUOTA_RESOURCES | {"storage"}
_INTEGER_RESOURCES = frozenset(
    (
        "pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps",
        "persistentvolumeclaims", "services.nodeports", "services.loadbalancers",
    )
)  # fmt: skip


@lru_cache(maxsize=8192)
def parsed(value: str | float) -> Quantity:
    """Return the quantity *value* writes; raises ``QuantityError``."""
    return Quantity.parse(value)


def _canonical(value: str | float, exponent: int | None) -> str | float:
    if isinstance(value, str) and len(value) > SHORT:
        # Left for validation: it is refused.
        return value
    return _known_form(value, exponent)


@lru_cache(maxsize=8192)
def _known_form(value: str | float, exponent: int | None) -> str | float:
    try:
        quantity = Quantity.parse(value)
    except QuantityError:
        # Left for validation, which can name the field.
        return value
    return str(quantity if exponent is None else quantity.rounded_up(exponent))


def canonical(obj: Object, name: str) -> None:
    """Write one quantity in its canonical form."""
    value = obj.get(name)
    if value is not None:
        obj[name] = _canonical(value, None)


def canonical_list(obj: Mapping[str, Any], name: str) -> None:
    """Write a list of quantities in canonical form, rounded up to thousandths."""
    amounts = obj.get(name)
    if amounts:
        for resource, value in amounts.items():
            amounts[resource] = _canonical(value, -3)


def quantity_errors(value: str | float, path: str) -> Errors:
    """Refuse what is no quantity, and negative ones."""
    try:
        negative = parsed(value).nanos < 0
    except QuantityError as error:
        return [FieldError.invalid(path, value, str(error))]
    return [FieldError.invalid(path, str(parsed(value)), NEGATIVE)] if negative else []


def positive_errors(value: str | float, path: str) -> Errors:
    """Refuse what is no quantity above zero."""
    try:
        quantity = parsed(value)
    except QuantityError as error:
        return [FieldError.invalid(path, value, str(error))]
    if quantity.nanos > 0:
        return []
    return [FieldError.invalid(path, str(quantity), "must be greater than zero")]


def amount_errors(resource: str, value: str | float, path: str) -> Errors:
    """Refuse a negative amount, and a fraction of what comes in whole pieces."""
    errors = quantity_errors(value, path)
    if not errors and is_integer(resource) and parsed(value).milli_value() % 1000:
        errors.append(FieldError.invalid(path, value, NOT_INTEGER))
    return errors


def is_huge_page(resource: str) -> bool:
    """Tell whether *resource* counts huge pages of some size."""
    return resource.startswith(_HUGE)


def is_native(resource: str) -> bool:
    """Tell whether *resource* belongs to Kubernetes itself rather than to a device plugin."""
    return "/" not in resource or _NATIVE_DOMAIN in resource


def is_extended(resource: str) -> bool:
    """Tell whether *resource* is one an extension may define."""
    if is_native(resource) or resource.startswith(_REQUESTS):
        return False
    return not qualified_name(_REQUESTS + resource)


def is_integer(resource: str) -> bool:
    """Tell whether *resource* comes in whole pieces only."""
    return resource in _INTEGER_RESOURCES or is_extended(resource)


def overcommits(resource: str) -> bool:
    """Tell whether requests may stay below limits."""
    return is_native(resource) and not is_huge_page(resource)


def resource_name_errors(resource: str, path: str) -> Errors:
    """Refuse what names no resource at all."""
    errors = each(path, resource, qualified_name(resource))
    if not errors and "/" not in resource and not is_standard(resource):
        text = "must be a standard resource type or fully qualified"
        errors.append(FieldError.invalid(path, resource, text))
    return errors


def is_standard(resource: str) -> bool:
    """Tell whether Kubernetes itself defines *resource*."""
    return (
        resource in _STANDARD_RESOURCES
        or is_huge_page(resource)
        or resource.startswith(_REQUESTS + _HUGE)
    )


def container_resource_errors(resource: str, path: str) -> Errors:
    """Refuse what a container cannot ask for."""
    if resource in CONTAINER_RESOURCES:
        return []
    errors = resource_name_errors(resource, path)
    if "/" not in resource:
        if not is_huge_page(resource):
            text = "must be a standard resource for containers"
            errors.append(FieldError.invalid(path, resource, text))
    elif not is_native(resource) and not is_extended(resource):
        text = "doesn't follow extended resource name standard"
        errors.append(FieldError.invalid(path, resource, text))
    return errors


def quota_resource_errors(resource: str, path: str) -> Errors:
    """Refuse what a quota cannot bound."""
    errors = resource_name_errors(resource, path)
    if "/" not in resource:
        known = resource in _QUOTA_RESOURCES or resource.startswith((_HUGE, _REQUESTS + _HUGE))
        if not known:
            text = "must be a standard resource for quota"
            errors.append(FieldError.invalid(path, resource, text))
    return errors


def equal_amounts(new: Any, old: Any) -> bool:
    """Tell whether two amounts are equal as numbers, however they are written."""
    if new == old:
        return True
    try:
        return parsed(new) == parsed(old)
    except (QuantityError, TypeError):
        return False
