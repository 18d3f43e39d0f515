"""get and list: pages, revisions, selectors, and what is said when they cannot be had."""

from __future__ import annotations

import base64
import json
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from skerry.kit.metrics import Counter
from tests.kit.server.clock import HandClock
from tests.kit.server.conversions import DEFINITIONS, V1, cars
from tests.kit.server.harness import Server, serving
from tests.kit.server.objects import CORE, config_map, definition, deployment, pod, thing
from tests.kit.sim.loop import run_virtual, virtual

MAPS = f"{CORE}/configmaps"


async def filled(server: Server, count: int) -> list[str]:
    names = [f"c{number:02}" for number in range(count)]
    for name in names:
        assert (
            await server.create(MAPS, config_map(name, {"parity": str(len(name))}))
        ).status == 201
    return names


def names_of(body: dict[str, object]) -> list[str]:
    items = body["items"]
    assert isinstance(items, list)
    return [item["metadata"]["name"] for item in items]


async def columns(server: Server, path: str) -> list[str]:
    """Return the columns that a type is shown in."""
    accept = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    table = (await server.get(path, headers=accept)).body
    assert table["kind"] == "Table"
    return [each["name"] for each in table["columnDefinitions"]]


@virtual
async def test_an_object_comes_back_as_it_was_made() -> None:
    async with serving() as server:
        made = await server.create(MAPS, config_map("c", a="1"))
        found = await server.get(f"{MAPS}/c")
        assert found.status == 200
        assert found.body == made.body
        assert found.body["data"] == {"a": "1"}


@virtual
async def test_an_object_is_shown_as_each_request_asks_whoever_asked_before() -> None:
    """How a type is shown is kept by the type and the header; both must count."""
    async with serving() as server:
        await server.create(MAPS, config_map("c", a="1"))
        await server.create(f"{CORE}/serviceaccounts", {"metadata": {"name": "c"}})
        for _ in range(2):
            assert (await columns(server, f"{MAPS}/c"))[1] == "Data"
            assert (await columns(server, f"{CORE}/serviceaccounts/c"))[1] == "Secrets"
            assert (await server.get(f"{MAPS}/c")).body["kind"] == "ConfigMap"
            assert b"\n" in (await server.get(f"{MAPS}/c?pretty=1")).raw
            assert b"\n" not in (await server.get(f"{MAPS}/c")).raw
        for number in range(600):
            await server.get(f"{MAPS}/c", headers={"accept": f"application/json, x/{number}"})
        assert (await server.get(f"{MAPS}/c")).body["data"] == {"a": "1"}


@virtual
async def test_a_definition_that_changes_shows_its_objects_as_it_says_now() -> None:
    things = "/apis/example.org/v1/namespaces/default/things"
    async with serving() as server:
        made = await server.create(DEFINITIONS, definition())
        await server.create(things, thing("a"))
        assert await columns(server, f"{things}/a") == ["Name", "Age"]
        column = {"name": "Size", "type": "string", "jsonPath": ".spec.size"}
        made.body["spec"]["versions"][0]["additionalPrinterColumns"] = [column]
        changed = await server.put(f"{DEFINITIONS}/things.example.org", made.body)
        assert changed.status == 200
        assert await columns(server, f"{things}/a") == ["Name", "Size"]


@virtual
async def test_what_is_missing_is_named() -> None:
    async with serving() as server:
        missing = await server.get(f"{MAPS}/nobody")
        assert missing.status == 404
        assert missing.body == {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": 'configmaps "nobody" not found',
            "reason": "NotFound",
            "details": {"name": "nobody", "kind": "configmaps"},
            "code": 404,
        }
        missing = await server.get("/apis/apps/v1/namespaces/default/deployments/nobody")
        assert missing.body["message"] == 'deployments.apps "nobody" not found'
        assert missing.body["details"]["group"] == "apps"
        for path in ("/apis/nothing.example/v1/things", "/nothing"):
            unknown = await server.get(path)
            assert (unknown.status, unknown.raw) == (404, b"404 page not found\n")
        unserved = await server.get("/apis/apps/v9/things")
        assert unserved.body["message"] == "the server could not find the requested resource"
        for path in ("/api/v2/pods", f"{CORE}/unicorns", f"{MAPS}/c/unicorn", "/nothing"):
            assert (await server.get(path)).status == 404


@virtual
async def test_a_list_reports_kind_version_and_revision() -> None:
    async with serving() as server:
        await filled(server, 2)
        listed = (await server.get(MAPS)).body
        assert (listed["kind"], listed["apiVersion"]) == ("ConfigMapList", "v1")
        assert names_of(listed) == ["c00", "c01"]
        last = listed["items"][-1]["metadata"]["resourceVersion"]
        assert int(listed["metadata"]["resourceVersion"]) >= int(last)
        everywhere = (await server.get("/api/v1/configmaps")).body
        assert names_of(everywhere) == ["c00", "c01"]
        assert names_of((await server.get("/api/v1/namespaces/nowhere/configmaps")).body) == []


@settings(max_examples=25, deadline=None)
@given(count=st.integers(0, 12), limit=st.integers(1, 13))
def test_pages_put_together_are_the_list(count: int, limit: int) -> None:
    async def story() -> None:
        async with serving() as server:
            names = await filled(server, count)
            found: list[str] = []
            query, revisions = f"limit={limit}", set()
            while True:
                page = (await server.get(f"{MAPS}?{query}")).body
                assert len(page["items"]) <= limit
                found += names_of(page)
                revisions.add(page["metadata"]["resourceVersion"])
                token = page["metadata"].get("continue")
                if not token:
                    break
                # What happens between two pages is not in the list.
                await server.create(MAPS, config_map(f"z{len(found):02}"))
                query = f"limit={limit}&continue={token}"
            assert found == names
            assert len(revisions) == 1

    run_virtual(story())


@virtual
async def test_a_page_reports_how_many_follow() -> None:
    async with serving() as server:
        await filled(server, 7)
        query, left = "limit=3", []
        for _ in range(3):
            metadata = (await server.get(f"{MAPS}?{query}")).body["metadata"]
            left.append(metadata.get("remainingItemCount"))
            query = f"limit=3&continue={metadata.get('continue')}"
        assert left == [4, 1, None]
        selected = (await server.get(f"{MAPS}?limit=3&labelSelector=parity")).body["metadata"]
        assert "remainingItemCount" not in selected


@virtual
async def test_tokens_nobody_gave_out_are_refused() -> None:
    async with serving() as server:
        await filled(server, 3)
        tokens: list[Any] = [
            {"rv": 10**9, "start": "/core/configmaps/local/default/c00"},
            {"rv": 10**30, "start": ""},
            {"rv": 1, "start": 5},
            {"rv": -2, "start": "x"},
            {"rv": 1, "start": "x", "left": "many"},
            [],
            5,
        ]
        for token in tokens:
            text = base64.urlsafe_b64encode(json.dumps(token).encode()).decode()
            refused = await server.get(f"{MAPS}?limit=2&continue={text}")
            assert refused.status == 400, token
            assert "continue key is not valid" in refused.body["message"]


@virtual
async def test_a_store_out_of_reach_is_reported_as_unavailable() -> None:
    async with serving() as server:
        await server.api.store.close()
        for reply in (
            await server.get(f"{MAPS}/c"),
            await server.get(MAPS),
            await server.create(MAPS, config_map("c")),
        ):
            assert reply.status == 503
            assert reply.body["reason"] == "ServiceUnavailable"


@virtual
async def test_pages_of_a_selection_are_full() -> None:
    async with serving() as server:
        for number in range(9):
            await server.create(MAPS, config_map(f"c{number}", {"odd": str(number % 2)}))
        first = (await server.get(f"{MAPS}?labelSelector=odd%3D1&limit=3")).body
        assert names_of(first) == ["c1", "c3", "c5"]
        token = first["metadata"]["continue"]
        rest = (await server.get(f"{MAPS}?labelSelector=odd%3D1&limit=3&continue={token}")).body
        assert names_of(rest) == ["c7"]
        assert "continue" not in rest["metadata"]


@virtual
async def test_a_page_of_a_forgotten_past_is_gone() -> None:
    async with serving() as server:
        await filled(server, 4)
        token = (await server.get(f"{MAPS}?limit=2")).body["metadata"]["continue"]
        await server.create(MAPS, config_map("later"))
        await server.api.store.compact(await server.api.store.revision())
        gone = await server.get(f"{MAPS}?limit=2&continue={token}")
        assert gone.status == 410
        assert gone.body["reason"] == "Expired"
        assert "The provided continue parameter is too old" in gone.body["message"]


@virtual
async def test_a_list_of_a_forgotten_revision_is_gone() -> None:
    async with serving() as server:
        early = (await server.create(MAPS, config_map("a"))).body["metadata"]["resourceVersion"]
        await server.create(MAPS, config_map("b"))
        exact = f"{MAPS}?resourceVersion={early}&resourceVersionMatch=Exact"
        assert names_of((await server.get(exact)).body) == ["a"]
        await server.api.store.compact(await server.api.store.revision())
        assert (await server.get(exact)).status == 410


@virtual
async def test_resource_version_says_how_fresh_a_list_must_be() -> None:
    async with serving() as server:
        early = (await server.create(MAPS, config_map("a"))).body["metadata"]["resourceVersion"]
        await server.create(MAPS, config_map("b"))
        for query in ("", "?resourceVersion=0", f"?resourceVersion={early}"):
            assert names_of((await server.get(MAPS + query)).body) == ["a", "b"]
        not_older = f"?resourceVersion={early}&resourceVersionMatch=NotOlderThan&limit=5"
        assert names_of((await server.get(MAPS + not_older)).body) == ["a", "b"]
        # An old rule: with a limit and no match, a revision is exact.
        assert names_of((await server.get(f"{MAPS}?resourceVersion={early}&limit=5")).body) == ["a"]


@virtual
async def test_a_revision_of_the_future_is_waited_for_and_then_refused() -> None:
    async with serving() as server:
        for path in (MAPS, f"{MAPS}/c"):
            late = await server.get(f"{path}?resourceVersion=99999")
            assert late.status == 504
            assert late.body["reason"] == "Timeout"
            assert late.body["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
            assert late.body["details"]["retryAfterSeconds"] == 1


@virtual
async def test_combinations_that_mean_nothing_are_refused() -> None:
    async with serving() as server:
        token = base64.urlsafe_b64encode(orjson.dumps({"rv": 1, "start": "/x"})).decode()
        for query, code, words in (
            ("resourceVersionMatch=Exact", 422, "forbidden unless resourceVersion is provided"),
            (
                "resourceVersion=0&resourceVersionMatch=Exact",
                422,
                'forbidden for resourceVersion "0"',
            ),
            ("resourceVersion=5&resourceVersionMatch=Never", 422, "Unsupported value"),
            ("sendInitialEvents=true", 422, "sendInitialEvents is forbidden for list"),
            ("resourceVersion=x", 422, "Invalid value"),
            (f"continue={token}&resourceVersion=5", 400, "not allowed when using continue"),
            ("continue=garbage", 400, "continue key is not valid"),
            ("limit=x", 400, "limit"),
            ("labelSelector=a%3D%3D%3Db", 400, ""),
            ("labelSelector=a+in+(", 400, ""),
            ("fieldSelector=nonsense", 400, "nonsense"),
            ("fieldSelector=spec.x%3Dy", 400, "field label not supported: spec.x"),
        ):
            refused = await server.get(f"{MAPS}?{query}")
            assert refused.status == code, (query, refused.body)
            assert words in refused.body["message"], refused.body["message"]


@virtual
async def test_selectors_find_what_they_describe() -> None:
    async with serving() as server:
        await server.create(MAPS, config_map("a", {"tier": "web", "x": "1"}))
        await server.create(MAPS, config_map("b", {"tier": "db"}))
        await server.create(MAPS, config_map("c"))
        for query, expected in (
            ("labelSelector=tier", ["a", "b"]),
            ("labelSelector=!tier", ["c"]),
            ("labelSelector=tier%3Dweb", ["a"]),
            ("labelSelector=tier!%3Dweb", ["b", "c"]),
            ("labelSelector=tier+in+(web,db),!x", ["b"]),
            ("labelSelector=tier+notin+(web)", ["b", "c"]),
            ("fieldSelector=metadata.name%3Db", ["b"]),
            ("fieldSelector=metadata.name!%3Db", ["a", "c"]),
            ("fieldSelector=metadata.namespace%3Ddefault,metadata.name%3Dc", ["c"]),
            ("fieldSelector=metadata.namespace%3Dother", []),
        ):
            assert names_of((await server.get(f"{MAPS}?{query}")).body) == expected, query
        everywhere = "/api/v1/configmaps?fieldSelector=metadata.name%3Db"
        assert names_of((await server.get(everywhere)).body) == ["b"]


@virtual
async def test_kinds_have_field_selectors_of_their_own() -> None:
    async with serving() as server:
        await server.create(f"{CORE}/serviceaccounts", {"metadata": {"name": "default"}})
        await server.create(f"{CORE}/pods", pod("waiting"))
        await server.create(f"{CORE}/pods", pod("placed", nodeName="n"))
        for query, expected in (
            ("spec.nodeName%3Dn", ["placed"]),
            ("spec.nodeName%3D", ["waiting"]),
            ("status.phase%3DPending,spec.nodeName!%3Dn", ["waiting"]),
        ):
            listed = await server.get(f"{CORE}/pods?fieldSelector={query}")
            assert names_of(listed.body) == expected


@virtual
async def test_methods_a_path_does_not_take_are_refused() -> None:
    async with serving() as server:
        for method, path in (
            ("PUT", MAPS),
            ("POST", f"{MAPS}/c"),
            ("POST", "/api/v1/configmaps"),
            ("DELETE", "/api/v1/namespaces"),
            ("OPTIONS", MAPS),
            ("POST", "/version"),
            ("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
        ):
            refused = await server.request(method, path, {})
            assert refused.status == 405, (method, path, refused.body)
            assert refused.body["reason"] == "MethodNotAllowed"


@virtual
async def test_some_paths_answer_whatever_the_method_as_in_kubernetes() -> None:
    async with serving() as server:
        for path, status in (
            ("/", 200),
            ("/apis", 200),
            ("/apis/apps", 200),
            ("/apis/apps/v1", 405),
            ("/apis/apps/v9", 404),
            ("/api/v1", 405),
            ("/nowhere", 404),
        ):
            for method in ("POST", "DELETE"):
                assert (await server.request(method, path, {})).status == status, (method, path)


@virtual
async def test_a_type_without_namespaces_has_no_path_in_one() -> None:
    async with serving() as server:
        assert (await server.get("/api/v1/namespaces/default/nodes")).status == 404
        assert (await server.get("/api/v1/namespaces/default")).body["kind"] == "Namespace"
        assert (await server.get("/api/v1/namespaces/default/status")).body["kind"] == "Namespace"


@virtual
async def test_subresources_that_read_show_the_object() -> None:
    async with serving() as server:
        path = "/apis/apps/v1/namespaces/default/deployments"
        await server.create(path, deployment("web", 3))
        assert (await server.get(f"{path}/web/status")).body["kind"] == "Deployment"
        assert (await server.get(f"{path}/web/scale")).body["spec"] == {"replicas": 3}


async def test_a_list_that_takes_too_long_may_go_on_in_another_snapshot() -> None:
    """Also where nothing is written, so that no history is dropped."""
    clock = HandClock()
    async with serving(clock=clock) as server:
        for number in range(5):
            await server.create(MAPS, {"metadata": {"name": f"m{number}"}})
        token = (await server.get(f"{MAPS}?limit=2")).body["metadata"]["continue"]
        clock.advance(200)
        assert (await server.get(f"{MAPS}?limit=2&continue={token}")).status == 200
        clock.advance(200)
        gone = await server.get(f"{MAPS}?limit=2&continue={token}")
        assert (gone.status, gone.body["reason"]) == (410, "Expired")
        assert "use the continue token in this response" in gone.body["message"]
        await server.create(MAPS, {"metadata": {"name": "m9"}})
        proceed = gone.body["metadata"]["continue"]
        page = (await server.get(f"{MAPS}?limit=2&continue={proceed}")).body
        assert [each["metadata"]["name"] for each in page["items"]] == ["m2", "m3"]
        last = await server.get(f"{MAPS}?limit=9&continue={page['metadata']['continue']}")
        names = [each["metadata"]["name"] for each in last.body["items"]]
        assert names == ["m4", "m9"]


async def test_lists_that_a_cache_may_answer_are_counted_by_type() -> None:
    counter = Counter(CollectorRegistry(), "lists_total", "Lists.", ("resource_prefix", "index"))
    async with serving(cache_lists=counter) as server:
        await server.create(DEFINITIONS, cars(None))
        for path in (f"{MAPS}?resourceVersion=0", MAPS, f"{V1}?resourceVersion=0"):
            assert (await server.get(path)).status == 200
        deployments = "/apis/apps/v1/deployments"
        await server.get(f"{deployments}?resourceVersion=0")
    prefixes = ("/core/configmaps", "/ex.io/cars/customresources", "/apps/deployments")
    assert [counter.value((prefix, "")) for prefix in prefixes] == [1, 1, 1]


@virtual
async def test_lists_of_custom_kinds_say_that_there_is_no_next_page() -> None:
    async with serving() as server:
        await server.create(DEFINITIONS, definition())
        things = await server.get("/apis/example.org/v1/namespaces/default/things")
        assert things.body["metadata"]["continue"] == ""
        assert "continue" not in (await server.get(MAPS)).body["metadata"]
