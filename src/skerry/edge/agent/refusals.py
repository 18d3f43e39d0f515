"""Why a node does not run a pod: fields that ask for what it cannot, or may not, give.

Pure. Every refusal names its field and says what was seen and what would help. A pod is refused as
a whole and before anything of it is started: half a pod is no use, and a restriction that its owner
wrote down and that nobody keeps is worse than none.

As kubelet, SELinux and Windows options are left alone: without those systems they mean nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from skerry.api.objects import Object
from skerry.edge.agent.host_access import HostAccess, host_path_refusal
from skerry.edge.agent.runtime import Abilities
from skerry.edge.agent.security_context import (
    CAPABILITIES,
    capability,
    containers_of,
    of_container,
    of_pod,
)
from skerry.logic.machinery.pod_security.baseline import SYSCTLS_32 as SAFE_SYSCTLS

REASON = "RefusedByNode"

_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"


@dataclass(frozen=True, slots=True)
class NodePolicy:
    """What a node can enforce, what its operator allows, and who runs it."""

    abilities: Abilities
    access: HostAccess
    edge_user: int = 0
    edge_group: int = 0


def refusals(pod: Object, policy: NodePolicy) -> list[str]:
    """Return why this node refuses *pod*, one sentence per field; empty when it does not."""
    found = [*_of_namespaces(pod["spec"], policy), *_of_volumes(pod["spec"], policy)]
    found += _of_pod(pod, policy)
    for path, container in containers_of(pod):
        # Those that are added later are judged when they are started.
        if not path.startswith("spec.ephemeralContainers"):
            found += container_refusals(container, path, policy)
    return found


def _of_namespaces(spec: Object, policy: NodePolicy) -> Iterator[str]:
    if spec.get("hostNetwork") and not policy.access.network:
        yield (
            "spec.hostNetwork: this edge does not share the machine's network with pods "
            "(--allow-host-network)"
        )
    for name in ("hostPID", "hostIPC"):
        # Without namespaces every pod has what it asks for.
        if spec.get(name) and policy.abilities.isolated:
            yield f"spec.{name}: pods of this edge have namespaces of their own, always"
    if (system := (spec.get("os") or {}).get("name")) not in (None, "linux"):
        yield f"spec.os.name: {system} pods do not run on this node, which is linux"


def _of_volumes(spec: Object, policy: NodePolicy) -> Iterator[str]:
    for index, volume in enumerate(spec.get("volumes") or ()):
        source = volume.get("hostPath")
        if source is None:
            continue
        if why := host_path_refusal(str(source.get("path")), policy.access):
            yield f"spec.volumes[{index}].hostPath.path: {why}"


def _of_pod(pod: Object, policy: NodePolicy) -> Iterator[str]:
    context = pod["spec"].get("securityContext") or {}
    yield from _of_identity(context, "spec.securityContext", policy)
    yield from _of_profiles(context, "spec.securityContext", policy)
    yield from _of_groups(pod, policy)
    yield from _of_sysctls(pod, policy)
    for name, value in (pod["metadata"].get("annotations") or {}).items():
        if name.startswith(_APP_ARMOR) and value not in ("", "unconfined"):
            yield f"metadata.annotations[{name}]: {_NO_APP_ARMOR}"


_NO_APP_ARMOR = "Cannot enforce AppArmor: AppArmor is not enabled on the host"


def _of_identity(context: Object, path: str, policy: NodePolicy) -> Iterator[str]:
    if policy.abilities.users != "own":
        return
    for name, own in (("runAsUser", policy.edge_user), ("runAsGroup", policy.edge_group)):
        asked = context.get(name)
        if asked is not None and asked != own:
            yield (
                f"{path}.{name}: {asked} cannot be had here, where containers are the user who "
                f"runs the edge ({own})"
            )


def _of_groups(pod: Object, policy: NodePolicy) -> Iterator[str]:
    if policy.abilities.users == "any":
        return
    # fsGroup is kept by what is: one user owns every volume, and is every container.
    for index, group in enumerate(of_pod(pod, "supplementalGroups") or ()):
        yield (
            f"spec.securityContext.supplementalGroups[{index}]: {group} cannot be had here, where "
            "containers have one group (an edge that root runs can give any)"
        )


def _of_profiles(context: Object, path: str, policy: NodePolicy) -> Iterator[str]:
    seccomp = (context.get("seccompProfile") or {}).get("type")
    if seccomp == "Localhost":
        yield f"{path}.seccompProfile.type: Localhost profiles cannot be loaded on this node"
    elif seccomp == "RuntimeDefault" and not policy.abilities.seccomp:
        yield f"{path}.seccompProfile.type: the kernel of this machine takes no seccomp filters"
    app_armor = (context.get("appArmorProfile") or {}).get("type")
    if app_armor not in (None, "Unconfined"):
        yield f"{path}.appArmorProfile.type: {_NO_APP_ARMOR}"


def _of_sysctls(pod: Object, policy: NodePolicy) -> Iterator[str]:
    shared = pod["spec"].get("hostNetwork") or not policy.abilities.network
    for index, item in enumerate(of_pod(pod, "sysctls") or ()):
        name, where = item.get("name"), f"spec.securityContext.sysctls[{index}]"
        if name not in SAFE_SYSCTLS:
            yield f'{where}: forbidden sysctl: "{name}" not allowlisted'
        elif name.startswith("net.") and shared:
            yield f'{where}: forbidden sysctl: "{name}" not allowed with host net enabled'
        elif not policy.abilities.network:
            yield f'{where}: forbidden sysctl: "{name}" cannot be set on this node'


def container_refusals(container: Object, path: str, policy: NodePolicy) -> list[str]:
    """Return why this node refuses one container, whose field is at *path*."""
    where = f"{path}.securityContext"
    context = container.get("securityContext") or {}
    found = [*_of_identity(context, where, policy), *_of_profiles(context, where, policy)]
    if context.get("privileged"):
        found.append(
            f"{where}.privileged: pods of this edge never have the rights of the machine's root"
        )
    if context.get("procMount") not in (None, "Default"):
        found.append(
            f"{where}.procMount: {context['procMount']} is not given: it bares the machine"
        )
    if context.get("readOnlyRootFilesystem") and not policy.abilities.isolated:
        found.append(
            f"{where}.readOnlyRootFilesystem: cannot be enforced here, where pods share the "
            "machine's files"
        )
    found += _of_capabilities(container, where, policy)
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        if mount.get("mountPropagation") == "Bidirectional":
            text = "Bidirectional is available only to privileged containers"
            found.append(f"{path}.volumeMounts[{index}].mountPropagation: {text}")
    return found


def _of_capabilities(container: Object, path: str, policy: NodePolicy) -> Iterator[str]:
    asked = of_container(container, "capabilities") or {}
    for index, name in enumerate(asked.get("drop") or ()):
        if capability(name) not in ("ALL", *CAPABILITIES):
            yield f"{path}.capabilities.drop[{index}]: unknown capability {name}"
    for index, name in enumerate(asked.get("add") or ()):
        where = f"{path}.capabilities.add[{index}]"
        if capability(name) not in ("ALL", *CAPABILITIES):
            yield f"{where}: unknown capability {name}"
        elif capability(name) not in policy.abilities.capabilities:
            yield (
                f"{where}: {name} is not given here: it reaches further than a pod, or means "
                "nothing in one"
            )
