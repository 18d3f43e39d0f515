"""SyncerConfig ``the-one`` of a mailbox: what its syncer carries, always in the same order.

It is a row of ``desired`` like any copy, derived from the same tables (``desired_config``).

A syncer follows what its SyncerConfig names and nothing else, so the config decides what an edge
may see of its mailbox, and what it takes for removed. What is missing here by mistake is deleted at
the edge. Therefore

* kinds in namespaces are named for all objects, whether there is one now or not: the first
  ConfigMap of a workspace goes down without a change of the config, and the last does not make the
  syncer stop looking at ConfigMaps before it has seen that one go;
* what is in no namespace is named object by object, since most of what a mailbox has of it
  (bindings, roles of the hub) is none of the edge's business;
* a copy that stays although it is granted no more is still named, or the edge would drop what the
  mailbox keeps;
* one part that cannot be known yet makes the whole config wait: there is no half of it.

Lists are sorted and repetitions left out, so that equal wishes are equal bytes, whoever asked
first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from skerry.api.edge import API_VERSION, SYNCER_CONFIG_NAME
from skerry.api.edge_categories import category_of
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.api.refs import ClusterName, ObjectRef, namespace_ref
from skerry.logic.fleet.customization.customize import Problem
from skerry.logic.fleet.translation.categories import NAMESPACES
from skerry.logic.fleet.translation.desired import DesiredThere
from skerry.logic.fleet.translation.grants import granted_upsync
from skerry.logic.fleet.translation.merging import VERSIONS_DISAGREE, PlacementProblem
from skerry.logic.fleet.translation.rows import DesiredRow
from skerry.logic.fleet.translation.selected import CHOSEN, NAMED, UpsyncSet
from skerry.logic.fleet.translation.types import Agreement
from skerry.logic.fleet.translation.workspaces import Scope

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
        "apiVersion": API_VERSION,
        "kind": "SyncerConfig",
        "metadata": {"name": SYNCER_CONFIG_NAME},
        "spec": spec,
    }


def _resource(resource: GroupResource, version: str) -> Object:
    return {"apiVersion": version, "group": resource.group, "resource": resource.resource}


# -- the row -------------------------------------------------------------------------------------


class DesiredConfig(NamedTuple):
    """The spec that is desired; None when no placement goes to the mailbox.

    ``missing`` has to be read before it means anything.
    """

    spec: Object | None
    problems: tuple[PlacementProblem, ...] = ()
    missing: Scope | None = None


def config_scopes(there: DesiredThere) -> Iterator[Scope]:
    """Yield what must have been read so that the config means anything."""
    yield from there.table.consent.scopes(there.mailbox)
    for cluster in there.contributors:
        yield from there.workspaces.all_scopes(cluster)


def desired_config(there: DesiredThere) -> DesiredConfig:
    """Return what the SyncerConfig of a mailbox is to say."""
    if not there.contributors:
        return DesiredConfig(None)
    if there.held is not None and there.held.missing:
        placement, scope = next(iter(there.held.missing.items()))
        return DesiredConfig(None, (there.held.missing_revision(placement),), scope)
    placements = [each for each in there.placements if there.route.what(each) is not None]
    spaces = {each: _namespaces(there, each) for each in placements}
    namespaces = {name for found in spaces.values() for name in found}
    agreements = _carried(there, {each.cluster for each in placements if spaces[each]})
    objects: dict[GroupResource, tuple[str, list[str]]] = {}
    for item in _cluster_scoped(there):
        row = there.row(item)
        if row.missing is not None:
            return DesiredConfig(None, row.problems, row.missing)
        if not _goes(there, item, row):
            continue
        kind = item.group_resource
        agreement = agreements.setdefault(kind, there.version(kind))
        objects.setdefault(kind, (agreement.version, []))[1].append(item.name)
    resources = {kind: a.version for kind, a in agreements.items() if kind not in objects}
    upsync = [each for placement in placements for each in _upsync(there, placement)]
    spec = config_spec(namespaces, resources, objects, upsync)
    return DesiredConfig(spec, tuple(_disagreements(there, agreements)))


def _namespaces(there: DesiredThere, placement: ObjectRef) -> list[str]:
    """Return the namespaces of a placement whose copies the syncer carries."""
    found = there.namespaces(placement)
    if not there.enforced:
        return found
    return [
        name
        for name in found
        if there.ways(namespace_ref(name), placement, bare=True)
        or there.table.stays(there.mailbox, namespace_ref(name))
    ]


def _upsync(there: DesiredThere, placement: ObjectRef) -> Iterable[UpsyncSet]:
    """Return what a placement has come up, as far as grants let it."""
    what = there.route.what(placement)
    sets = what.upsync if what is not None else ()
    if not sets or not there.enforced:
        return sets
    return granted_upsync(sets, there.rules(placement))


def _carried(
    there: DesiredThere, clusters: Iterable[ClusterName]
) -> dict[GroupResource, Agreement]:
    """Return the namespaced kinds carried to the edge, and at which version."""
    found = {
        served.group_resource: there.version(served.group_resource)
        for cluster in clusters
        for served in there.workspaces.types(cluster).served.values()
        if served.namespaced and category_of(served.group_resource).to_edge
    }
    # What a revision holds may be of a kind that its workspace has no longer.
    for kind in there.held.kinds() if there.held is not None else ():
        if kind not in found and category_of(kind).to_edge and there.version(kind).version:
            found[kind] = there.version(kind)
    return found


def _cluster_scoped(there: DesiredThere) -> Iterator[ObjectRef]:
    """Yield the cluster-scoped objects that may be in a mailbox and go on to the edge."""
    items = {item for each in there.placements for item in there.named(each)}
    definitions = there.workspaces.definitions
    for cluster in there.contributors:
        items.update(map(definitions.ref, definitions.within(cluster).values()))
    for item in items:
        named = item.group_resource != NAMESPACES or _is_chosen_and_named(there, item)
        if named and category_of(item.group_resource).to_edge:
            yield item


def _goes(there: DesiredThere, item: ObjectRef, row: DesiredRow) -> bool:
    if row.frozen:
        return there.table.stays(there.mailbox, item)
    return row.digest is not None


def _is_chosen_and_named(there: DesiredThere, item: ObjectRef) -> bool:
    """Tell whether a Namespace goes with its labels: some placement chooses and names it."""
    held = there.held
    return any(
        held.names(each, item)
        if held is not None and each in held
        else there.route.selected.at(each, (each.cluster, item)) == CHOSEN | NAMED
        for each in there.placements
    )


def _disagreements(
    there: DesiredThere, agreements: Mapping[GroupResource, Agreement]
) -> Iterator[PlacementProblem]:
    for kind, agreement in agreements.items():
        if agreement.shared:
            continue
        text = f"no version of {kind} is served by every workspace that places it; "
        problem = Problem(VERSIONS_DISAGREE, f"{text}{agreement.version} is used")
        for cluster, placements in there.contributors.items():
            if there.workspaces.served(cluster, kind) is not None:
                yield from (PlacementProblem(each, problem) for each in placements)
