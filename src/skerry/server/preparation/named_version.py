"""The version that a body names as the one it was made from."""

from __future__ import annotations

from skerry.api.objects import Object


def named_version(obj: Object) -> str:
    """Return the ``resourceVersion`` in *obj*; "" where it names none.

    Zero names none either: Kubernetes compares numbers, and to it whoever sends ``"0"`` means
    whichever version is live, or an object that is not there yet.
    """
    version: str = (obj.get("metadata") or {}).get("resourceVersion") or ""
    return version if version.strip("0") else ""
