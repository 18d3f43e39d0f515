"""Whether a Namespace or a definition holds anything that is to stay.

Deleting either deletes everything inside, so it is deleted only when nothing else is inside:
nothing but what we placed and are to delete as well, what belongs to that (has an owner), and what
every namespace is born with. So the deletion budget, which counts objects, counts all of them.
What we may not look at counts as somebody else's; the rights that are printed for an edge cover
what is placed and not more, so that is how it often ends.

The edge is asked and no cache: what is looked for is what we do not watch. Between the answer and
the deletion somebody may create one more object, as with any ``kubectl delete namespace``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from skerry.api.errors import ApiError, Forbidden, MethodNotAllowed, NotFound
from skerry.api.kinds import GroupResource, GroupVersionResource
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.edge.syncer.state import SyncerState
from skerry.logic.fleet.syncing.access import missing_rule
from skerry.logic.fleet.syncing.manifest import MANAGED
from skerry.logic.fleet.syncing.recorded import DownsyncRecord
from skerry.logic.machinery.edges.scope import NAMESPACES
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
_ROLE_BINDINGS = GroupResource("rbac.authorization.k8s.io", "rolebindings")
_BORN_WITH = frozenset((("", "configmaps", "kube-root-ca.crt"), ("", "serviceaccounts", "default")))
# Enough to find a stranger among our own; a page more costs nothing to a person.
_PAGE = 200


async def others_inside(state: SyncerState, ref: ObjectRef, record: DownsyncRecord | None) -> str:
    """Return what, as far as we know, deleting *ref* would delete beside ours; empty: nothing."""
    if ref.group_resource == NAMESPACES:
        types = _namespaced_types(state)
        selection = Selection(namespace=ref.name, metadata_only=True)
    else:
        types = _defined_types(record.desired.content if record else {})
        selection = Selection(metadata_only=True)
    for gvr in types:
        if found := await _stranger(state, gvr, selection):
            return found
    return ""


def _namespaced_types(state: SyncerState) -> list[GroupVersionResource]:
    return [
        info.gvr
        for kind, info in state.edge_types.preferred().items()
        if info.namespaced and kind not in _DERIVED and "list" in info.verbs
    ]


def _defined_types(definition: Mapping[str, Any]) -> list[GroupVersionResource]:
    spec = definition.get("spec") or {}
    plural = (spec.get("names") or {}).get("plural", "")
    served = [v["name"] for v in spec.get("versions") or () if v.get("served")]
    return [GroupVersionResource(spec.get("group", ""), name, plural) for name in served[:1]]


async def _stranger(state: SyncerState, gvr: GroupVersionResource, selection: Selection) -> str:
    try:
        async for page in state.edge.pages(gvr, selection, _PAGE):
            for item in _items(page.items):
                if _is_stranger(state, gvr, item):
                    found = ObjectRef.local(gvr.group_resource, item)
                    return f"it holds objects that are to stay, such as {found.text}"
    except (NotFound, MethodNotAllowed):
        return ""
    except Forbidden:
        rule = missing_rule("list", gvr.group_resource, selection.namespace)
        return f"to know that nothing else is inside, {rule}"
    except ApiError as error:
        return f"nobody knows what is inside: {error.message}"
    return ""


def _items(items: Iterable[Object]) -> Iterable[Object]:
    return (item for item in items if not item["metadata"].get("ownerReferences"))


def _is_stranger(state: SyncerState, gvr: GroupVersionResource, item: Object) -> bool:
    ref = ObjectRef.local(gvr.group_resource, item)
    if (ref.group, ref.resource, ref.name) in _BORN_WITH:
        return False
    if ref.group_resource == _ROLE_BINDINGS and MANAGED.items() <= _labels(item).items():
        return False  # by which we may work here at all
    return not state.records.was_placed(ref) or state.budget.of(ref) == "unproposed"


def _labels(item: Object) -> dict[str, str]:
    return dict(item["metadata"].get("labels") or {})
