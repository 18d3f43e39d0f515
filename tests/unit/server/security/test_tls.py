from __future__ import annotations

import asyncio
import ssl
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509

from skerry.kit.clock import SystemClock
from skerry.server.http.message import Answer, Peer, Request, Response
from skerry.server.security.pki import Authority, Pki, new_ca, open_pki, server_names
from skerry.server.security.tls import OWN_NAME
from tests.kit.server.certificates import client_context, server_context
from tests.kit.server.clock import HandClock
from tests.kit.server.wire import GET, Got, connected, serving


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    return open_pki(tmp_path_factory.mktemp("pki"), server_names())


class Remembers:
    """A handler that keeps the peers it met."""

    def __init__(self) -> None:
        self.peers: list[Peer] = []

    async def __call__(self, request: Request) -> Answer:
        self.peers.append(request.peer)
        return Response(200, b"x" * 500_000)


async def asked(port: int, tls: ssl.SSLContext) -> Got:
    async with connected(port, tls) as client:
        client.send(GET % b"")
        return await client.answer()


async def test_the_client_certificate_reaches_the_handler_once_per_connection(pki: Pki) -> None:
    handler = Remembers()
    tls = client_context(pki.ca.certificate, pki.admin)
    secured = server_context(pki)
    async with serving(handler, tls=secured) as (_, port), connected(port, tls) as client:
        for _ in range(2):
            client.send(GET % b"")
            assert len((await client.answer()).body) == 500_000
    first, second = handler.peers
    assert first is second
    assert first.address == "127.0.0.1"
    assert first.certificate is not None
    assert x509.load_der_x509_certificate(first.certificate) == pki.admin.x509


async def test_a_client_without_a_certificate_is_served_as_nobody(pki: Pki) -> None:
    handler = Remembers()
    async with serving(handler, tls=server_context(pki)) as (_, port):
        await asked(port, client_context(pki.ca.certificate))
    assert handler.peers[0].certificate is None


async def test_a_certificate_of_another_ca_does_not_get_in(pki: Pki, tmp_path: Path) -> None:
    stranger = open_pki(tmp_path, server_names())
    tls = client_context(pki.ca.certificate, stranger.admin)
    async with serving(tls=server_context(pki)) as (_, port):
        with pytest.raises((ssl.SSLError, ConnectionError, EOFError)):
            await asked(port, tls)


@pytest.mark.parametrize("days", [-400, 400])
async def test_times_of_client_certificates_are_left_to_authentication(pki: Pki, days: int) -> None:
    then = HandClock(SystemClock().now() + timedelta(days=days))
    outside_its_time = Authority(pki.ca, then).client("edge")
    handler = Remembers()
    async with serving(handler, tls=server_context(pki)) as (_, port):
        await asked(port, client_context(pki.ca.certificate, outside_its_time))
    shown = handler.peers[0].certificate
    assert shown is not None
    assert x509.load_der_x509_certificate(shown) == outside_its_time.x509


async def test_a_lapsed_certificate_of_another_ca_does_not_get_in(pki: Pki, tmp_path: Path) -> None:
    stranger = open_pki(tmp_path, server_names())
    then = HandClock(SystemClock().now() - timedelta(days=400))
    tls = client_context(pki.ca.certificate, Authority(stranger.ca, then).client("edge"))
    async with serving(tls=server_context(pki)) as (_, port):
        with pytest.raises((ssl.SSLError, ConnectionError, EOFError)):
            await asked(port, tls)


async def test_a_server_certificate_is_no_client_certificate(pki: Pki) -> None:
    tls = client_context(pki.ca.certificate, Authority(pki.ca, SystemClock()).server("x", ["x"]))
    async with serving(tls=server_context(pki)) as (_, port):
        with pytest.raises((ssl.SSLError, ConnectionError, EOFError)):
            await asked(port, tls)


async def test_http_1_1_is_agreed_on_and_old_tls_is_not(pki: Pki) -> None:
    tls = client_context(pki.ca.certificate)
    tls.set_alpn_protocols(["h2", "http/1.1"])
    async with serving(tls=server_context(pki)) as (_, port), connected(port, tls) as client:
        secured = client.writer.get_extra_info("ssl_object")
        assert secured.selected_alpn_protocol() == "http/1.1"


async def test_no_session_is_offered_that_nobody_resumes(pki: Pki) -> None:
    async with serving(Remembers(), tls=server_context(pki)) as (_, port):
        tls = client_context(pki.ca.certificate, pki.admin)
        reader, writer = await asyncio.open_connection("localhost", port, ssl=tls)
        writer.write(GET % b"")
        await reader.readexactly(500_000)
        session = writer.get_extra_info("ssl_object").session
        writer.close()
    assert not session.has_ticket


async def test_plain_http_on_the_tls_port_does_not_hang(pki: Pki) -> None:
    async with serving(tls=server_context(pki)) as (_, port), connected(port) as client:
        client.send(GET % b"")
        assert not (await client.rest()).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    ("name", "to_all", "by_given"),
    [
        ("given.example.org", False, True),
        ("localhost", False, False),
        ("given.example.org", True, True),
        ("localhost", True, True),
        (OWN_NAME, True, False),
    ],
)
async def test_who_is_shown_the_given_certificate(
    pki: Pki, name: str, *, to_all: bool, by_given: bool
) -> None:
    clock = SystemClock()
    names = ["given.example.org"]
    given = Authority(new_ca("other", clock), clock).server("given", [*names, "localhost"])
    context = server_context(pki, given, names, to_all=to_all)
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    async with serving(tls=context) as (_, port):
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls, server_hostname=name)
        shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
    assert (x509.load_der_x509_certificate(shown) == given.x509) is by_given
