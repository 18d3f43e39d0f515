"""The checks that the restricted level adds, one function each.

What a hardened pod must say for itself: whom it does not run as, what it gives up, and which
volumes it keeps to. Windows pods cannot say some of it, and are excused since version 1.25.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skerry.api.objects import Object
from skerry.logic.machinery.pod_security.baseline import seccomp_profile
from skerry.logic.machinery.pod_security.violation import (
    Check,
    Violation,
    containers_named,
    containers_of,
    counted,
    is_windows,
    named,
    security_of,
    setters,
)

Metadata = Mapping[str, Any]

_VOLUMES = frozenset(
    {
        *("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral"),
        *("persistentVolumeClaim", "projected", "secret"),
    }
)
# In the order in which Kubernetes asks; a volume has one source only, so it matters to nobody.
_RESTRICTED_VOLUMES = (
    *("hostPath", "gcePersistentDisk", "awsElasticBlockStore", "gitRepo", "nfs", "iscsi"),
    *("glusterfs", "rbd", "flexVolume", "cinder", "cephfs", "flocker", "fc", "azureFile"),
    *("vsphereVolume", "quobyte", "azureDisk", "photonPersistentDisk", "portworxVolume"),
    *("scaleIO", "storageos"),
)


def excusing_windows(check: Check) -> Check:
    """Return *check* for pods of other systems than Windows."""

    def excused(metadata: Metadata, spec: Object) -> Violation | None:
        return None if is_windows(spec) else check(metadata, spec)

    return excused


def allow_privilege_escalation(metadata: Metadata, spec: Object) -> Violation | None:
    """Require that no program gains rights its parent did not have."""
    who = [
        container["name"]
        for container in containers_of(spec)
        if security_of(container).get("allowPrivilegeEscalation") is not False
    ]
    if not who:
        return None
    text = "must set securityContext.allowPrivilegeEscalation=false"
    return Violation("allowPrivilegeEscalation != false", f"{containers_named(who)} {text}")


def capabilities(metadata: Metadata, spec: Object) -> Violation | None:
    """Require that every capability is dropped, but for binding low ports."""
    keeping: list[str] = []
    adding: list[str] = []
    forbidden: set[str] = set()
    for container in containers_of(spec):
        asked = security_of(container).get("capabilities") or {}
        if "ALL" not in (asked.get("drop") or ()):
            keeping.append(container["name"])
        if beyond := set(asked.get("add") or ()) - {"NET_BIND_SERVICE"}:
            adding.append(container["name"])
            forbidden |= beyond
    details = []
    if keeping:
        text = 'must set securityContext.capabilities.drop=["ALL"]'
        details.append(f"{containers_named(keeping)} {text}")
    if adding:
        text = f"must not include {named(sorted(forbidden))} in securityContext.capabilities.add"
        details.append(f"{containers_named(adding)} {text}")
    return Violation("unrestricted capabilities", "; ".join(details)) if details else None


def restricted_volumes(metadata: Metadata, spec: Object) -> Violation | None:
    """Refuse volumes that are neither the pod's own nor claimed."""
    who: list[str] = []
    types: set[str] = set()
    for volume in spec.get("volumes") or ():
        if any(volume.get(kind) is not None for kind in _VOLUMES):
            continue
        who.append(volume["name"])
        known = (kind for kind in _RESTRICTED_VOLUMES if volume.get(kind) is not None)
        types.add(next(known, "unknown"))
    if not who:
        return None
    verb, kind = counted("uses", len(who), "use"), counted("restricted volume type", len(types))
    text = f"{counted('volume', len(who))} {named(who)} {verb} {kind} {named(sorted(types))}"
    return Violation("restricted volume types", text)


def run_as_non_root(metadata: Metadata, spec: Object) -> Violation | None:
    """Require that every container promises not to be root."""
    reason, key = "runAsNonRoot != true", "runAsNonRoot"
    pod = security_of(spec).get(key)
    denying = [c["name"] for c in containers_of(spec) if security_of(c).get(key) is False]
    if who := setters(pod is False, denying):
        return Violation(reason, f"{' and '.join(who)} must not set securityContext.{key}=false")
    silent = [c["name"] for c in containers_of(spec) if security_of(c).get(key) is None]
    if pod or not silent:
        return None
    return Violation(
        reason, f"pod or {containers_named(silent)} must set securityContext.{key}=true"
    )


def run_as_user(metadata: Metadata, spec: Object) -> Violation | None:
    """Refuse to be root by number."""
    roots = [c["name"] for c in containers_of(spec) if security_of(c).get("runAsUser") == 0]
    who = setters(security_of(spec).get("runAsUser") == 0, roots)
    if not who:
        return None
    return Violation("runAsUser=0", f"{' and '.join(who)} must not set runAsUser=0")


def seccomp(metadata: Metadata, spec: Object) -> Violation | None:
    """Require a seccomp profile, of the pod or of every container."""
    if found := seccomp_profile(metadata, spec):
        return found
    if security_of(spec).get("seccompProfile") is not None:
        return None
    silent = [
        container["name"]
        for container in containers_of(spec)
        if security_of(container).get("seccompProfile") is None
    ]
    if not silent:
        return None
    text = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return Violation("seccompProfile", f"pod or {containers_named(silent)} {text}")
