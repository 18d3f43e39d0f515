"""Hashes of pod templates, and the numbers rollouts give to revisions.

A hash names a template's content, so the same content always finds its own ReplicaSet again. The
bytes differ from Kubernetes' own (which hashes Go's memory layout); nobody may compare the two.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from skerry.api.objects import Object
from skerry.kit.text import whole_number

POD_TEMPLATE_HASH = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
REVISION_HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"
# What a ReplicaSet does not inherit from its Deployment's annotations.
_NOT_INHERITED = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        "deprecated.deployment.rollback.to",
        REVISION,
        REVISION_HISTORY,
        DESIRED_REPLICAS,
        MAX_REPLICAS,
    }
)
# Kubernetes' alphabet for names: no vowels, so no words.
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
# Revisions remembered in one annotation; the API bounds all annotations together.
_HISTORY_BYTES = 2000


def content_hash(content: object, collisions: int | None = None) -> str:
    """Return ten characters that name *content*, fit for a label; *collisions* tells two apart.

    None and nobody has counted yet are the same: a first status that says 0 must not change the
    name, or who has not seen what was made by it makes another one.
    """
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    if collisions:
        text += f"/{collisions}"
    digest = hashlib.sha256(text.encode()).digest()
    return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:10])


def same_template(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Tell whether two pod templates mean the same pods, whatever hash they carry."""
    return _bare(one) == _bare(other)


def _bare(template: Mapping[str, Any]) -> Object:
    bare = copy.deepcopy(dict(template))
    metadata = bare.get("metadata") or {}
    labels = {k: v for k, v in (metadata.get("labels") or {}).items() if k != POD_TEMPLATE_HASH}
    kept = {"labels": labels, "annotations": metadata.get("annotations") or {}}
    bare["metadata"] = {key: value for key, value in kept.items() if value}
    return bare


def revision_of(obj: Mapping[str, Any]) -> int:
    """Return an object's revision; 0 when it has none that can be read."""
    text = (obj["metadata"].get("annotations") or {}).get(REVISION, "")
    return whole_number(text) or 0


def inherited_annotations(owner: Mapping[str, Any]) -> dict[str, str]:
    """Return the annotations a ReplicaSet takes over from its Deployment."""
    annotations = owner["metadata"].get("annotations") or {}
    return {name: value for name, value in annotations.items() if name not in _NOT_INHERITED}


def with_revision(annotations: dict[str, str], revision: int) -> dict[str, str]:
    """Return *annotations* at least at *revision*; the number given up is kept as history."""
    old = annotations.get(REVISION, "")
    if (whole_number(old) or 0) >= revision:
        return annotations
    found = {**annotations, REVISION: str(revision)}
    if old:
        history = [text for text in annotations.get(REVISION_HISTORY, "").split(",") if text]
        history.append(old)
        while len(",".join(history)) > _HISTORY_BYTES:
            history.pop(0)
        found[REVISION_HISTORY] = ",".join(history)
    return found
