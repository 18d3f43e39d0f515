"""Which pod somebody means who names what made it: ``deployment/web``, as kubectl takes it.

At an edge nothing but its pods is asked for, so this goes by what pods say of their owners.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from skerry.api.objects import Object

_KINDS: Final = {
    "Pod": ("pod", "pods", "po"),
    "Deployment": ("deployment", "deployments", "deploy"),
    "ReplicaSet": ("replicaset", "replicasets", "rs"),
    "StatefulSet": ("statefulset", "statefulsets", "sts"),
    "DaemonSet": ("daemonset", "daemonsets", "ds"),
    "Job": ("job", "jobs"),
}
_BY_WORD: Final = {word: kind for kind, words in _KINDS.items() for word in words}
_HASH: Final = "pod-template-hash"


class PodNameError(ValueError):
    """No pod is meant by what was given, in a sentence."""


def pod_named(word: str) -> tuple[str, str]:
    """Return the kind and name that ``NAME`` or ``KIND/NAME`` stand for."""
    kind, slash, name = word.partition("/")
    if not slash:
        return "Pod", word
    found = _BY_WORD.get(kind.lower().partition(".")[0])
    if found is None or not name:
        raise PodNameError(
            f"{word!r}: want a pod, or KIND/NAME of a deployment, replicaset, statefulset, "
            "daemonset or job"
        )
    return found, name


def chosen_pod(kind: str, name: str, pods: Sequence[Object]) -> str:
    """Return the first pod that *name* of a *kind* has, one that runs before one that does not."""
    mine = [pod for pod in pods if _is_of(kind, name, pod)]
    if not mine:
        there = ", ".join(sorted(str(pod["metadata"]["name"]) for pod in pods)[:20]) or "none"
        raise PodNameError(f"{kind} {name} has no pod there; pods of the namespace: {there}")
    return str(min(mine, key=_order)["metadata"]["name"])


def _is_of(kind: str, name: str, pod: Object) -> bool:
    metadata = pod["metadata"]
    for owner in metadata.get("ownerReferences") or ():
        if kind == "Deployment" and owner.get("kind") == "ReplicaSet":
            # A ReplicaSet has its Deployment's name and the hash of its template.
            template = (metadata.get("labels") or {}).get(_HASH, "")
            if template and owner.get("name") == f"{name}-{template}":
                return True
        elif (owner.get("kind"), owner.get("name")) == (kind, name):
            return True
    return False


def _order(pod: Object) -> tuple[bool, Any]:
    running = (pod.get("status") or {}).get("phase") == "Running"
    return not running, pod["metadata"]["name"]
