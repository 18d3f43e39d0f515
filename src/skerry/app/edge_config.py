"""What an embedded edge cluster is made of, read from kind's own configuration files.

kind's names mean here what they mean there: nodes with roles, ports of nodes published on the
machine, labels. What only makes sense for containers (images, mounts into the node, patches for
kubeadm) is accepted and named as ignored, so that a file written for kind works as it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from skerry.edge.agent.network import LOOPBACK, Published
from skerry.kit.secret_files import secret_directory

_API_VERSION = "kind.x-k8s.io/v1alpha4"
_ROLES = ("control-plane", "worker")
_UNDERSTOOD = {"kind", "apiVersion", "name", "nodes", "networking"}
_NODE_UNDERSTOOD = {"role", "extraPortMappings", "labels"}
_NETWORKING_UNDERSTOOD = {"apiServerPort", "apiServerAddress", "serviceSubnet"}
_RECORD = "edge.json"
_WARNING = "warning"
# auto: the strongest separation this machine offers.
RUNTIMES = ("auto", "oci", "namespaces", "bubblewrap", "processes")
# Below an edge's directory: one directory per node, with one per pod.
PODS_DIRECTORY = "pods"
NETWORK_DIRECTORY = "network"


class EdgeConfigError(Exception):
    """A configuration that cannot be used; says which field and why."""


@dataclass(frozen=True, slots=True)
class NodeConfig:
    """One node of an edge."""

    name: str
    control_plane: bool
    labels: Mapping[str, str] = field(default_factory=dict)
    published: tuple[Published, ...] = ()


@dataclass(frozen=True, slots=True)
class EdgeConfig:
    """An edge cluster as it is to be run."""

    name: str
    nodes: tuple[NodeConfig, ...]
    api_address: str = LOOPBACK
    api_port: int = 0
    service_network: str = "10.96.0.0/16"
    catalogue: str = ""
    """Path of a catalogue file; empty: ``images.yaml`` in the edge's directory."""
    runtime: str = "auto"
    """One of ``RUNTIMES``: how containers are run."""
    host_paths: tuple[str, ...] = ()
    """Folders of the machine below which ``hostPath`` volumes may lie; default none."""
    host_network: bool = False
    """Whether pods may ask for the machine's network (``hostNetwork``); default not."""

    @property
    def published(self) -> list[Published]:
        """Every port published on the machine."""
        return [port for node in self.nodes for port in node.published]

    @property
    def tainted(self) -> bool:
        """Whether control-plane nodes are kept free of pods, as kind does beside workers."""
        return any(not node.control_plane for node in self.nodes)


def plain_config(name: str) -> EdgeConfig:
    """Return what an edge is without a configuration file: one node, nothing published."""
    return EdgeConfig(name, (NodeConfig(f"{name}-control-plane", True),))


def parse_config(name: str, text: str) -> tuple[EdgeConfig, list[str]]:
    """Return the edge a kind configuration describes, and which fields of it are ignored."""
    try:
        document = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise EdgeConfigError(f"not YAML: {error}") from error
    if not isinstance(document, dict):
        raise EdgeConfigError("want a mapping with kind: Cluster")
    if document.get("kind") != "Cluster" or document.get("apiVersion") != _API_VERSION:
        found = f"{document.get('apiVersion')}, kind {document.get('kind')}"
        raise EdgeConfigError(f"found apiVersion {found}: want {_API_VERSION}, kind Cluster")
    ignored = sorted(set(document) - _UNDERSTOOD)
    items = document.get("nodes") or [{"role": "control-plane"}]
    nodes = _nodes(name, items, ignored)
    networking = document.get("networking") or {}
    ignored += [f"networking.{key}" for key in sorted(set(networking) - _NETWORKING_UNDERSTOOD)]
    config = EdgeConfig(
        name,
        nodes,
        str(networking.get("apiServerAddress") or LOOPBACK),
        int(networking.get("apiServerPort") or 0),
        str(networking.get("serviceSubnet") or "10.96.0.0/16"),
    )
    _refuse_double_ports(config)
    return config, ignored


def _nodes(name: str, items: Any, ignored: list[str]) -> tuple[NodeConfig, ...]:
    if not isinstance(items, list):
        raise EdgeConfigError("nodes: want a list")
    counts = dict.fromkeys(_ROLES, 0)
    found: list[NodeConfig] = []
    for index, item in enumerate(items):
        role = item.get("role") or "control-plane"
        if role not in _ROLES:
            raise EdgeConfigError(f"nodes[{index}].role: {role!r} is none of {', '.join(_ROLES)}")
        counts[role] += 1
        # kind's names: the first of a role has no number.
        suffix = role if counts[role] == 1 else f"{role}{counts[role]}"
        ignored += [f"nodes[{index}].{key}" for key in sorted(set(item) - _NODE_UNDERSTOOD)]
        node = f"{name}-{suffix}"
        published = _published(node, item.get("extraPortMappings") or (), index)
        labels = {str(key): str(value) for key, value in (item.get("labels") or {}).items()}
        found.append(NodeConfig(node, role == "control-plane", labels, published))
    if not counts["control-plane"]:
        raise EdgeConfigError("nodes: want at least one with role control-plane")
    return tuple(found)


def _published(node: str, mappings: Any, index: int) -> tuple[Published, ...]:
    found = []
    for number, mapping in enumerate(mappings):
        where = f"nodes[{index}].extraPortMappings[{number}]"
        if str(mapping.get("protocol") or "TCP").upper() != "TCP":
            raise EdgeConfigError(f"{where}.protocol: only TCP ports can be published")
        container, host = _port(mapping, "containerPort", where), _port(mapping, "hostPort", where)
        address = str(mapping.get("listenAddress") or LOOPBACK)
        found.append(Published(node, container, host, address))
    return tuple(found)


def _port(mapping: Mapping[str, Any], name: str, where: str) -> int:
    value = mapping.get(name)
    if not isinstance(value, int) or not 0 < value < 65536:
        raise EdgeConfigError(f"{where}.{name}: {value!r}: want a port between 1 and 65535")
    return value


def _refuse_double_ports(config: EdgeConfig) -> None:
    seen: set[tuple[str, int]] = set()
    for port in config.published:
        place = (port.address, port.host_port)
        if place in seen:
            raise EdgeConfigError(f"hostPort {port.host_port} is published twice")
        seen.add(place)


def save_config(directory: Path, config: EdgeConfig) -> None:
    """Keep the configuration with the edge's data, replacing what was there as a whole."""
    secret_directory(directory)
    record = {
        "name": config.name,
        "api": [config.api_address, config.api_port],
        "serviceNetwork": config.service_network,
        "catalogue": config.catalogue,
        "runtime": config.runtime,
        "hostPaths": list(config.host_paths),
        "hostNetwork": config.host_network,
        "nodes": [
            {
                "name": node.name,
                "controlPlane": node.control_plane,
                "labels": dict(node.labels),
                "published": [
                    [port.container_port, port.host_port, port.address] for port in node.published
                ],
            }
            for node in config.nodes
        ],
    }
    temporary = directory / f"{_RECORD}.new"
    temporary.write_text(json.dumps(record, indent=2))
    temporary.replace(directory / _RECORD)


def save_warning(directory: Path, text: str) -> None:
    """Keep a warning for whoever starts the edge; empty for none."""
    (directory / _WARNING).write_text(text)


def load_warning(directory: Path) -> str:
    """Return what was kept; empty when nothing was."""
    path = directory / _WARNING
    return path.read_text() if path.exists() else ""


def load_config(directory: Path) -> EdgeConfig:
    """Return the configuration kept in *directory*; raises ``EdgeConfigError``."""
    try:
        record = json.loads((directory / _RECORD).read_text())
    except FileNotFoundError as error:
        raise EdgeConfigError(f"{directory} holds no edge") from error
    except json.JSONDecodeError as error:
        raise EdgeConfigError(f"{directory / _RECORD}: {error}") from error
    nodes = tuple(
        NodeConfig(
            item["name"],
            item["controlPlane"],
            item["labels"],
            tuple(Published(item["name"], *parts) for parts in item["published"]),
        )
        for item in record["nodes"]
    )
    address, port = record["api"]
    return EdgeConfig(
        record["name"],
        nodes,
        address,
        port,
        record["serviceNetwork"],
        record["catalogue"],
        record.get("runtime", "auto"),
        tuple(record.get("hostPaths", ())),
        bool(record.get("hostNetwork", False)),
    )
