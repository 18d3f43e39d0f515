"""Requests to a server that stands by itself fall to FlowSchemas, as in Kubernetes."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from skerry.api.keys import PLAIN
from skerry.app.api_server import ApiServer
from skerry.app.restart import restart_on_unavailable
from skerry.kit.clock import Clock
from skerry.logic.machinery.flow_bootstrap import flow_control_objects
from skerry.server.flow_classes import FlowClasses


async def classify_requests(
    api: ApiServer, classes: FlowClasses, clock: Clock
) -> Callable[[], Coroutine[Any, Any, None]]:
    """Create what every server is born with and follow it; returns what keeps it up.

    Call before the dispatcher runs.
    """
    ensure = partial(api.seeder.ensure, api.catalogue.types(PLAIN), PLAIN)
    await ensure(flow_control_objects())
    await classes.follow(api.store, api.dispatcher)
    keep = partial(classes.keep, api.store, clock, ensure)
    return lambda: restart_on_unavailable("flow schemas", keep, clock)
