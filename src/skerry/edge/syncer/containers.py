"""Whether a Namespace or a definition holds anything that is not ours.

Deleting either deletes everything inside, so it is deleted only when nothing else is inside:
nothing but what we placed, what belongs to that (has an owner), and what every namespace is born
with. What we may not look at counts as somebody else's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from skerry.api.errors import ApiError, MethodNotAllowed, NotFound
from skerry.api.kinds import GroupResource, GroupVersionResource
from skerry.edge.syncer.state import SyncerState
from skerry.logic.resource import Object
from skerry.logic.syncing.records import Placed
from skerry.logic.syncing.refs import NAMESPACES, Ref
from skerry.runtime.client import Selection

# Reports about objects, not objects somebody would miss.
_DERIVED = frozenset(
    (
        GroupResource("", "events"),
        GroupResource("events.k8s.io", "events"),
        GroupResource("", "endpoints"),
        GroupResource("discovery.k8s.io", "endpointslices"),
        GroupResource("metrics.k8s.io", "pods"),
    )
)
_BORN_WITH = frozenset((("", "configmaps", "kube-root-ca.crt"), ("", "serviceaccounts", "default")))
# Enough to find a stranger among our own; a page more costs nothing to a person.
_PAGE = 200


async def holds_others(state: SyncerState, ref: Ref, record: Placed | None) -> bool:
    """Tell whether deleting *ref* would delete something that is not ours."""
    if ref.group_resource == NAMESPACES:
        types = _namespaced_types(state)
        selection = Selection(namespace=ref.name, metadata_only=True)
    else:
        types = _defined_types(record.desired.content if record else {})
        selection = Selection(metadata_only=True)
    for gvr in types:
        if await _strangers(state, gvr, selection):
            return True
    return False


def _namespaced_types(state: SyncerState) -> list[GroupVersionResource]:
    return [
        info.gvr
        for kind, info in state.served_edge.preferred().items()
        if info.namespaced and kind not in _DERIVED and "list" in info.verbs
    ]


def _defined_types(definition: Mapping[str, Any]) -> list[GroupVersionResource]:
    spec = definition.get("spec") or {}
    plural = (spec.get("names") or {}).get("plural", "")
    served = [v["name"] for v in spec.get("versions") or () if v.get("served")]
    return [GroupVersionResource(spec.get("group", ""), name, plural) for name in served[:1]]


async def _strangers(state: SyncerState, gvr: GroupVersionResource, selection: Selection) -> bool:
    try:
        async for page in state.edge.pages(gvr, selection, _PAGE):
            if any(_is_stranger(state, gvr, item) for item in _items(page.items)):
                return True
    except (NotFound, MethodNotAllowed):
        return False
    except ApiError:
        return True
    return False


def _items(items: Iterable[Object]) -> Iterable[Object]:
    return (item for item in items if not item["metadata"].get("ownerReferences"))


def _is_stranger(state: SyncerState, gvr: GroupVersionResource, item: Object) -> bool:
    ref = Ref.to(gvr.group_resource, item)
    if (ref.group, ref.resource, ref.name) in _BORN_WITH:
        return False
    # The lock of this very syncer may be kept in a namespace of ours.
    return not state.memory.was_placed(ref)
