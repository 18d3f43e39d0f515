"""Which addresses the server goes to when it calls a webhook."""

from __future__ import annotations

import asyncio

import pytest

from skerry.app.webhook_client import HttpWebhookClient, parse_networks
from skerry.logic.machinery.webhook_clients import client_config
from skerry.server.webhook_client import WebhookError
from skerry.store.memory import MemoryStore
from tests.kit.server.webhooks import Review, allow, ca_bundle, webhook_server

REVIEW = b'{"apiVersion":"v","kind":"k","request":{"uid":"u"}}'
NOT_ALLOWED = "the hub's administrator allows no webhooks at this address"


async def called(url: str, *networks: str, seconds: float = 5.0) -> int:
    client = HttpWebhookClient(MemoryStore("s"), parse_networks(networks))
    config = client_config({"url": url, "caBundle": ca_bundle()})
    try:
        return (await client.post(config, "c", "timeout=5s", REVIEW, seconds)).status
    finally:
        await client.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_webhook_in_an_allowed_network_is_called(host: str) -> None:
    async with webhook_server() as hooks:
        hooks.on("/x", allow)
        assert await called(f"https://{host}:{hooks.port}/x", "10.0.0.0/8", "127.0.0.0/8") == 200


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "127.1", "2130706433", "0x7f000001"]
)
@pytest.mark.parametrize("networks", [(), ("192.0.2.0/24", "2001:db8::/32")])
async def test_no_other_address_is_even_connected_to(host: str, networks: tuple[str, ...]) -> None:
    """However the address is spelt, and whatever the name resolves to."""
    async with webhook_server() as hooks:
        with pytest.raises(WebhookError, match=NOT_ALLOWED):
            await called(f"https://{host}:{hooks.port}/x", *networks)
        assert hooks.connections == 0


async def test_a_mapped_address_counts_as_the_one_that_packets_go_to() -> None:
    async with webhook_server() as hooks:
        hooks.on("/x", allow)
        with pytest.raises(WebhookError, match=r"certificate is not valid|IP address mismatch"):
            await called(f"https://[::ffff:127.0.0.1]:{hooks.port}/x", "127.0.0.0/8")


async def test_a_name_that_is_none_is_not_found() -> None:
    with pytest.raises(WebhookError, match=r"no such host|no webhooks"):
        await called("https://no-such-host.invalid/x", "0.0.0.0/0")


def test_a_network_that_is_none_is_named() -> None:
    with pytest.raises(ValueError, match=r"10\.0\.0\.1/8"):
        parse_networks(["10.0.0.1/8"])


async def test_places_are_bounded_and_those_given_up_are_closed() -> None:
    async with webhook_server() as hooks:
        client = HttpWebhookClient(MemoryStore("s"))
        for number in range(70):
            hooks.on(f"/{number}", allow)
            bundle = ca_bundle()
            config = client_config({"url": hooks.url(f"/{number}"), "caBundle": bundle})
            assert (await client.post(config, "c", "", REVIEW, 5.0)).status == 200
        # One place, whatever the paths: one connection.
        assert hooks.connections == 1
        await client.close()


async def test_many_calls_that_hang_leave_room_for_others() -> None:
    """Waiting for a connection would count as the time of a webhook that was not even asked."""
    everybody = 300
    client = HttpWebhookClient(MemoryStore("s"))
    all_asked = asyncio.Event()

    async def held(review: Review) -> Review:
        if len(hooks.asked) == everybody:
            all_asked.set()
        await all_asked.wait()
        return allow(review)

    async with webhook_server() as hooks:
        config = client_config(hooks.on("/held", held))
        calls = (client.post(config, "c", "timeout=30s", REVIEW, 30) for _ in range(everybody))
        replies = await asyncio.gather(*calls)
        await client.close()
    assert {reply.status for reply in replies} == {200}
