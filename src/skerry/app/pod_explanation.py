"""``skerry scheduler explain``: where a pod would go and why, asked from outside.

The pod is one of the cluster, or one in a file that was never created; of a workload in a file,
the pod it would make. Nothing is written anywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvloop
import yaml

from skerry.api.errors import ApiError, NotFound
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.app.pod_scheduler import (
    PodSchedulerSettings,
    StartError,
    connected,
    connection_problem,
    read_configuration,
)
from skerry.kit import log as logging
from skerry.logic.machinery.builtin import builtin_resources
from skerry.runtime.client import Client
from skerry.runtime.kubeconfig import ClientConfig, Overrides, load
from skerry.runtime.transport import TransportError
from skerry.scheduler.config.errors import ConfigurationError
from skerry.scheduler.config.load import Configuration
from skerry.scheduler.explain import Explanation
from skerry.scheduler.framework.registry import RegistryError
from skerry.scheduler.service import build_registry
from skerry.scheduler.survey import explain_pod
from skerry.scheduler.writer import PODS
from skerry.wire.kubeconfig import KubeconfigError, kubeconfig_paths

PRIORITY_CLASSES = GroupVersionResource("scheduling.k8s.io", "v1", "priorityclasses")


@dataclass(frozen=True, slots=True)
class Question:
    """Which pod to explain: one of the cluster by name, or one in a file."""

    name: str = ""
    namespace: str = ""
    file: Path | None = None
    kubeconfig: str = ""
    context: str = ""


def explain(settings: PodSchedulerSettings, question: Question) -> list[Explanation]:
    """Tell where pods would go and why; nothing is written."""
    logging.configure(verbosity=settings.verbosity, format=settings.log_format)
    try:
        return uvloop.run(_explained(settings, question))
    except (ConfigurationError, RegistryError, KubeconfigError, ApiError, TransportError) as error:
        raise StartError(str(error)) from error
    except OSError as error:
        raise StartError(connection_problem(error)) from error


async def _explained(settings: PodSchedulerSettings, question: Question) -> list[Explanation]:
    configuration = read_configuration(settings)
    config = _asked_config(settings, configuration, question)
    namespace = question.namespace or config.namespace
    registry = build_registry()
    async with connected(config) as client:
        if question.file is None:
            pods = [await client.get(PODS, question.name, namespace)]
        else:
            pods = [
                await _as_created(client, pod, question.namespace or namespace)
                for pod in _pods_of(question.file)
            ]
        return [await explain_pod(client, configuration, registry, pod) for pod in pods]


def _asked_config(
    settings: PodSchedulerSettings, configuration: Configuration, question: Question
) -> ClientConfig:
    """Return where to ask: as the scheduler would, else as kubectl would."""
    named = question.kubeconfig or configuration.kubeconfig
    environment = settings.environment
    paths = kubeconfig_paths(
        named, environment.get("KUBECONFIG", ""), Path(environment.get("HOME", ""))
    )
    return load(paths, Overrides(context=question.context, server=settings.master))


def _pods_of(path: Path) -> list[Object]:
    """Return the pods of a file; of a workload, the pod it would make."""
    try:
        documents = [item for item in yaml.safe_load_all(path.read_text()) if item]
    except yaml.YAMLError as error:
        raise StartError(f"error parsing {path}: {error}") from error
    found = [pod for document in documents if (pod := _pod_in(document)) is not None]
    if not found:
        raise StartError(f"{path}: no pod and nothing that makes pods")
    return found


def _pod_in(document: Any) -> Object | None:
    if not isinstance(document, dict) or not isinstance(document.get("spec"), dict):
        return None
    metadata = document.get("metadata") or {}
    if document.get("kind") == "Pod":
        return {**document, "metadata": dict(metadata)}
    template = document["spec"].get("template")
    if not isinstance(template, dict):
        return None
    inner = {**(template.get("metadata") or {}), "name": metadata.get("name", "")}
    inner["namespace"] = metadata.get("namespace", "")
    return {"apiVersion": "v1", "kind": "Pod", "metadata": inner, "spec": template.get("spec", {})}


async def _as_created(client: Client, pod: Object, namespace: str) -> Object:
    """Fill in what the API server would: defaults, and the priority its class gives."""
    metadata = pod["metadata"]
    metadata["namespace"] = metadata.get("namespace") or namespace
    metadata["name"] = metadata.get("name") or metadata.get("generateName") or "pod"
    metadata.setdefault("uid", "")
    _pod_defaults()(pod)
    wanted = pod["spec"].get("priorityClassName")
    if wanted and pod["spec"].get("priority") is None:
        try:
            found = await client.get(PRIORITY_CLASSES, wanted)
        except NotFound as error:
            raise StartError(f"no PriorityClass with name {wanted} was found") from error
        pod["spec"]["priority"] = found.get("value", 0)
    return pod


def _pod_defaults() -> Callable[[Object], None]:
    return next(
        resource.default
        for resource in builtin_resources()
        if resource.info.kind == "Pod" and not resource.info.group
    )
