"""Security contexts as they come out for one container: its own fields over its pod's.

Pure. A field that is not set, or null, leaves it to the pod's, and that to the image's or to
Kubernetes' default.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from skerry.api.objects import Object
from skerry.edge.agent.environment import ConfigurationMissing
from skerry.edge.agent.runtime import Abilities, Confinement, Image

# By number, as linux/capability.h has them.
CAPABILITIES = (
    *("CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID"),
    *("SETPCAP", "LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW"),
    *("IPC_LOCK", "IPC_OWNER", "SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE"),
    *("SYS_PACCT", "SYS_ADMIN", "SYS_BOOT", "SYS_NICE", "SYS_RESOURCE", "SYS_TIME"),
    *("SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP"),
    *("MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ"),
    *("PERFMON", "BPF", "CHECKPOINT_RESTORE"),
)
# What every container has unless it drops them, as with any engine.
DEFAULT_CAPABILITIES = frozenset(
    {
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD"),
        *("NET_BIND_SERVICE", "NET_RAW", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    }
)
# What a container may have besides: it reaches no further than namespaces of its pod's own. Any
# other either undoes what keeps a container in, or means nothing in a user namespace.
ADDABLE_CAPABILITIES = frozenset({"DAC_READ_SEARCH", "IPC_OWNER", "NET_ADMIN", "SYS_PTRACE"})


def containers_of(pod: Object) -> Iterator[tuple[str, Object]]:
    """Yield every container of a pod, of whatever sort, each after the path of its field."""
    for group in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(pod["spec"].get(group) or ()):
            yield f"spec.{group}[{index}]", container


def of_pod(pod: Object, name: str) -> Any:
    """Return a field of a pod's security context."""
    return (pod["spec"].get("securityContext") or {}).get(name)


def of_container(container: Object, name: str) -> Any:
    """Return a field of a container's own security context."""
    return (container.get("securityContext") or {}).get(name)


def effective(pod: Object, container: Object, name: str) -> Any:
    """Return a field of a container's security context, else of its pod's; None when neither."""
    own = of_container(container, name)
    return own if own is not None else of_pod(pod, name)


def file_group(pod: Object) -> int | None:
    """Return the group that volumes are given to (``fsGroup``)."""
    found: int | None = of_pod(pod, "fsGroup")
    return found


def common_user(pod: Object) -> int | None:
    """Return the user every container of a pod asks to be; None when they differ or do not say.

    As kubelet: who a token is for, when one user can be named.
    """
    users = {effective(pod, container, "runAsUser") for _, container in containers_of(pod)}
    found: int | None = users.pop() if len(users) == 1 else None
    return found


def capability(name: str) -> str:
    """Return the name of a capability as the kernel's header has it, without its prefix."""
    return name.upper().removeprefix("CAP_")


def capabilities(container: Object) -> frozenset[str]:
    """Return the capabilities of a container: the usual ones, changed as it says.

    As with any engine: dropping ``ALL`` comes first, what is added after it stays, and what is
    dropped by name goes whoever added it.
    """
    asked = of_container(container, "capabilities") or {}
    dropped = {capability(name) for name in asked.get("drop") or ()}
    added = {capability(name) for name in asked.get("add") or ()}
    usual = frozenset[str]() if "ALL" in dropped else DEFAULT_CAPABILITIES
    return (usual | added) - dropped


def confinement(
    pod: Object, container: Object, image: Image, abilities: Abilities, edge_user: int
) -> Confinement:
    """Return what a container may do; raises ``ConfigurationMissing`` when it may not be root.

    *edge_user* is who containers are where they have no user namespace.
    """
    user, group = run_as(pod, container, image)
    _refuse_root(pod, container, image, user if abilities.users != "own" else edge_user)
    names = capabilities(container) & abilities.capabilities
    profile = effective(pod, container, "seccompProfile") or {}
    return Confinement(
        user,
        group,
        _groups(pod),
        frozenset(number for number, name in enumerate(CAPABILITIES) if name in names),
        of_container(container, "allowPrivilegeEscalation") is False,
        abilities.seccomp and profile.get("type") != "Unconfined",
        bool(of_container(container, "readOnlyRootFilesystem")),
        sysctls={item["name"]: str(item["value"]) for item in of_pod(pod, "sysctls") or ()},
    )


def run_as(pod: Object, container: Object, image: Image) -> tuple[int | None, int | None]:
    """Return the user and group a container asks for, else those of its image."""
    user, group = effective(pod, container, "runAsUser"), effective(pod, container, "runAsGroup")
    if user is None:
        return image.user, image.group if group is None else group
    return user, 0 if group is None else group


def _groups(pod: Object) -> tuple[int, ...]:
    """Return the further groups of every container: those it names, and that of its volumes."""
    named = list(of_pod(pod, "supplementalGroups") or ())
    owning = file_group(pod)
    return tuple(dict.fromkeys([*named, *([] if owning is None else [owning])]))


def _refuse_root(pod: Object, container: Object, image: Image, user: int | None) -> None:
    """Refuse to be root where ``runAsNonRoot`` says so; the words are kubelet's."""
    if not effective(pod, container, "runAsNonRoot"):
        return
    metadata = pod["metadata"]
    named = f"{metadata['name']}_{metadata['namespace']}({metadata['uid']})"
    where = f'(pod: "{named}", container: {container["name"]})'
    if effective(pod, container, "runAsUser") == 0:
        raise ConfigurationMissing(f"container's runAsUser breaks non-root policy {where}")
    if user is None and image.user_name:
        raise ConfigurationMissing(
            f"container has runAsNonRoot and image has non-numeric user ({image.user_name}), "
            f"cannot verify user is non-root {where}"
        )
    if not user:
        raise ConfigurationMissing(f"container has runAsNonRoot and image will run as root {where}")
