"""Which objects a user with a narrow view sees at all.

Edges and the bearers of bootstrap credentials are shown the objects that concern them and no
others, in every kind of list and watch. What they are not shown they do not write either: the
answer to a patch that tests a value would tell it. Everybody else sees what RBAC lets them read.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from skerry.api.edge import PROJECTED, UPSYNCED
from skerry.api.edge_identity import EDGE_GROUPS, NARROW_GROUPS
from skerry.api.errors import Forbidden
from skerry.api.kinds import GroupResource
from skerry.logic.machinery.edges.rights import (
    LEASES,
    LOGICAL_CLUSTERS,
    MAKE_TYPES,
    REQUESTS,
    SYNCER_CONFIGS,
    is_heartbeat,
)
from skerry.logic.machinery.workspaces.principals import ACCOUNT_PREFIX
from skerry.server.codec import decode_as
from skerry.server.request.call import Call
from skerry.server.user import User

# What syncers with a ServiceAccount read besides.
_READ_BEFORE = MAKE_TYPES | {LOGICAL_CLUSTERS}

Sees = Callable[[bytes], bool]


class _Metadata(msgspec.Struct, gc=False):
    name: str
    namespace: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _Object(msgspec.Struct, gc=False):
    metadata: _Metadata


class _RequestSpec(msgspec.Struct, gc=False):
    username: str = ""


class _Request(msgspec.Struct, gc=False):
    spec: _RequestSpec


_objects = msgspec.json.Decoder(_Object)
_requests = msgspec.json.Decoder(_Request)


def is_narrow(user: User) -> bool:
    """Tell whether *user* is shown some objects only; nearly free for everybody else."""
    return len(user.groups) == 1 and user.groups in NARROW_GROUPS


def refuse_unseen(call: Call, value: bytes) -> None:
    """Raise Forbidden when the caller is not shown this object."""
    info = call.resource.info
    sees = view_of(call.user, info.group_resource)
    if sees is not None and not sees(value):
        why = "it is neither a projected copy nor a report of this edge"
        raise Forbidden.of(info.group, info.resource, call.info.name, why)


def view_of(user: User, kind: GroupResource) -> Sees | None:
    """Return what tells of stored objects of *kind* whether *user* sees them; None sees all."""
    if user.groups not in NARROW_GROUPS:
        return None
    if kind == REQUESTS:
        return lambda value: decode_as(_requests, value).spec.username == user.name
    if user.groups != EDGE_GROUPS:
        return lambda _: False
    if kind == SYNCER_CONFIGS or (kind in _READ_BEFORE and user.name.startswith(ACCOUNT_PREFIX)):
        return None
    return _is_lease_seen if kind == LEASES else _is_seen


def _is_seen(value: bytes) -> bool:
    """Tell whether an object is a projected copy, or came up from the edge."""
    metadata = decode_as(_objects, value).metadata
    if (metadata.labels or {}).get(PROJECTED) == "yes":
        return True
    return (metadata.annotations or {}).get(UPSYNCED) == "true"


def _is_lease_seen(value: bytes) -> bool:
    metadata = decode_as(_objects, value).metadata
    return is_heartbeat(LEASES, metadata.namespace, metadata.name) or _is_seen(value)
