"""What pods refer to: configuration, Services, claims, and tokens that are renewed in time."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from skerry.api.errors import Forbidden
from skerry.api.objects import Object
from skerry.edge.agent.host_access import HostAccess, HostPathRefused
from skerry.edge.agent.sources import PodSources, refers_to
from skerry.edge.agent.volumes import MountFailed
from skerry.kit.clock import LoopClock
from skerry.kit.ids import SeededIds
from skerry.kit.timestamps import rfc3339
from skerry.logic.workloads.local_volumes import provisioned_name, provisioned_path
from skerry.runtime.client import Client
from skerry.runtime.informer import InformerFactory
from tests.kit.agent.nodes import pod
from tests.kit.sim.loop import virtual
from tests.kit.sim.twin import Twin


def obj(name: str, namespace: str = "ns", **more: Any) -> Object:
    metadata = {"name": name, "uid": f"u-{name}", "resourceVersion": "1"}
    if namespace:
        metadata["namespace"] = namespace
    return {"metadata": metadata, **more}


class Issuer(Client):
    """Issues tokens that live an hour, and counts them."""

    issued: list[tuple[str, Object]]
    failure: Exception | None = None

    async def create(self, gvr: Any, obj: Any, namespace: str = "", **more: Any) -> Object:
        if self.failure is not None:
            raise self.failure
        self.issued.append((more["name"], obj["spec"]))
        ends = self.clock.now().timestamp() + obj["spec"]["expirationSeconds"]
        moment = self.clock.now().fromtimestamp(ends, self.clock.now().tzinfo)
        return {"status": {"token": f"t{len(self.issued)}", "expirationTimestamp": rfc3339(moment)}}


def sources(root: Path | None = None) -> tuple[PodSources, Issuer]:
    clock = LoopClock()
    client = Issuer(Twin(clock=clock), clock=clock)
    client.issued = []
    return PodSources(client, InformerFactory(client, ids=SeededIds(1)), root), client


async def test_configuration_is_found_by_kind_namespace_and_name() -> None:
    found, _ = sources()
    found.config_maps.apply("ADDED", obj("a", data={"k": "map"}))
    found.secrets.apply("ADDED", obj("a", data={"k": "c2VjcmV0"}))
    config = found.configuration("ns", "configmap", "a")
    secret = found.configuration("ns", "secret", "a")
    assert config is not None
    assert secret is not None
    assert (config["data"]["k"], secret["data"]["k"]) == ("map", "c2VjcmV0")
    assert found.configuration("other", "configmap", "a") is None


async def test_a_pod_sees_the_services_of_its_namespace_and_the_api_server() -> None:
    found, _ = sources()
    for service in (obj("web"), obj("kubernetes", "default"), obj("db", "other")):
        found.services.apply("ADDED", service)
    assert [s["metadata"]["name"] for s in found.services_for("ns")] == ["web", "kubernetes"]
    assert [s["metadata"]["name"] for s in found.services_for("default")] == ["kubernetes"]


# -- claims ----------------------------------------------------------------------------------------


def bound(root: Path, **volume_spec: Any) -> tuple[Object, Object]:
    """Return a claim and the volume the edge made for it."""
    claim = obj("data", spec={}, status={"phase": "Bound"})
    name = provisioned_name(claim)
    claim["spec"]["volumeName"] = name
    path = provisioned_path(str(root), claim)
    spec = {"claimRef": {"uid": "u-data"}, "hostPath": {"path": path}, **volume_spec}
    return claim, obj(name, "", spec=spec)


def claimed(root: Path, claim: Object, *volumes: Object) -> PodSources:
    found, _ = sources(root)
    found.claims.apply("ADDED", claim)
    for volume in volumes:
        found.volumes.apply("ADDED", volume)
    return found


async def test_a_claim_of_ours_is_its_own_directory_made_when_it_is_first_needed(
    tmp_path: Path,
) -> None:
    claim, volume = bound(tmp_path / "claims")
    found = claimed(tmp_path / "claims", claim, volume)
    mounted = found.claim_volume("ns", "data", HostAccess())
    assert mounted.root == Path(provisioned_path(str(tmp_path / "claims"), claim))
    assert mounted.root.stat().st_mode & 0o777 == 0o777
    (mounted.root / "kept").write_text("x")
    assert found.claim_volume("ns", "data", HostAccess()) == mounted
    assert (mounted.root / "kept").exists()


async def test_a_volume_written_by_hand_needs_leave_like_any_path_of_the_machine(
    tmp_path: Path,
) -> None:
    claim, volume = bound(tmp_path / "claims", hostPath={"path": "/etc"})
    found = claimed(tmp_path / "claims", claim, volume)
    with pytest.raises(HostPathRefused, match="not below a folder"):
        found.claim_volume("ns", "data", HostAccess())


async def test_a_local_volume_is_a_path_whatever_type_it_names(tmp_path: Path) -> None:
    claim, volume = bound(tmp_path / "claims", hostPath=None, local={"path": str(tmp_path)})
    found = claimed(tmp_path / "claims", claim, volume)
    mounted = found.claim_volume("ns", "data", HostAccess((str(tmp_path),)))
    assert mounted.root == tmp_path


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"claim": {"status": {"phase": "Pending"}}}, "unbound immediate"),
        ({"claim": {"spec": {}}}, "unbound immediate"),
        ({"volume": {"claimRef": {"uid": "another"}}}, "is not bound to"),
        ({"volume": {"hostPath": None, "nfs": {}}}, "of a kind this node cannot mount"),
    ],
)
async def test_a_claim_that_cannot_be_mounted_says_why(
    tmp_path: Path, change: dict[str, Any], text: str
) -> None:
    claim, volume = bound(tmp_path, **change.get("volume", {}))
    found = claimed(tmp_path, {**claim, **change.get("claim", {})}, volume)
    with pytest.raises(MountFailed, match=text):
        found.claim_volume("ns", "data", HostAccess())


async def test_a_claim_or_a_volume_that_is_not_there_is_named(tmp_path: Path) -> None:
    claim, _ = bound(tmp_path)
    found = claimed(tmp_path, claim)
    with pytest.raises(MountFailed, match="unbound immediate"):
        found.claim_volume("ns", "data", HostAccess())
    with pytest.raises(MountFailed, match='"none" not found'):
        found.claim_volume("ns", "none", HostAccess())


# -- tokens ----------------------------------------------------------------------------------------

TOKEN: Object = {"path": "token", "expirationSeconds": 1000}


def with_tokens(*tokens: Object) -> Object:
    projected = {"sources": [{"serviceAccountToken": each} for each in tokens]}
    return pod(volumes=[{"name": "v", "projected": projected}], serviceAccountName="robot")


@virtual
async def test_a_token_is_bound_to_its_pod_and_renewed_at_four_fifths_of_its_life() -> None:
    found, client = sources()
    whole = with_tokens(TOKEN)
    for _ in range(2):
        await found.fetch_tokens(whole)
    assert found.token(whole, TOKEN) == "t1"
    await asyncio.sleep(790)
    await found.fetch_tokens(whole)
    assert found.token(whole, TOKEN) == "t1"
    await asyncio.sleep(20)
    await found.fetch_tokens(whole)
    assert found.token(whole, TOKEN) == "t2"
    account, spec = client.issued[0]
    assert account == "robot"
    assert (spec["boundObjectRef"]["name"], spec["boundObjectRef"]["uid"]) == ("web", "u1")


@virtual
async def test_tokens_of_different_audiences_are_different_and_go_with_their_pod() -> None:
    found, client = sources()
    other = {**TOKEN, "audience": "vault"}
    whole = with_tokens(TOKEN, other)
    await found.fetch_tokens(whole)
    assert (found.token(whole, TOKEN), found.token(whole, other)) == ("t1", "t2")
    assert client.issued[1][1]["audiences"] == ["vault"]
    found.forget_tokens("another")
    assert found.token(whole, TOKEN) == "t1"
    found.forget_tokens("u1")
    assert found.token(whole, TOKEN) is None


@virtual
async def test_a_token_that_cannot_be_had_now_is_asked_for_again_and_the_old_one_kept() -> None:
    found, client = sources()
    whole = with_tokens(TOKEN)
    await found.fetch_tokens(whole)
    await asyncio.sleep(900)
    client.failure = Forbidden("not now")
    await found.fetch_tokens(whole)
    assert found.token(whole, TOKEN) == "t1"
    client.failure = None
    await found.fetch_tokens(whole)
    assert found.token(whole, TOKEN) == "t2"


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        ({"volumes": [{"name": "v", "configMap": {"name": "a"}}]}, "configmap"),
        ({"volumes": [{"name": "v", "secret": {"secretName": "a"}}]}, "secret"),
        ({"containers": [{"envFrom": [{"configMapRef": {"name": "a"}}]}]}, "configmap"),
        (
            {"containers": [{"env": [{"valueFrom": {"secretKeyRef": {"name": "a"}}}]}]},
            "secret",
        ),
        ({"volumes": [{"projected": {"sources": [{"configMap": {"name": "a"}}]}}]}, "configmap"),
    ],
)
def test_a_pod_refers_to_what_it_names_anywhere(spec: Object, kind: str) -> None:
    whole = {"spec": spec}
    assert refers_to(whole, kind, "a")
    assert not refers_to(whole, kind, "b")
    assert not refers_to(whole, "secret" if kind == "configmap" else "configmap", "a")
