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
    first, last, hook = _lines(await ask(healthy(), "/readyz?verbose"))
    assert first == ["[+]ping ok", "[+]log ok", "[+]store ok"]
    assert last == ["[+]autoregister-completion ok", "[+]informer-sync ok", "[+]startup ok",
                    "[+]shutdown ok", "readyz check passed"]  # fmt: skip
    assert hook == "[+]poststarthook/scheduling/bootstrap-system-priority-classes ok"
    first, last, hook = _lines(await ask(healthy(), "/livez?verbose=1"))
    assert first == ["[+]ping ok", "[+]log ok", "[+]store ok"]
    assert last == ["[+]autoregister-completion ok", "livez check passed"]
    assert hook == "[+]poststarthook/scheduling/bootstrap-system-priority-classes ok"


def _lines(answer: Response) -> tuple[list[str], list[str], str]:
    """Return what comes before the hooks, what after, and one of them."""
    assert isinstance(answer.body, bytes)
    lines = answer.body.decode().splitlines()
    hooks = [number for number, line in enumerate(lines) if "]poststarthook/" in line]
    (one,) = (line for line in lines if "bootstrap-system-priority-classes" in line)
    return lines[: hooks[0]], lines[hooks[-1] + 1 :], one


async def test_hooks_pass_when_the_start_is_over_and_have_paths_of_their_own() -> None:
    health, path = Health(), "poststarthook/rbac/bootstrap-roles"
    assert (await ask(health, f"/readyz/{path}")).status == 500
    assert (await ask(health, f"/livez/{path}")).status == 200
    health.started()
    assert (await ask(health, f"/healthz/{path}")).body == b"ok"


async def test_a_failure_is_reported_without_its_reason() -> None:
    health = Health([Check("store", broken), Check("other", fine)])
    health.started()
    answer = await ask(health, "/livez")
    assert answer.status == 500
    first, last, _ = _lines(answer)
    assert first[2:] == ["[-]store failed: reason withheld", "[+]other ok"]
    assert last[-1] == "livez check failed"


async def test_excluded_checks_do_not_count_and_unknown_ones_are_mentioned() -> None:
    health = Health([Check("store", broken)])
    answer = await ask(health, "/livez?exclude=store&exclude=absent&verbose")
    assert answer.status == 200
    first, last, _ = _lines(answer)
    assert first[2:] == ["[+]store excluded: ok"]
    assert last[1:] == [
        'warn: some health checks cannot be excluded: no matches for "absent"',
        "livez check passed",
    ]


async def test_a_check_has_a_path_of_its_own_that_reports_the_reason() -> None:
    health = Health([Check("store", broken), Check("cache", fine, ready=False)])
    answer = await ask(health, "/livez/store")
    assert (answer.status, answer.body) == (500, b"internal server error: the disk is full\n")
    assert (await ask(health, "/livez/ping")).body == b"ok"
    with pytest.raises(NotFound):
        await ask(health, "/readyz/cache")
    with pytest.raises(NotFound):
        await ask(health, "/livez/absent")


async def test_a_check_of_readiness_alone_ends_nobody_s_life() -> None:
    health = Health([Check("store-readiness", broken, live=False, health=False)])
    health.started()
    assert (await ask(health, "/readyz")).status == 500
    assert (await ask(health, "/livez")).body == b"ok"
    assert (await ask(health, "/healthz")).body == b"ok"


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
