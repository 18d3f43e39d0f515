"""What clients invent is not kept: no cache, label or log grows with the text of requests."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.kit.server.hub import Hub, running_hub

LONG = 30_000
REQUESTS = 40
# Each request of the review carried 60 KB; kept, 40 of them would take 2.4 MB.
GROWTH_LIMIT = 300_000

Ask = tuple[str, str, dict[str, str]]


def text(number: int, letter: str = "x") -> str:
    """Return a name that no other request has, in the form of a path segment."""
    return f"{letter * LONG}{number}"


def segments(number: int) -> str:
    """Return a cluster path of many legal names."""
    return ":".join(["a" * 60] * (LONG // 61) + [f"n{number}"])


VARIANTS: dict[str, Callable[[int], Ask]] = {
    "group and resource": lambda n: ("", f"/clusters/root/apis/{text(n)}/v1/{text(n, 'y')}", {}),
    "namespace and name": lambda n: (
        "",
        f"/clusters/root/api/v1/namespaces/{text(n)}/configmaps/{text(n, 'y')}",
        {},
    ),
    "subresource": lambda n: (
        "alice",
        f"/clusters/root/api/v1/namespaces/a/configmaps/b/{text(n)}",
        {},
    ),
    "non-resource path": lambda n: ("", f"/clusters/root/{text(n)}", {}),
    "bare path": lambda n: ("", f"/{text(n)}", {}),
    "health check": lambda n: ("", f"/healthz/{text(n)}", {}),
    "cluster path": lambda n: ("", f"/clusters/{segments(n)}/api/v1/configmaps", {}),
    "known user, invented cluster": lambda n: (
        "alice",
        f"/clusters/{segments(n)}/api/v1/configmaps",
        {},
    ),
    "home of an invented user": lambda n: ("", f"/clusters/user:{segments(n)}/api/v1/secrets", {}),
    "export view": lambda n: (
        "",
        f"/services/apiexport/{text(n)}/{text(n, 'y')}/clusters/*/apis/apis.kcp.io/v1alpha1/x",
        {},
    ),
    "initializer view": lambda n: (
        "",
        f"/services/initializingworkspaces/{text(n)}:y/clusters/*/apis/core.kcp.io/v1alpha1/x",
        {},
    ),
    "user agent": lambda n: ("", "/clusters/root/api/v1/secrets", {"user_agent": text(n)}),
    "audit id": lambda n: ("", "/clusters/root/api/v1/secrets", {"audit_id": text(n)}),
    "accepted types": lambda n: (
        "kcp-admin",
        "/clusters/root/api/v1/configmaps",
        {"accept": f"application/json, {text(n)}"},
    ),
    "token": lambda n: (text(n), "/clusters/root/api/v1/secrets", {}),
    "impersonated name": lambda n: (
        "kcp-admin",
        "/clusters/root/api/v1/secrets",
        {"impersonate_user": text(n)},
    ),
    "selectors": lambda n: (
        "kcp-admin",
        f"/clusters/root/api/v1/configmaps?labelSelector=a%3D{text(n)}&fieldSelector=b%3D{text(n)}",
        {},
    ),
}


async def ask(hub: Hub, variant: str, number: int) -> Any:
    user, path, headers = VARIANTS[variant](number)
    return await hub.ask(user, "GET", path, **headers)


def metrics(hub: Hub) -> Any:
    return hub.running.api.engine._recorder._metrics  # type: ignore[attr-defined]


def series(hub: Hub) -> set[tuple[str, ...]]:
    return {*metrics(hub).requests._values}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hub")


async def test_no_request_leaves_its_text_behind(folder: Path) -> None:
    grown: dict[str, int] = {}
    async with running_hub(folder) as hub:
        for variant in VARIANTS:
            for number in range(3):
                reply = await ask(hub, variant, number)
                assert reply.status < 500, (variant, reply.body)
            known = series(hub)
            gc.collect()
            tracemalloc.start()
            before = tracemalloc.get_traced_memory()[0]
            for number in range(REQUESTS):
                await ask(hub, variant, 100 + number)
            gc.collect()
            grown[variant] = tracemalloc.get_traced_memory()[0] - before
            tracemalloc.stop()
            assert series(hub) == known, variant
        assert all(len(label) < 100 for labels in series(hub) for label in labels)
    assert {name: size for name, size in grown.items() if size > GROWTH_LIMIT} == {}


async def test_answers_and_their_headers_repeat_little_of_a_long_request(folder: Path) -> None:
    async with running_hub(folder) as hub:
        for variant in VARIANTS:
            reply = await ask(hub, variant, 1)
            assert len(reply.raw) < 20_000, variant
            assert max(len(value) for _, value in reply.headers) < 300, variant


async def test_refused_requests_of_known_types_are_counted_by_their_names(folder: Path) -> None:
    async with running_hub(folder) as hub:
        await hub.ask("", "GET", "/clusters/root/api/v1/namespaces/a/configmaps/b")
        await hub.ask("", "GET", "/clusters/root/apis/invented/v1/things")
        await hub.ask("", "GET", "/clusters/root/openapi/v3/apis/invented/v1")
        found = {(labels[2], labels[4], labels[5], labels[-1]) for labels in series(hub)}
    assert ("", "configmaps", "", "403") in found
    assert ("other", "other", "", "403") in found
    assert ("", "", "/openapi/v3", "403") in found
