"""What a pod's worker tells the server: its status, and that nothing of it is left."""

from __future__ import annotations

from skerry.api.errors import ApiError, Conflict, NotFound
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.edge.agent.context import NodeContext
from skerry.kit.log import Logger
from skerry.runtime.client import DeleteOptions
from skerry.runtime.transport import TransportError

PODS = GroupVersionResource("", "v1", "pods")

_log = Logger("agent")


async def write_status(node: NodeContext, pod: Object, status: Object) -> bool:
    """Write the status of exactly this pod; False when it must be tried again."""
    metadata = pod["metadata"]
    patch = {"metadata": {"uid": metadata["uid"]}, "status": status}
    try:
        await node.client.patch(
            PODS,
            metadata["name"],
            patch,
            metadata["namespace"],
            kind="strategic",
            subresource="status",
        )
    except (NotFound, Conflict):
        return True  # gone, or another pod of the same name; ours will be reported gone
    except (ApiError, TransportError) as error:
        _log.warning("status not written", key=metadata["name"], error=error)
        return False
    return True


async def finish_deletion(node: NodeContext, pod: Object) -> bool:
    """Let the server forget exactly this pod; False when it must be tried again."""
    metadata = pod["metadata"]
    options = DeleteOptions(uid=metadata["uid"], grace_seconds=0)
    try:
        await node.client.delete(PODS, metadata["name"], metadata["namespace"], options)
    except (NotFound, Conflict):
        return True
    except (ApiError, TransportError) as error:
        _log.warning("deletion not finished", key=metadata["name"], error=error)
        return False
    return True
