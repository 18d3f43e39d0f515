"""Whose object it is where several workspaces place one name at one edge.

The first keeps it. That is recorded on the copy in the mailbox, so it outlasts restarts and does
not depend on what happens to be read first:

* The recorded owner keeps the name for as long as it places the object there. Where it is not known
  whether it still does, it does.
* Without a record (there is no copy yet, or one of a version that kept none) the workspace whose
  object is the one that is there has it; else the oldest object, then the first cluster by name.
  What cannot be sent, because it cannot be customized, takes no name from what can.
* An owner hands over by an annotation that names the other workspace's path. It takes effect once:
  the copy records that it has, so two annotations that name each other do not pass it to and fro.
* When the owner's object goes, the name goes to the next by the same order, in one write.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from skerry.api.edge import HAND_OVER_TO, HANDED_OVER, OWNER_WORKSPACE, WITHHELD_FROM
from skerry.api.objects import Object
from skerry.api.refs import ClusterName

Paths = Callable[[ClusterName], str]


class Owned(NamedTuple):
    """What a copy records: whose it is, and which owners have handed over to which paths.

    ``withheld`` are workspaces that place something else under the name, sorted.
    """

    cluster: ClusterName
    handed: tuple[tuple[ClusterName, str], ...] = ()
    withheld: tuple[ClusterName, ...] = ()


class Claim(NamedTuple):
    """One workspace's object that is placed under a name: since when, and to whom it goes."""

    cluster: ClusterName
    created: str = ""
    hand_over: str = ""


@lru_cache(maxsize=65536)
def owned_by(cluster: ClusterName, handed: str = "", withheld: str = "") -> Owned:
    """Return the record of an owner; thousands of copies share it."""
    pairs = (part.partition("=") for part in handed.split(",") if part)
    others = tuple(withheld.split(",")) if withheld else ()
    return Owned(cluster, tuple((source, path) for source, _, path in pairs), others)


def owned_of(copy: Mapping[str, Any]) -> Owned | None:
    """Return what a copy records; None for one that was made before owners were recorded."""
    notes = copy["metadata"].get("annotations") or {}
    cluster = notes.get(OWNER_WORKSPACE)
    if not cluster:
        return None
    return owned_by(cluster, notes.get(HANDED_OVER, ""), notes.get(WITHHELD_FROM, ""))


def claim_of(cluster: ClusterName, source: Mapping[str, Any]) -> Claim:
    """Return the claim that an object of a workspace makes where it is placed."""
    metadata = source["metadata"]
    notes = metadata.get("annotations") or {}
    return Claim(cluster, metadata.get("creationTimestamp") or "", notes.get(HAND_OVER_TO) or "")


def recorded_on(copy: Object, owned: Owned) -> Object:
    """Return *copy* with the record of its owner."""
    metadata = copy["metadata"]
    notes = {**(metadata.get("annotations") or {}), OWNER_WORKSPACE: owned.cluster}
    if owned.handed:
        notes[HANDED_OVER] = ",".join(f"{source}={path}" for source, path in owned.handed)
    if owned.withheld:
        notes[WITHHELD_FROM] = ",".join(owned.withheld)
    return {**copy, "metadata": {**metadata, "annotations": notes}}


def first(claims: Iterable[Claim]) -> Claim:
    """Return the claim that comes before the others: the oldest, then by the cluster's name."""
    return min(claims, key=lambda claim: (claim.created, claim.cluster))


def owner(
    recorded: Owned | None,
    claims: Collection[Claim],
    path: Paths,
    *,
    unknown: Collection[ClusterName] = (),
    there: Collection[ClusterName] = (),
    unable: Collection[ClusterName] = (),
) -> Owned:
    """Return whose the name is, given what the copy records and who claims it.

    *claims* is not empty. *path* returns the path of a claiming workspace. Of the clusters in
    *unknown* nobody can tell whether they claim the name. The objects of those in *there* are what
    the copy says, which counts where it records nothing; those of *unable* cannot be sent.
    """
    by_cluster = {claim.cluster: claim for claim in claims}
    able = [claim for claim in claims if claim.cluster not in unable] or claims
    if recorded is None:
        there_too = [claim for claim in claims if claim.cluster in there]
        recorded = Owned(first(there_too or able).cluster)
    elif recorded.cluster not in by_cluster:
        if recorded.cluster in unknown:
            return recorded
        recorded = recorded._replace(cluster=first(able).cluster)
    handed = {
        source: to
        for source, to in recorded.handed
        if source in unknown or (source in by_cluster and by_cluster[source].hand_over == to)
    }
    current = recorded.cluster
    while (to := by_cluster[current].hand_over) and handed.get(current) != to:
        others = (claim.cluster for claim in able if claim.cluster != current)
        taker = next((each for each in others if path(each) == to), None)
        if taker is None:
            break
        handed[current] = to
        current = taker
    return Owned(current, tuple(sorted(handed.items())))
