"""What Kubernetes fills in when a CustomResourceDefinition leaves it out."""

from __future__ import annotations

from skerry.api.objects import Object
from skerry.logic.machinery.crd import definition


def default_crd(crd: Object) -> None:
    """Fill in names, conversion and the stored version, in place."""
    spec = crd.get("spec")
    if not isinstance(spec, dict):
        return
    names = spec.get("names")
    if isinstance(names, dict):
        _default_names(names)
    if spec.get("conversion") is None:
        spec["conversion"] = {"strategy": "None"}
    _default_webhook_port(spec)
    remember_storage_version(crd)


def _default_names(names: Object) -> None:
    kind = definition.text(names.get("kind"))
    if not names.get("singular") and kind:
        names["singular"] = kind.lower()
    if not names.get("listKind") and kind:
        names["listKind"] = f"{kind}List"


def _default_webhook_port(spec: Object) -> None:
    webhook = definition.mapping(definition.mapping(spec.get("conversion")).get("webhook"))
    service = definition.mapping(webhook.get("clientConfig")).get("service")
    if isinstance(service, dict) and service.get("port") is None:
        service["port"] = 443


def remember_storage_version(crd: Object) -> None:
    """Note in the status that objects may be stored at the present storage version."""
    storage = definition.storage_version(crd)
    status = crd.setdefault("status", {})
    if not storage or not isinstance(status, dict):
        return
    stored = status.get("storedVersions")
    if not isinstance(stored, list):
        stored = []
    if storage not in stored:
        status["storedVersions"] = [*stored, storage]
