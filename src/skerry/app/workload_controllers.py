"""The workload controllers of one cluster, built and run together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from skerry.app.api_server import ApiServer
from skerry.app.core_controllers import Runnable, embedded_client, fed_factory
from skerry.controllers.workload import (
    disruption,
    endpointslice_mirroring,
    node_lifecycle,
    not_enforced,
    replicaset,
)
from skerry.controllers.workload.autoscaler import controller as autoscaler
from skerry.controllers.workload.cronjob import controller as cronjob
from skerry.controllers.workload.daemonset import controller as daemonset
from skerry.controllers.workload.deployment import controller as deployment
from skerry.controllers.workload.endpointslice import controller as endpointslice
from skerry.controllers.workload.job import controller as job
from skerry.controllers.workload.statefulset import controller as statefulset
from skerry.controllers.workload.volume import controller as volume
from skerry.kit.clock import Clock
from skerry.kit.ids import IdSource
from skerry.runtime.client import Client
from skerry.runtime.context import ControllerContext
from skerry.runtime.events import EventRecorder
from skerry.runtime.informer import InformerFactory


def _build_replication_controller(context: ControllerContext) -> Runnable:
    return replicaset.build(context, replicaset.REPLICATION_CONTROLLER)


_BUILDERS: dict[str, Callable[[ControllerContext], Runnable]] = {
    deployment.NAME: deployment.build,
    replicaset.REPLICA_SET.controller: replicaset.build,
    replicaset.REPLICATION_CONTROLLER.controller: _build_replication_controller,
    statefulset.NAME: statefulset.build,
    daemonset.NAME: daemonset.build,
    job.NAME: job.build,
    cronjob.NAME: cronjob.build,
    endpointslice.NAME: endpointslice.build,
    endpointslice_mirroring.NAME: endpointslice_mirroring.build,
    disruption.NAME: disruption.build,
}


def build_workload_controllers(
    client: Client, factory: InformerFactory, volumes: str = ""
) -> tuple[list[Runnable], list[EventRecorder]]:
    """Return every workload controller, and the recorders of their events.

    Each has a recorder of its own, so that an Event names who it comes from. Local volumes are
    directories below *volumes*; without it volumes are made by others. An embedded edge has some,
    and there objects that nobody acts upon say so, HorizontalPodAutoscalers among them: nobody
    measures its pods. Its nodes live and die with this process, so nobody judges them; those of a
    plain server are somebody else's.
    """
    found: list[Runnable] = []
    recorders: list[EventRecorder] = []

    def build_volume(context: ControllerContext) -> Runnable:
        return volume.build(context, volumes)

    builders = {**_BUILDERS, volume.NAME: build_volume}
    if volumes:
        builders[not_enforced.NAME] = not_enforced.build
    else:
        builders |= {
            node_lifecycle.NAME: node_lifecycle.build,
            autoscaler.NAME: autoscaler.build,
        }
    for name, build in builders.items():
        recorder = EventRecorder(client, name, metrics=factory.metrics)
        recorders.append(recorder)
        context = ControllerContext(
            client, factory, factory.ids, metrics=factory.metrics, recorder=recorder
        )
        found.append(build(context))
    return found, recorders


async def run_plain_workload_controllers(api: ApiServer, clock: Clock, ids: IdSource) -> None:
    """Run them beside a server that has no nodes, until cancelled."""
    client = embedded_client(api, "skerry/workload-controllers", clock)
    factory = fed_factory(api, client, ids)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(factory.run())
        tasks.create_task(run_workload_controllers(client, factory))


async def run_workload_controllers(
    client: Client, factory: InformerFactory, volumes: str = ""
) -> None:
    """Run all of them until cancelled; *factory* is run by whoever owns it."""
    controllers, recorders = build_workload_controllers(client, factory, volumes)
    async with asyncio.TaskGroup() as tasks:
        for recorder in recorders:
            tasks.create_task(recorder.run())
        for controller in controllers:
            tasks.create_task(controller.run())
