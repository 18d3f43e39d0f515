"""The Node object and its heartbeat.

The node says what it is, once, and again when something differs; a Lease says every ten seconds
that it still is. Capacity is the machine's: several nodes of one edge share it, each claiming all
of it, as kind's nodes do.
"""

from __future__ import annotations

import os
import platform
from datetime import datetime
from pathlib import Path

from skerry.api.errors import AlreadyExists, ApiError, NotFound
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.edge.agent.context import NodeContext
from skerry.edge.agent.control_groups import ControlGroups
from skerry.edge.agent.runtime import ContainerRuntime
from skerry.kit.log import Logger
from skerry.kit.timestamps import rfc3339, rfc3339_micro
from skerry.logic.machinery.conditions import condition_of, dated
from skerry.runtime.transport import TransportError

NODES = GroupVersionResource("", "v1", "nodes")
LEASES = GroupVersionResource("coordination.k8s.io", "v1", "leases")
_LEASE_NAMESPACE = "kube-node-lease"
_CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
ISOLATION = "node.skerry.io/isolation"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
# kubelet tells its status anew this often when nothing changed.
_STATUS_SECONDS = 300.0

_log = Logger("agent")


def capacity(max_pods: int) -> dict[str, str]:
    """Return what the machine has."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    disk = os.statvfs("/")
    return {
        "cpu": str(os.cpu_count() or 1),
        "memory": f"{memory // 1024}Ki",
        "ephemeral-storage": f"{disk.f_blocks * disk.f_frsize // 1024}Ki",
        "pods": str(max_pods),
    }


def node_object(node: NodeContext, *, control_plane: bool, tainted: bool) -> Object:
    """Return the Node as it registers itself."""
    architecture = _ARCHITECTURES.get(platform.machine(), platform.machine())
    labels = {
        "beta.kubernetes.io/arch": architecture,
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": architecture,
        "kubernetes.io/hostname": node.name,
        "kubernetes.io/os": "linux",
    }
    if control_plane:
        labels[_CONTROL_PLANE] = ""
    spec: Object = {
        "podCIDR": f"10.244.{node.number}.0/24",
        "podCIDRs": [f"10.244.{node.number}.0/24"],
        "providerID": f"skerry://{node.name}",
    }
    if tainted:
        spec["taints"] = [{"key": _CONTROL_PLANE, "effect": "NoSchedule"}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": node.name,
            "labels": labels,
            "annotations": {
                ISOLATION: node.runtime.isolation,
                "volumes.kubernetes.io/controller-managed-attach-detach": "true",
            },
        },
        "spec": spec,
    }


def node_status(node: NodeContext, old: list[Object], now: datetime) -> Object:
    """Return the node's status; *old* are the conditions it has."""
    items = [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", _enough("memory")),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", _enough("PID")),
        isolation_condition(node.runtime),
        limits_condition(node.control_groups),
        ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ]
    amounts = capacity(node.settings.max_pods)
    return {
        "capacity": amounts,
        "allocatable": amounts,
        "conditions": [_condition(old, *item, now) for item in items],
        "addresses": [
            {"type": "InternalIP", "address": node.host_ip},
            {"type": "Hostname", "address": node.name},
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 0}},
        "nodeInfo": _information(node),
    }


_PLAIN = (
    "pods are plain processes of this machine: they share its files, its users, its processes and "
    "its network, Secrets of other pods among them; pods that ask for more are refused"
)
_USERS = {
    "any": "any user and group",
    "one": "one user each, without further groups",
    "own": "the user who runs the edge",
}


def isolation_condition(runtime: ContainerRuntime) -> tuple[str, str, str, str]:
    """Return what the node says of how far its pods are kept apart: no more than is enforced."""
    kind, abilities = "ProcessIsolation", runtime.abilities
    if not abilities.isolated:
        return kind, "False", "PlainProcesses", _PLAIN
    parts = ["files and processes of their own", f"run as {_USERS[abilities.users]}"]
    parts.append("a network of their own" if abilities.network else "share the machine's network")
    parts.append("filtered system calls" if abilities.seccomp else "no filter of system calls")
    text = f"pods are isolated by {runtime.isolation}: {', '.join(parts)}"
    return kind, "True", "Isolated", text


def limits_condition(groups: ControlGroups) -> tuple[str, str, str, str]:
    """Return what the node says of resource limits."""
    kind = "ResourceLimitsEnforced"
    if groups.controllers:
        kept = ", ".join(sorted(groups.controllers))
        return kind, "True", "ControlGroups", f"limits are enforced by control groups: {kept}"
    why = groups.why or "no control groups"
    return kind, "False", "NoControlGroups", f"limits of cpu and memory are not enforced: {why}"


def _enough(what: str) -> str:
    return f"kubelet has sufficient {what} available"


def _condition(
    old: list[Object], kind: str, status: str, reason: str, message: str, now: datetime
) -> Object:
    condition = {"type": kind, "status": status, "reason": reason, "message": message}
    fresh = {**condition, "lastHeartbeatTime": rfc3339(now)}
    return dated(fresh, condition_of(old, kind), rfc3339(now))


def _information(node: NodeContext) -> Object:
    system = platform.uname()
    identity = ""
    for path in (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id")):
        if not identity and path.exists():
            identity = path.read_text().strip()
    boot = Path("/proc/sys/kernel/random/boot_id")
    return {
        "machineID": identity,
        "systemUUID": identity,
        "bootID": boot.read_text().strip() if boot.exists() else "",
        "kernelVersion": system.release,
        "osImage": _os_image(),
        "containerRuntimeVersion": f"{node.runtime.name}://{node.runtime.version}",
        "kubeletVersion": "v1.32.0",
        "kubeProxyVersion": "v1.32.0",
        "operatingSystem": "linux",
        "architecture": _ARCHITECTURES.get(system.machine, system.machine),
    }


def _os_image() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
    except OSError:
        return "Linux"


class NodeHeartbeat:
    """Registers the node and keeps saying that it lives."""

    def __init__(self, node: NodeContext, *, control_plane: bool, tainted: bool) -> None:
        self._node = node
        self._object = node_object(node, control_plane=control_plane, tainted=tainted)
        self._lease: Object | None = None

    async def register(self) -> None:
        """Have the Node, with its present status, and its Lease."""
        client = self._node.client
        try:
            await client.create(NODES, self._object)
        except AlreadyExists:
            metadata = self._object["metadata"]
            patch = {
                "metadata": {"labels": metadata["labels"], "annotations": metadata["annotations"]}
            }
            await client.patch(NODES, self._node.name, patch, kind="merge")
        await self._report_status()
        await self._renew()

    async def run(self) -> None:
        """Renew the lease, and now and then the status, until cancelled."""
        clock, settings = self._node.clock, self._node.settings
        items = clock.monotonic()
        while True:
            await clock.sleep(settings.heartbeat_seconds)
            try:
                await self._renew()
                if clock.monotonic() - items >= _STATUS_SECONDS:
                    await self._report_status()
                    items = clock.monotonic()
            except NotFound:
                await self._again()
            except (ApiError, TransportError) as error:
                _log.warning("heartbeat failed", node=self._node.name, error=error)

    async def _again(self) -> None:
        """Come back after somebody deleted the Node or the Lease."""
        self._lease = None
        try:
            await self.register()
        except (ApiError, TransportError) as error:
            _log.warning("registration failed", node=self._node.name, error=error)

    async def _report_status(self) -> None:
        client, name = self._node.client, self._node.name
        live = await client.get(NODES, name)
        old = (live.get("status") or {}).get("conditions") or []
        status = node_status(self._node, old, self._node.clock.now())
        await client.patch(NODES, name, {"status": status}, kind="strategic", subresource="status")

    async def _renew(self) -> None:
        client, node = self._node.client, self._node
        now = rfc3339_micro(node.clock.now())
        if self._lease is None:
            spec = {
                "holderIdentity": node.name,
                "leaseDurationSeconds": node.settings.lease_seconds,
                "renewTime": now,
            }
            lease = {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": node.name, "namespace": _LEASE_NAMESPACE},
                "spec": spec,
            }
            try:
                self._lease = await client.create(LEASES, lease)
                return
            except AlreadyExists:
                self._lease = lease
        await client.patch(
            LEASES, node.name, {"spec": {"renewTime": now}}, _LEASE_NAMESPACE, kind="merge"
        )
