"""What a syncer is told: SyncerConfig ``the-one`` of a mailbox, always in the same order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.logic.fleet.translation.what import UpsyncSet

CONFIG_NAME = "the-one"
CONFIG_TYPE = GroupResource("edge.kcp.io", "syncerconfigs")

# What is left when the last placement has gone; the object stays.
EMPTY_SPEC: Mapping[str, object] = {"namespaceScope": {}}


def config_spec(
    namespaces: Iterable[str],
    resources: Mapping[GroupResource, str],
    objects: Mapping[GroupResource, tuple[str, Iterable[str]]],
    upsync: Iterable[UpsyncSet],
) -> Object:
    """Return the spec for these namespaces, the types in them, and cluster-scoped *objects*.

    *resources* maps to versions, *objects* to a version and names. Without namespaces the types
    in them mean nothing and are left out.
    """
    names = sorted(set(namespaces))
    scope: Object = {}
    if names:
        scope["namespaces"] = names
        scope["resources"] = [
            _resource(resource, version) for resource, version in sorted(resources.items())
        ]
    spec: Object = {"namespaceScope": scope}
    cluster_scope = [
        {**_resource(resource, version), "objects": sorted(set(named))}
        for resource, (version, named) in sorted(objects.items(), key=lambda pair: pair[0])
    ]
    if cluster_scope:
        spec["clusterScope"] = cluster_scope
    sets = [each.written() for each in united(upsync)]
    if sets:
        spec["upsync"] = sets
    return spec


def united(sets: Iterable[UpsyncSet]) -> list[UpsyncSet]:
    """Return *sets* without repetitions; lists that differ in order only are the same."""
    found: dict[tuple[object, ...], UpsyncSet] = {}
    for each in sorted(sets, key=_written_order):
        meaning = (
            each.group,
            *(tuple(sorted(set(part))) for part in (each.resources, each.namespaces, each.names)),
        )
        found.setdefault(meaning, each)
    return list(found.values())


def _written_order(each: UpsyncSet) -> tuple[object, ...]:
    return each.group, each.resources, each.namespaces, each.names


def config_object(spec: Object) -> Object:
    """Return a new SyncerConfig."""
    return {
        "apiVersion": f"{CONFIG_TYPE.group}/v1alpha1",
        "kind": "SyncerConfig",
        "metadata": {"name": CONFIG_NAME},
        "spec": spec,
    }


def _resource(resource: GroupResource, version: str) -> Object:
    return {"apiVersion": version, "group": resource.group, "resource": resource.resource}
