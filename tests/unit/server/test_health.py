from __future__ import annotations

import pytest

from skerry.api.errors import NotFound
from skerry.server.health import Check, Health, Unhealthy
from skerry.server.http.message import Request, Response


async def fine() -> None:
    return None


async def broken() -> None:
    raise Unhealthy("the disk is full")


async def ask(health: Health, target: str) -> Response:
    path, _, query = target.partition("?")
    answer = await health.handle(Request("GET", path, query), "local")
    assert isinstance(answer, Response)
    return answer


def healthy() -> Health:
    health = Health([Check("store", fine)])
    health.started()
    return health


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
async def test_all_well_is_ok(path: str) -> None:
    answer = await ask(healthy(), path)
    assert (answer.status, answer.body) == (200, b"ok")
    assert answer.content_type == "text/plain; charset=utf-8"


async def test_verbose_lists_every_check() -> None:
    answer = await ask(healthy(), "/readyz?verbose")
    assert answer.body == (
        b"[+]ping ok\n[+]store ok\n[+]startup ok\n[+]shutdown ok\nreadyz check passed\n"
    )
    answer = await ask(healthy(), "/livez?verbose=1")
    assert answer.body == b"[+]ping ok\n[+]store ok\nlivez check passed\n"


async def test_a_failure_is_reported_without_its_reason() -> None:
    health = Health([Check("store", broken), Check("other", fine)])
    health.started()
    answer = await ask(health, "/livez")
    assert answer.status == 500
    assert answer.body == (
        b"[+]ping ok\n[-]store failed: reason withheld\n[+]other ok\nlivez check failed\n"
    )


async def test_excluded_checks_do_not_count_and_unknown_ones_are_mentioned() -> None:
    health = Health([Check("store", broken)])
    answer = await ask(health, "/livez?exclude=store&exclude=absent&verbose")
    assert answer.status == 200
    assert answer.body == (
        b"[+]ping ok\n[+]store excluded: ok\n"
        b'warn: some health checks cannot be excluded: no matches for "absent"\n'
        b"livez check passed\n"
    )


async def test_a_check_has_a_path_of_its_own_that_reports_the_reason() -> None:
    health = Health([Check("store", broken), Check("cache", fine, ready=False)])
    answer = await ask(health, "/livez/store")
    assert (answer.status, answer.body) == (500, b"internal server error: the disk is full\n")
    assert (await ask(health, "/livez/ping")).body == b"ok"
    with pytest.raises(NotFound):
        await ask(health, "/readyz/cache")
    with pytest.raises(NotFound):
        await ask(health, "/livez/absent")


async def test_a_server_is_ready_between_start_and_stop_and_alive_all_along() -> None:
    health = Health()
    assert (await ask(health, "/readyz")).status == 500
    assert (await ask(health, "/livez")).status == 200
    health.started()
    assert (await ask(health, "/readyz")).status == 200
    health.stopping()
    assert (await ask(health, "/readyz")).status == 500
    assert (await ask(health, "/livez")).status == 200
    assert (await ask(health, "/healthz")).status == 200
