"""The checks of the baseline level, one function each.

What is known to lead out of a container is refused: host namespaces, paths, ports and processes,
privileged containers, and whatever takes away the defaults that keep one in.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

from skerry.api.objects import Object
from skerry.logic.machinery.pod_security.violation import (
    Check,
    Violation,
    containers_named,
    containers_of,
    counted,
    named,
    security_of,
    setters,
)

Metadata = Mapping[str, Any]

_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
_SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
_PROFILES = frozenset({"RuntimeDefault", "Localhost"})
# What engines give every container.
_DEFAULT_CAPABILITIES = frozenset(
    {
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD"),
        *("NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    }
)
_SELINUX_TYPES = frozenset({"", "container_t", "container_init_t", "container_kvm_t"})
# Sysctls that reach no further than the pod's own namespaces; the list grew with the versions.
SYSCTLS_0 = frozenset(
    {
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range",
        "net.ipv4.ip_unprivileged_port_start",
    }
)
SYSCTLS_27 = SYSCTLS_0 | {"net.ipv4.ip_local_reserved_ports"}
SYSCTLS_29 = SYSCTLS_27 | {
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
}
SYSCTLS_32 = SYSCTLS_29 | {"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"}


def _profiles(spec: Object, field: str) -> tuple[list[str], set[str]]:
    """Return who sets a profile that turns *field* off, and to which types."""
    types: set[str] = set()

    def is_forbidden(part: Object) -> bool:
        profile = security_of(part).get(field)
        if profile is None or profile.get("type") in _PROFILES:
            return False
        types.add(str(profile.get("type") or ""))
        return True

    who = setters(is_forbidden(spec), [c["name"] for c in containers_of(spec) if is_forbidden(c)])
    return who, types


def app_armor_profile(metadata: Metadata, spec: Object) -> Violation | None:
    """Refuse to turn AppArmor off, by field or by the annotation that came before."""
    who, types = _profiles(spec, "appArmorProfile")
    annotations = sorted(
        f"{key}={_go_quoted(value)}"
        for key, value in (metadata.get("annotations") or {}).items()
        if key.startswith(_APP_ARMOR) and not _is_app_armor_default(value)
    )
    if annotations:
        who.append(counted("annotation", len(annotations)))
    if not who:
        return None
    values = [*sorted(types), *annotations]
    return Violation(
        counted("forbidden AppArmor profile", len(values)),
        f"{' and '.join(who)} must not set AppArmor profile type to {named(values)}",
    )


def _is_app_armor_default(value: str) -> bool:
    return value in ("", "runtime/default") or value.startswith("localhost/")


def _go_quoted(text: str) -> str:
    """Return *text* as Go quotes it; the same as JSON for what an annotation may hold."""
    return json.dumps(text, ensure_ascii=False)


def capabilities(metadata: Metadata, spec: Object) -> Violation | None:
    """Refuse capabilities beyond those that every container has."""
    forbidden: set[str] = set()
    who: list[str] = []
    for container in containers_of(spec):
        added = (security_of(container).get("capabilities") or {}).get("add") or ()
        if beyond := set(added) - _DEFAULT_CAPABILITIES:
            who.append(container["name"])
            forbidden |= beyond
    if not who:
        return None
    text = f"must not include {named(sorted(forbidden))} in securityContext.capabilities.add"
    return Violation("non-default capabilities", f"{containers_named(who)} {text}")


def host_namespaces(metadata: Metadata, spec: Object) -> Violation | None:
    """Refuse namespaces of the machine."""
    shared = [f"{name}=true" for name in ("hostNetwork", "hostPID", "hostIPC") if spec.get(name)]
    return Violation("host namespaces", ", ".join(shared)) if shared else None


def host_path_volumes(metadata: Metadata, spec: Object) -> Violation | None:
    """Refuse paths of the machine."""
    found = [v["name"] for v in spec.get("volumes") or () if v.get("hostPath") is not None]
    if not found:
        return None
    return Violation("hostPath volumes", f"{counted('volume', len(found))} {named(found)}")


def host_ports(metadata: Metadata, spec: Object) -> Violation | None:
    """Refuse ports of the machine."""
    ports: set[str] = set()
    who: list[str] = []
    for container in containers_of(spec):
        taken = {str(p["hostPort"]) for p in container.get("ports") or () if p.get("hostPort")}
        if taken:
            who.append(container["name"])
            ports |= taken
    if not who:
        return None
    verb = counted("uses", len(who), "use")
    listed = ", ".join(sorted(ports))
    return Violation(
        "hostPort", f"{containers_named(who)} {verb} {counted('hostPort', len(ports))} {listed}"
    )


def privileged(metadata: Metadata, spec: Object) -> Violation | None:
    """Refuse containers that nothing confines."""
    who = [c["name"] for c in containers_of(spec) if security_of(c).get("privileged")]
    if not who:
        return None
    text = "must not set securityContext.privileged=true"
    return Violation("privileged", f"{containers_named(who)} {text}")


def proc_mount(metadata: Metadata, spec: Object) -> Violation | None:
    """Refuse a /proc without its masks."""
    types: set[str] = set()
    who: list[str] = []
    for container in containers_of(spec):
        kind = security_of(container).get("procMount")
        if kind is not None and kind != "Default":
            who.append(container["name"])
            types.add(str(kind))
    if not who:
        return None
    text = f"must not set securityContext.procMount to {named(sorted(types))}"
    return Violation("procMount", f"{containers_named(who)} {text}")


def selinux_options(types: Collection[str], metadata: Metadata, spec: Object) -> Violation | None:
    """Refuse SELinux labels that are not a container's."""
    wrong: list[Object] = []

    def is_forbidden(part: Object) -> bool:
        options = security_of(part).get("seLinuxOptions")
        if options is None:
            return False
        known = (options.get("type") or "") in types
        if known and not options.get("user") and not options.get("role"):
            return False
        wrong.append(options)
        return True

    who = setters(is_forbidden(spec), [c["name"] for c in containers_of(spec) if is_forbidden(c)])
    if not who:
        return None
    found = sorted({o.get("type") or "" for o in wrong} - set(types))
    faults = [f"{counted('type', len(found))} {named(found)}"] if found else []
    faults += [
        f"{name} may not be set" for name in ("user", "role") if any(o.get(name) for o in wrong)
    ]
    text = f"set forbidden securityContext.seLinuxOptions: {'; '.join(faults)}"
    return Violation("seLinuxOptions", f"{' and '.join(who)} {text}")


def seccomp_annotations(metadata: Metadata, spec: Object) -> Violation | None:
    """Refuse annotations that turn seccomp off; what there was before version 1.19."""
    annotations = metadata.get("annotations") or {}
    keys = [_SECCOMP_POD, *(f"{_SECCOMP_CONTAINER}{c['name']}" for c in containers_of(spec))]
    found = sorted(
        {
            f"{key}={_go_quoted(annotations[key])}"
            for key in keys
            if key in annotations and not _is_seccomp_default(annotations[key])
        }
    )
    if not found:
        return None
    text = f"forbidden {counted('annotation', len(found))} {', '.join(found)}"
    return Violation("seccompProfile", text)


def _is_seccomp_default(value: str) -> bool:
    return value in ("runtime/default", "docker/default") or value.startswith("localhost/")


def seccomp_profile(metadata: Metadata, spec: Object) -> Violation | None:
    """Refuse to turn seccomp off."""
    who, types = _profiles(spec, "seccompProfile")
    if not who:
        return None
    text = f"must not set securityContext.seccompProfile.type to {named(sorted(types))}"
    return Violation("seccompProfile", f"{' and '.join(who)} {text}")


def sysctls(allowed: Collection[str], metadata: Metadata, spec: Object) -> Violation | None:
    """Refuse kernel settings that reach further than the pod."""
    asked = [item["name"] for item in security_of(spec).get("sysctls") or ()]
    found = [name for name in asked if name not in allowed]
    return Violation("forbidden sysctls", ", ".join(found)) if found else None


def windows_host_process(metadata: Metadata, spec: Object) -> Violation | None:
    """Refuse processes of the machine, on Windows."""

    def is_forbidden(part: Object) -> bool:
        return bool((security_of(part).get("windowsOptions") or {}).get("hostProcess"))

    who = setters(is_forbidden(spec), [c["name"] for c in containers_of(spec) if is_forbidden(c)])
    if not who:
        return None
    text = "must not set securityContext.windowsOptions.hostProcess=true"
    return Violation("hostProcess", f"{' and '.join(who)} {text}")


SELINUX_0: Check = partial(selinux_options, _SELINUX_TYPES)
SELINUX_31: Check = partial(selinux_options, _SELINUX_TYPES | {"container_engine_t"})
