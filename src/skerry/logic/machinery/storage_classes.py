"""Which StorageClass a claim gets that names none."""

from __future__ import annotations

from collections.abc import Iterable

from skerry.api.objects import Object

IS_DEFAULT = "storageclass.kubernetes.io/is-default-class"
_IS_DEFAULT_BETA = "storageclass.beta.kubernetes.io/is-default-class"
# Where claims named their class before there was a field for it.
CLASS_BETA = "volume.beta.kubernetes.io/storage-class"


def default_class(classes: Iterable[Object]) -> Object | None:
    """Return the newest class that says it is the default; of equally new ones the first."""
    marked = sorted(filter(_is_default, classes), key=lambda item: str(item["metadata"]["name"]))
    return max(marked, key=lambda item: str(item["metadata"]["creationTimestamp"]), default=None)


def has_class(claim: Object) -> bool:
    """Tell whether a claim names a class; an empty name says that it wants none."""
    annotations = claim["metadata"].get("annotations") or {}
    return CLASS_BETA in annotations or claim["spec"].get("storageClassName") is not None


def _is_default(storage_class: Object) -> bool:
    annotations = storage_class["metadata"].get("annotations") or {}
    return "true" in (annotations.get(IS_DEFAULT), annotations.get(_IS_DEFAULT_BETA))
