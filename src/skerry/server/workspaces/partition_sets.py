"""PartitionSets as objects of workspaces: their Partitions are written, and kept up.

Only those of root's export count. A set is looked at when it, one of its Partitions, or a Shard
comes, changes or goes; Partitions go with their set as all that an object owns.
"""

from __future__ import annotations

import re

from skerry.api.kcp.compute import TOPOLOGY
from skerry.api.keys import ObjectKey, type_prefix
from skerry.api.objects import Object
from skerry.kit.clock import Clock
from skerry.kit.ids import IdSource
from skerry.kit.timestamps import rfc3339
from skerry.logic.machinery.names import generated_name
from skerry.logic.machinery.workspaces.names import ROOT
from skerry.logic.machinery.workspaces.partition_sets import base_name, division
from skerry.server.change import Change
from skerry.server.codec import decode, encode
from skerry.server.seeding import Seeder
from skerry.server.workspaces.catalogue import HubCatalogue
from skerry.server.workspaces.emptying import removal_of
from skerry.server.workspaces.state import CORE, HubState
from skerry.store.base import Entry, Store, Write

SETS = (TOPOLOGY, "partitionsets")
_KIND = "PartitionSet"
_API_VERSION = f"{TOPOLOGY}/v1alpha1"
_OWNED = re.compile(rb'"kind":\s*"PartitionSet"').search


class PartitionSets:
    """Knows which sets there are, and writes what one of them makes."""

    def __init__(
        self,
        state: HubState,
        catalogue: HubCatalogue,
        store: Store,
        seeder: Seeder,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self._state = state
        self._catalogue = catalogue
        self._store = store
        self._seeder = seeder
        self._clock = clock
        self._ids = ids
        self._keys: set[str] = set()

    async def load(self) -> set[str]:
        """Read which sets there are; returns their keys."""
        identity = self._identity()
        if identity:
            found = await self._store.range(type_prefix(TOPOLOGY, f"partitionsets:{identity}"))
            self._keys = {entry.key for entry in found.entries}
        return self.all()

    def all(self) -> set[str]:
        """Return the keys of all sets."""
        return set(self._keys)

    def changed(self, change: Change) -> str:
        """Take note of a set that came, changed or went; returns its key if it is to be settled."""
        key = change.event.key
        if ObjectKey.parse(key).resource != f"partitionsets:{self._identity()}":
            return ""
        if change.event.value is None:
            self._keys.discard(key)
            return ""
        self._keys.add(key)
        return key

    def owner(self, change: Change) -> str:
        """Return the key of the set that a changed Partition belongs to, if it does to one."""
        event = change.event
        raw = event.previous if event.value is None else event.value
        if raw is None or not _OWNED(raw):
            return ""
        key = ObjectKey.parse(event.key)
        owners = decode(raw, 0)["metadata"].get("ownerReferences") or ()
        name = next((each["name"] for each in owners if _is_owner(each)), "")
        made = key._replace(resource=f"partitionsets:{self._identity()}", name=name)
        return made.path() if name else ""

    async def settle(self, entry: Entry, obj: Object, key: ObjectKey) -> None:
        """Write the Partitions that the set *obj* lacks, remove those it no longer makes."""
        if "deletionTimestamp" in obj["metadata"]:
            return
        partitions = key.resource.replace("partitionsets", "partitions", 1)
        page = await self._store.range(type_prefix(TOPOLOGY, partitions, key.cluster))
        found = [(each, decode(each.value, each.revision)) for each in page.entries]
        owned = {each["metadata"]["name"]: (at, each) for at, each in found if _belongs(each, obj)}
        shards = [
            decode(each.value, each.revision)["metadata"].get("labels") or {}
            for each in (await self._store.range(type_prefix(CORE, "shards", ROOT))).entries
        ]
        now = rfc3339(self._clock.now())
        plan = division(obj, [each for _, each in owned.values()], shards, now)
        removals = (removal_of(owned[name][0], now)[0] for name in plan.stale)
        writes = [write for write in removals if write is not None]
        types = self._catalogue.types(key.cluster)
        for selector in plan.missing:
            partition = self._partition(obj, selector)
            writes.append(self._seeder.born(types, key.cluster, partition))
        if plan.status != obj.get("status"):
            value = encode({**obj, "status": plan.status})
            writes.append(Write(entry.key, value, expected=entry.revision))
        if writes:
            await self._store.commit(writes)

    def _partition(self, obj: Object, selector: Object) -> Object:
        base = base_name(obj, selector)
        owner = {
            "apiVersion": _API_VERSION,
            "kind": _KIND,
            "name": obj["metadata"]["name"],
            "uid": obj["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
        metadata = {
            "name": generated_name(base, self._ids.suffix()),
            "generateName": base,
            "ownerReferences": [owner],
        }
        spec = {"selector": selector}
        return {
            "apiVersion": _API_VERSION, "kind": "Partition", "metadata": metadata, "spec": spec
        }  # fmt: skip

    def _identity(self) -> str:
        """Return the identity of root's export."""
        export = self._state.exports.get((ROOT, TOPOLOGY)) or {}
        return str((export.get("status") or {}).get("identityHash") or "")


def _is_owner(reference: Object) -> bool:
    return bool(reference.get("controller") and reference.get("kind") == _KIND)


def _belongs(partition: Object, obj: Object) -> bool:
    owners = partition["metadata"].get("ownerReferences") or ()
    return any(_is_owner(each) and each["uid"] == obj["metadata"]["uid"] for each in owners)
