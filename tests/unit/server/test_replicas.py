"""Several servers over one store: equal, and never at odds."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kit.server.harness import Server, serving
from tests.kit.server.objects import CORE, config_map, pod, service
from tests.kit.sim.loop import run_virtual, virtual


@contextlib.asynccontextmanager
async def pair() -> AsyncIterator[tuple[Server, Server]]:
    async with serving(seed=1) as one, serving(one.api.store, seed=2) as two:
        yield one, two


@virtual
async def test_a_quota_is_exact_across_servers() -> None:
    async with pair() as (one, two):
        spec = {"hard": {"configmaps": "7"}}
        await one.create(f"{CORE}/resourcequotas", {"metadata": {"name": "q"}, "spec": spec})
        status = {"status": {**spec, "used": {"configmaps": "0"}}}
        await one.patch(f"{CORE}/resourcequotas/q/status", status)
        await asyncio.sleep(0.1)
        replies = await asyncio.gather(
            *(
                server.create(f"{CORE}/configmaps", config_map(f"c{number}{index}"))
                for number in range(10)
                for index, server in enumerate((one, two))
            )
        )
        assert [reply.status for reply in replies].count(201) == 7


@virtual
async def test_an_address_is_given_once_across_servers() -> None:
    async with pair() as (one, two):
        replies = await asyncio.gather(
            *(
                server.create(f"{CORE}/services", service(f"s{index}", clusterIP="10.96.0.77"))
                for index, server in enumerate((one, two))
            )
        )
        assert sorted(reply.status for reply in replies) == [201, 422]


@virtual
async def test_what_one_server_writes_the_other_reads_at_once() -> None:
    async with pair() as (one, two):
        made = await one.create(f"{CORE}/configmaps", config_map("c"))
        assert (await two.get(f"{CORE}/configmaps/c")).body == made.body
        version = made.body["metadata"]["resourceVersion"]
        fresh = await two.get(f"{CORE}/configmaps?resourceVersion={version}")
        assert len(fresh.body["items"]) == 1


@virtual
async def test_objects_may_be_made_in_a_namespace_the_other_server_made() -> None:
    async with pair() as (one, two):
        await one.create("/api/v1/namespaces", {"metadata": {"name": "n"}})
        made = await two.create("/api/v1/namespaces/n/configmaps", config_map("c"))
        assert made.status == 201, made.body


@virtual
async def test_of_two_schedulers_at_two_servers_one_binds() -> None:
    async with pair() as (one, two):
        await one.create(f"{CORE}/serviceaccounts", {"metadata": {"name": "default"}})
        await one.create(f"{CORE}/pods", pod("p"))
        replies = await asyncio.gather(
            *(
                server.create(f"{CORE}/pods/p/binding", {"target": {"name": f"n{index}"}})
                for index, server in enumerate((one, two))
            )
        )
        assert sorted(reply.status for reply in replies) == [201, 409]


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.sampled_from("abc"), st.sampled_from(["put", "delete"])),
        max_size=20,
    )
)
def test_watches_of_both_servers_report_the_same(actions: list[tuple[int, str, str]]) -> None:
    async def story() -> None:
        async with pair() as servers:
            path = f"{CORE}/configmaps"
            async with (
                servers[0].watch(f"{path}?watch=1&resourceVersion=1") as first,
                servers[1].watch(f"{path}?watch=1&resourceVersion=1") as second,
            ):
                for number, (which, name, action) in enumerate(actions):
                    server = servers[which]
                    if action == "delete":
                        await server.delete(f"{path}/{name}")
                    elif (await server.create(path, config_map(name))).status == 409:
                        await server.patch(f"{path}/{name}", {"data": {"n": str(number)}})
                await asyncio.sleep(1)
                seen = [
                    [sender.lines.get_nowait() for _ in range(sender.lines.qsize())]
                    for sender in (first, second)
                ]
            assert seen[0] == seen[1]
            # Played back, the events give what is there.
            state: dict[str, object] = {}
            for event in seen[0]:
                name = event["object"]["metadata"]["name"]
                if event["type"] == "DELETED":
                    del state[name]
                else:
                    assert (name in state) == (event["type"] == "MODIFIED")
                    state[name] = event["object"]
            listed = (await servers[0].get(path)).body["items"]
            # Of built-in kinds only the list says what they are.
            meta = {"apiVersion": "v1", "kind": "ConfigMap"}
            assert {item["metadata"]["name"]: {**meta, **item} for item in listed} == state

    run_virtual(story())
