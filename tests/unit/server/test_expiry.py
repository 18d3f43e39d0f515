"""Events: one object through two APIs, kept for a while."""

from __future__ import annotations

from datetime import timedelta

from skerry.kit.clock import LoopClock
from skerry.server.expiry import EventExpiry
from tests.kit.server.harness import serving
from tests.kit.server.objects import CORE
from tests.kit.sim.loop import virtual

OLD = f"{CORE}/events"
NEW = "/apis/events.k8s.io/v1/namespaces/default/events"
ABOUT = {"kind": "Pod", "name": "p", "namespace": "default"}


def older(name: str) -> dict[str, object]:
    return {
        "metadata": {"name": name},
        "involvedObject": ABOUT,
        "reason": "Pulled",
        "message": "hello",
        "type": "Normal",
    }


def newer(name: str) -> dict[str, object]:
    return {
        "metadata": {"name": name},
        "regarding": ABOUT,
        "reason": "Scheduled",
        "note": "hello",
        "type": "Normal",
        "action": "Binding",
        "reportingController": "example.org/c",
        "reportingInstance": "c-1",
        "eventTime": "2030-01-01T00:00:00.000000Z",
    }


@virtual
async def test_an_event_made_through_one_api_is_seen_through_the_other() -> None:
    async with serving() as server:
        assert (await server.create(OLD, older("a"))).status == 201
        assert (await server.create(NEW, newer("b"))).status == 201
        assert (await server.get(f"{NEW}/a")).body["note"] == "hello"
        assert (await server.get(f"{NEW}/a")).body["regarding"] == ABOUT
        assert (await server.get(f"{OLD}/b")).body["message"] == "hello"
        assert (await server.get(f"{OLD}/b")).body["apiVersion"] == "v1"
        for path, version in ((OLD, "v1"), (NEW, "events.k8s.io/v1")):
            listed = (await server.get(path)).body
            assert [i["metadata"]["name"] for i in listed["items"]] == ["a", "b"]
            assert listed["apiVersion"] == version
        assert (await server.create(OLD, older("b"))).status == 409


@virtual
async def test_changes_and_deletions_pass_between_them_in_watches_too() -> None:
    async with serving() as server:
        await server.create(OLD, older("a"))
        async with server.watch(f"{NEW}?watch=1") as sender:
            first = await sender.lines.get()
            assert (first["type"], first["object"]["note"]) == ("ADDED", "hello")
            await server.patch(f"{OLD}/a", {"message": "again"})
            second = await sender.lines.get()
            assert (second["type"], second["object"]["note"]) == ("MODIFIED", "again")
            assert (await server.delete(f"{NEW}/a")).status == 200
            third = await sender.lines.get()
            assert third["type"] == "DELETED"
            assert third["object"]["apiVersion"] == "events.k8s.io/v1"
        assert (await server.get(OLD)).body["items"] == []


@virtual
async def test_both_apis_select_by_their_own_field_names() -> None:
    async with serving() as server:
        await server.create(OLD, older("a"))
        await server.create(NEW, newer("b"))
        for path in (
            f"{OLD}?fieldSelector=involvedObject.name%3Dp",
            f"{NEW}?fieldSelector=regarding.name%3Dp",
        ):
            assert len((await server.get(path)).body["items"]) == 2
        found = (await server.get(f"{OLD}?fieldSelector=reason%3DPulled")).body["items"]
        assert [item["metadata"]["name"] for item in found] == ["a"]


@virtual
async def test_the_new_api_is_strict() -> None:
    async with serving() as server:
        sent = newer("b")
        del sent["eventTime"]
        refused = await server.create(NEW, sent)
        assert refused.status == 422
        assert "eventTime" in refused.body["message"]


@virtual
async def test_events_go_an_hour_after_they_were_last_written() -> None:
    async with serving() as server:
        clock = LoopClock()
        expiry = EventExpiry(server.api.store, clock, timedelta(hours=1))
        await server.create(OLD, older("a"))
        await server.sleep(50 * 60)
        await server.create(OLD, older("b"))
        assert await expiry.sweep() == 0
        await server.sleep(15 * 60)
        assert await expiry.sweep() == 1
        (left,) = (await server.get(OLD)).body["items"]
        assert left["metadata"]["name"] == "b"


@virtual
async def test_events_do_not_count_against_quotas() -> None:
    async with serving() as server:
        hard = {"hard": {"count/events": "0", "count/events.events.k8s.io": "0"}}
        await server.create(f"{CORE}/resourcequotas", {"metadata": {"name": "q"}, "spec": hard})
        assert (await server.create(OLD, older("a"))).status == 201
        assert (await server.create(NEW, newer("b"))).status == 201
