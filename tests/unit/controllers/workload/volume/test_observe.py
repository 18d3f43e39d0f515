"""A claim with what could serve it; a volume with its claim, for which the server is asked."""

from __future__ import annotations

from typing import Any

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.controllers.workload.volume.observe import ObservedClaim, ObservedVolume, Observer
from skerry.runtime.client import Client
from skerry.runtime.index import Key
from tests.kit.caches import cache, owned
from tests.kit.sim.twin import TYPES, Twin, served

NAMESPACES = GroupVersionResource("", "v1", "namespaces")
CLAIMS = GroupVersionResource("", "v1", "persistentvolumeclaims")
VOLUMES = GroupVersionResource("", "v1", "persistentvolumes")
CLASSES = GroupVersionResource("storage.k8s.io", "v1", "storageclasses")
PV = Key("", "", "pv")


def volume(**spec: Any) -> Object:
    return {"metadata": {"name": "pv", "uid": "pv"}, "spec": spec}


class Stage:
    def __init__(self) -> None:
        claims = served("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
        self.client = Client(Twin(types=[*TYPES, claims]))
        self.claims, self.volumes, self.classes = cache(CLAIMS), cache(VOLUMES), cache(CLASSES)
        self.observer = Observer(self.client, self.claims, self.volumes, self.classes, "/root")


async def test_a_claim_is_seen_with_every_volume_and_class() -> None:
    stage = Stage()
    key = Key("", "shop", "data")
    assert await stage.observer.observe(key) is None
    stage.claims.apply("ADDED", owned("data"))
    stage.volumes.apply("ADDED", volume())
    found = await stage.observer.observe(key)
    assert isinstance(found, ObservedClaim)
    assert (len(found.volumes), len(found.classes), found.root) == (1, 0, "/root")


async def test_a_volume_without_a_claim_is_nobodys() -> None:
    stage = Stage()
    assert await stage.observer.observe(PV) is None
    stage.volumes.apply("ADDED", volume())
    assert await stage.observer.observe(PV) == ObservedVolume(volume(), None, "/root")


async def test_before_a_claim_counts_as_gone_the_server_is_asked() -> None:
    stage = Stage()
    held = volume(claimRef={"namespace": "shop", "name": "data"})
    stage.volumes.apply("ADDED", held)
    found = await stage.observer.observe(PV)
    assert isinstance(found, ObservedVolume)
    assert found.claim is None
    await stage.client.create(NAMESPACES, {"metadata": {"name": "shop"}})
    metadata = {"name": "data", "namespace": "shop"}
    await stage.client.create(CLAIMS, {"metadata": metadata, "spec": {}})
    found = await stage.observer.observe(PV)
    assert isinstance(found, ObservedVolume)
    assert found.claim is not None, "the cache had not heard of it yet"
