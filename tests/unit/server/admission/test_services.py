"""Addresses and node ports of Services: given once, taken back with the Service."""

from __future__ import annotations

import asyncio
from ipaddress import ip_address, ip_network

from skerry.server.admission.services import ServiceAllocation
from skerry.store.memory import MemoryStore
from tests.kit.server.harness import serving
from tests.kit.server.objects import CORE, service
from tests.kit.sim.loop import virtual

SERVICES = f"{CORE}/services"
NETWORK = ip_network("10.96.0.0/16")


@virtual
async def test_every_service_gets_an_address_of_its_own() -> None:
    async with serving() as server:
        made = await asyncio.gather(
            *(server.create(SERVICES, service(f"s{number}")) for number in range(50))
        )
        addresses = {reply.body["spec"]["clusterIP"] for reply in made}
        assert len(addresses) == 50
        assert all(ip_address(address) in NETWORK for address in addresses)
        assert made[0].body["spec"]["clusterIPs"] == [made[0].body["spec"]["clusterIP"]]


@virtual
async def test_a_small_range_is_used_up_before_it_is_full() -> None:
    rule = ServiceAllocation(MemoryStore("s"), "10.0.0.0/26")
    found = list(rule._addresses({"metadata": {"uid": "u"}}))
    assert len(set(found)) == 62
    # Those that are asked for by number come last.
    assert [int(ip_address(each)) & 63 for each in found[-16:]] == list(range(1, 17))


@virtual
async def test_an_address_asked_for_is_given_once_and_freed_with_its_service() -> None:
    async with serving() as server:
        first = await server.create(SERVICES, service("a", clusterIP="10.96.0.10"))
        assert first.body["spec"]["clusterIP"] == "10.96.0.10"
        taken = await server.create(SERVICES, service("b", clusterIP="10.96.0.10"))
        assert taken.status == 422
        assert "provided IP is already allocated" in taken.body["message"]
        outside = await server.create(SERVICES, service("b", clusterIP="192.0.2.1"))
        assert outside.body["message"] == (
            'Service "b" is invalid: spec.clusterIPs: Invalid value: ["192.0.2.1"]: '
            "failed to allocate IP 192.0.2.1: the provided IP (192.0.2.1) is not in the valid "
            "range. The range of valid IPs is 10.96.0.0/16"
        )
        await server.delete(f"{SERVICES}/a")
        assert (await server.create(SERVICES, service("b", clusterIP="10.96.0.10"))).status == 201


@virtual
async def test_an_address_may_not_change_be_the_new_one_free_or_not() -> None:
    async with serving() as server:
        await server.create(SERVICES, service("a", clusterIP="10.96.0.10"))
        await server.create(SERVICES, service("b", clusterIP="10.96.0.11"))
        for address in ("10.96.0.11", "10.96.0.12", "192.0.2.1"):
            other = {"spec": {"clusterIP": address, "clusterIPs": [address]}}
            refused = await server.patch(f"{SERVICES}/a", other)
            assert (refused.status, refused.body["message"]) == (
                422,
                (
                    'Service "a" is invalid: spec.clusterIPs[0]: Invalid value: '
                    f'["{address}"]: may not change once set'
                ),
            )
        assert (await server.create(SERVICES, service("c", clusterIP="10.96.0.12"))).status == 201


@virtual
async def test_what_is_no_address_is_refused_as_such() -> None:
    async with serving() as server:
        for spec in (
            {"clusterIP": "http", "clusterIPs": ["ClusterIP", "a/b"]},
            {"clusterIP": "nonsense"},
            {"clusterIPs": ["None", "10.96.0.9"]},
            {"clusterIP": "10.96.0.9", "clusterIPs": ["10.96.0.9", "10.96.0.9"]},
        ):
            refused = await server.create(SERVICES, service("s", **spec))
            assert refused.status == 422, (spec, refused.body)
            assert "spec.clusterIP" in refused.body["message"]


@virtual
async def test_of_two_that_race_for_an_address_one_gets_it() -> None:
    async with serving() as server:
        replies = await asyncio.gather(
            *(server.create(SERVICES, service(f"s{n}", clusterIP="10.96.0.9")) for n in range(6))
        )
        assert sorted(reply.status for reply in replies) == [201] + [422] * 5


@virtual
async def test_headless_and_external_services_have_no_address() -> None:
    async with serving() as server:
        headless = await server.create(SERVICES, service("h", clusterIP="None"))
        assert headless.body["spec"]["clusterIP"] == "None"
        external = service("e", type="ExternalName", externalName="example.org")
        made = await server.create(SERVICES, external)
        assert made.status == 201, made.body
        assert "clusterIP" not in made.body["spec"]


@virtual
async def test_node_ports_come_and_go_with_the_type() -> None:
    async with serving() as server:
        made = (await server.create(SERVICES, service("s", type="NodePort"))).body
        port = made["spec"]["ports"][0]["nodePort"]
        assert 30000 <= port <= 32767
        clash = service("t", type="NodePort", ports=[{"port": 80, "nodePort": port}])
        assert (
            "provided port is already allocated"
            in (await server.create(SERVICES, clash)).body["message"]
        )
        low = service("t", type="NodePort", ports=[{"port": 80, "nodePort": 80}])
        assert (
            "provided port is not in the valid range"
            in (await server.create(SERVICES, low)).body["message"]
        )
        kept = (await server.put(f"{SERVICES}/s", service("s", type="NodePort"))).body
        assert kept["spec"]["ports"][0]["nodePort"] == port, "an update that leaves it out keeps it"
        assert kept["spec"]["clusterIP"] == made["spec"]["clusterIP"]
        plain = await server.patch(
            f"{SERVICES}/s", {"spec": {"type": "ClusterIP", "ports": [{"port": 80}]}}
        )
        assert plain.status == 200, plain.body
        assert (await server.create(SERVICES, clash)).status == 201


@virtual
async def test_a_service_that_waits_for_its_dependents_keeps_its_address() -> None:
    async with serving() as server:
        made = (await server.create(SERVICES, service("s"))).body
        address = made["spec"]["clusterIP"]
        options = {"propagationPolicy": "Foreground"}
        kept = await server.delete(f"{SERVICES}/s", options)
        assert kept.body["metadata"]["finalizers"] == ["foregroundDeletion"]
        taken = await server.create(SERVICES, service("other", clusterIP=address))
        assert taken.status == 422
        await server.patch(f"{SERVICES}/s", {"metadata": {"finalizers": None}})
        freed = await server.create(SERVICES, service("other", clusterIP=address))
        assert freed.status == 201


@virtual
async def test_a_rehearsed_service_takes_nothing() -> None:
    async with serving() as server:
        before = await server.api.store.revision()
        made = await server.create(f"{SERVICES}?dryRun=All", service("s", type="NodePort"))
        assert made.body["spec"]["clusterIP"]
        assert await server.api.store.revision() == before
