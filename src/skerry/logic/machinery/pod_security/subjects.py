"""What a policy is about: pods, the templates that make pods, and which changes matter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skerry.api.objects import Object
from skerry.logic.machinery.pod_security.violation import containers_of

_TEMPLATE = ("spec", "template")
# Where each kind that makes pods says what they are like.
TEMPLATES: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("", "replicationcontrollers"): _TEMPLATE,
    ("", "podtemplates"): ("template",),
    ("apps", "replicasets"): _TEMPLATE,
    ("apps", "deployments"): _TEMPLATE,
    ("apps", "statefulsets"): _TEMPLATE,
    ("apps", "daemonsets"): _TEMPLATE,
    ("batch", "jobs"): _TEMPLATE,
    ("batch", "cronjobs"): ("spec", "jobTemplate", "spec", "template"),
}
# Of a pod; every other subresource could change what the pod may do.
IGNORED_SUBRESOURCES = frozenset(
    {"exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"}
)


def template_of(kind: tuple[str, str], obj: Object) -> Object | None:
    """Return the pod template of an object; None when its kind, or this one, has none."""
    found: Any = obj
    for name in TEMPLATES.get(kind, ()):
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) and found is not obj else None


def is_significant(pod: Object, old: Object) -> bool:
    """Tell whether an update of a pod could make it break a policy it kept before.

    Only images and added containers can be changed in a running pod; labels and finalizers must
    stay writable when the policy has become stricter meanwhile.
    """
    new, before = pod.get("spec") or {}, old.get("spec") or {}
    for group in ("containers", "initContainers"):
        if len(new.get(group) or ()) != len(before.get(group) or ()):
            return True
    images = {container["name"]: container.get("image") for container in containers_of(before)}
    return any(
        container["name"] not in images or images[container["name"]] != container.get("image")
        for container in containers_of(new)
    )
