"""Specs of pods that were looked at before.

Most pods are one of many that were made from one template, and what a rule says of a spec it says
of an equal one. Rules that take long and find nothing in nearly every spec need not be asked again.
Only that is kept: of specs that something was found in each is looked at anew.

Pods of one template differ by the volume that the server gives each for its token, which is named
after the pod's uid; that name counts as one and the same.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from skerry.api.objects import Object
from skerry.kit.caching import WeightedCache

# Larger ones are rare, and looked at each time.
_MAX_BYTES: Final = 16 * 1024
_MAX_TOTAL_BYTES: Final = 1024 * 1024
# Such a volume must fit the name of its pod, too.
_BY_POD: Final = b'"ephemeral"'
# Stands in no JSON, where it would be escaped.
_TOKEN_VOLUME: Final = b"\0"


def token_volume_name(uid: str) -> str:
    """Return the name of the volume with the token of the pod that has this *uid*."""
    return f"kube-api-access-{uid[:5]}"


class KnownSpecs:
    """The specs of pods in which one rule found nothing."""

    def __init__(self) -> None:
        self._kept: WeightedCache[bytes, bool] = WeightedCache(_MAX_TOTAL_BYTES)

    def has(self, essence: bytes) -> bool:
        """Tell whether nothing was found in an equal spec."""
        return bool(essence) and self._kept.get(essence) is not None

    def add(self, essence: bytes) -> None:
        """Note that nothing was found."""
        if essence:
            self._kept.put(essence, True, len(essence))


def essence_of(pod: Object) -> bytes:
    """Return what a pod's spec has in common with equal ones; empty where it is to be looked at.

    Equal essences mean equal findings, whatever the pods are called.
    """
    metadata: dict[str, Any] = pod.get("metadata") or {}
    try:
        text = orjson.dumps(pod.get("spec"))
    except TypeError:
        return b""
    if len(text) > _MAX_BYTES or _BY_POD in text:
        return b""
    name = token_volume_name(metadata.get("uid") or "")
    return text.replace(f'"{name}"'.encode(), _TOKEN_VOLUME)
