"""From what a pod says of a container to what a runtime must know to start it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from skerry.api.objects import Object
from skerry.edge.agent.context import NodeContext
from skerry.edge.agent.control_groups import storage_limit
from skerry.edge.agent.environment import (
    ConfigurationMissing,
    Facts,
    arguments,
    environment,
    proxy_environment,
    service_environment,
)
from skerry.edge.agent.pod_files import host_name
from skerry.edge.agent.runtime import ContainerSpec, Image, Input, Mount, Sandbox, Volume
from skerry.edge.agent.security_context import confinement
from skerry.edge.agent.termination import TERMINATION_LOG, TERMINATION_PATH


@dataclass(slots=True)
class Surroundings:
    """What a container needs of its pod; the pod's worker keeps it current."""

    directory: Path
    facts: Facts
    mounts_of: Callable[[Object, Mapping[str, str]], list[Mount]]
    changed: Callable[[], None]
    ports_changed: Callable[[], None]
    sources_changed: asyncio.Event
    processes_of: Callable[[str], str]
    # Set before anything of the pod is started, on a node whose pods have namespaces.
    sandbox: Sandbox | None = None
    # Why nothing of the pod may be started; empty when it may.
    refusal: str = ""


def container_spec(
    node: NodeContext,
    pod: Object,
    spec: Object,
    image: Image,
    around: Surroundings,
    ports: Mapping[int, int],
    place: Path,
) -> ContainerSpec:
    """Return everything there is to know to start a container; raises ``ConfigurationMissing``.

    *place* is the directory of this attempt, *ports* what its container ports became.
    """
    values = _variables(node, pod, spec, around)
    argv = arguments(spec, image.entrypoint, image.command, values)
    if not argv:
        raise ConfigurationMissing(f'no command specified for image "{image.reference}"')
    ended = Mount(
        spec.get("terminationMessagePath") or TERMINATION_PATH, Volume(place / TERMINATION_LOG)
    )
    return ContainerSpec(
        image,
        argv,
        values,
        str(spec.get("workingDir") or ""),
        (*around.mounts_of(spec, values), ended),
        ports,
        place,
        replace(
            confinement(pod, spec, image, node.runtime.abilities, os.geteuid()),
            storage_bytes=storage_limit(spec),
            control_group=node.control_groups.make(pod["metadata"]["uid"], spec, place.name),
        ),
        sandbox=around.sandbox,
        beside=around.processes_of(spec.get("targetContainerName") or ""),
        input=Input(bool(spec.get("stdin")), bool(spec.get("stdinOnce")), bool(spec.get("tty"))),
    )


def _variables(
    node: NodeContext, pod: Object, spec: Object, around: Surroundings
) -> dict[str, str]:
    namespace = pod["metadata"]["namespace"]
    values = {"HOSTNAME": host_name(pod)}
    if proxy := node.sources.proxy_url(namespace):
        alone = bool(around.sandbox and around.sandbox.network)
        values |= proxy_environment(proxy, alone=alone)
    if pod["spec"].get("enableServiceLinks", True):
        services = node.sources.services_for(namespace)
        values |= service_environment(services, node.sources.reached_at)
    values |= environment(
        spec, around.facts, lambda kind, name: node.sources.configuration(namespace, kind, name)
    )
    return values
