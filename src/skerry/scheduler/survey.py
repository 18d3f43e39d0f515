"""Explain a decision from outside: read the cluster once, decide, write nothing.

The cluster is what the API server tells at the moment of asking; pods another scheduler has
assumed but not yet bound are not seen.
"""

from __future__ import annotations

import copy

from skerry.api.objects import Object
from skerry.runtime.client import Client
from skerry.scheduler.config.load import Configuration
from skerry.scheduler.event_handlers import EventHandlers
from skerry.scheduler.explain import Explanation
from skerry.scheduler.framework.registry import Registry
from skerry.scheduler.scheduler import PodScheduler
from skerry.scheduler.service import sources


async def explain_pod(
    client: Client, configuration: Configuration, registry: Registry, pod: Object
) -> Explanation:
    """Tell where *pod* would go now, and why.

    A pod that has a node already is looked at as if it had none: it is taken off its node first,
    or it would be in its own way.
    """
    scheduler = PodScheduler(configuration, registry)
    await _read(client, scheduler, without=pod["metadata"].get("uid", ""))
    free = copy.deepcopy(pod)
    free.setdefault("spec", {}).pop("nodeName", None)
    return scheduler.explain(scheduler.cluster.reader.read(free))


async def _read(client: Client, scheduler: PodScheduler, without: str) -> None:
    for source in sources(EventHandlers(scheduler)):
        async for page in client.pages(source.resource, source.selection):
            for item in page.items:
                if item["metadata"].get("uid") != without:
                    source.handler(None, source.transform(item))
