"""References from a container to fields of its own pod."""

from __future__ import annotations

from skerry.api.errors import FieldError
from skerry.api.objects import Object
from skerry.logic.machinery.builtin.amounts import parsed
from skerry.logic.machinery.builtin.rules import Errors, each
from skerry.logic.machinery.names import qualified_name
from skerry.logic.machinery.quantity import QuantityError

_VOLUME_FIELDS = (
    "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace",
    "metadata.uid",
)  # fmt: skip
_ENVIRONMENT_FIELDS = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName",
    "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP",
    "status.podIPs",
)  # fmt: skip
# What the API of pods can name at all; others fail before either list is asked.
_CONVERTIBLE = frozenset(
    (*_VOLUME_FIELDS, *_ENVIRONMENT_FIELDS, "spec.restartPolicy", "spec.schedulerName",
     "status.phase", "spec.host")
)  # fmt: skip
_RESOURCES = (
    "limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu",
    "requests.ephemeral-storage", "requests.memory",
)  # fmt: skip
_HUGE_PAGES = ("limits.hugepages-", "requests.hugepages-")
_BYTES = frozenset(
    ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
)
_DIVISORS = {
    "cpu": (frozenset(("1m", "1")), "1m and 1 are supported with the cpu resource"),
    "memory": (_BYTES, "{} are supported with the memory resource"),
    "ephemeral-storage": (_BYTES, "{} are supported with the local ephemeral storage resource"),
    "hugepages": (_BYTES, "{} are supported with the hugepages resource"),
}
_BYTES_LISTED = "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei"


def field_reference_errors(reference: Object, path: str, *, in_volume: bool = False) -> Errors:
    """Refuse a ``fieldRef`` to a field that files (or variables) cannot show."""
    for name in ("apiVersion", "fieldPath"):
        if not reference.get(name):
            return [FieldError.required(f"{path}.{name}")]
    version, wanted = reference["apiVersion"], reference["fieldPath"]
    if version != "v1":
        text = f"error converting fieldPath: unsupported pod version: {version}"
        return [FieldError.invalid(f"{path}.fieldPath", wanted, text)]
    field, bracket, key = wanted.removesuffix("']").rpartition("['")
    if bracket and wanted.endswith("']"):
        return _subscript_errors(field, key, wanted, path)
    if wanted not in _CONVERTIBLE:
        text = f"error converting fieldPath: field label not supported: {wanted}"
        return [FieldError.invalid(f"{path}.fieldPath", wanted, text)]
    supported = _VOLUME_FIELDS if in_volume else _ENVIRONMENT_FIELDS
    if wanted in supported:
        return []
    return [FieldError.not_supported(f"{path}.fieldPath", wanted, supported)]


def _subscript_errors(field: str, key: str, wanted: str, path: str) -> Errors:
    if field == "metadata.annotations":
        return each(path, key.lower(), qualified_name(key.lower()))
    if field == "metadata.labels":
        return each(path, key, qualified_name(key))
    text = f'error converting fieldPath: field label does not support subscript: "{wanted}"'
    return [FieldError.invalid(f"{path}.fieldPath", wanted, text)]


def resource_reference_errors(reference: Object, path: str, *, in_volume: bool = False) -> Errors:
    """Refuse a ``resourceFieldRef`` to what containers do not request or to odd divisors."""
    errors: Errors = []
    resource = reference.get("resource") or ""
    if in_volume and not reference.get("containerName"):
        errors.append(FieldError.required(f"{path}.containerName"))
    elif not resource:
        errors.append(FieldError.required(f"{path}.resource"))
    elif resource not in _RESOURCES and not resource.startswith(_HUGE_PAGES):
        errors.append(FieldError.not_supported(f"{path}.resource", resource, _RESOURCES))
    return errors + _divisor_errors(resource, reference.get("divisor"), f"{path}.divisor")


def _divisor_errors(resource: str, divisor: str | float | None, path: str) -> Errors:
    if divisor is None:
        return []
    try:
        quantity = parsed(divisor)
    except QuantityError as error:
        return [FieldError.invalid(path, divisor, str(error))]
    kind = resource.rpartition(".")[2]
    allowed = _DIVISORS.get("hugepages" if kind.startswith("hugepages") else kind)
    if allowed is None or not quantity or str(quantity) in allowed[0]:
        return []
    text = "only divisor's values " + allowed[1].format(_BYTES_LISTED)
    return [FieldError.invalid(path, resource, text)]
