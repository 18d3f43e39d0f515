"""What only the etcd store promises: equal servers, credentials, and honest failures."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import subprocess
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from skerry.kit.clock import SystemClock
from skerry.kit.ids import SystemIds
from skerry.store.base import Compacted, Conflict, Store, StoreError, Unavailable, Write
from skerry.store.etcd import EtcdStore
from skerry.store.etcd_client import EtcdClient, EtcdOptions, OutcomeUnknown
from skerry.store.etcd_messages import Transacted
from skerry.store.etcd_version import keeps_what_it_acknowledges
from skerry.store.open import StoreSettings, open_store
from tests.kit.store.backends import Backend
from tests.kit.store.etcd_process import EtcdProcess, binary

pytestmark = pytest.mark.etcd


@pytest.fixture
def settings(etcd: EtcdProcess, tmp_path: Path) -> StoreSettings:
    return Backend("etcd", tmp_path, etcd).fresh()


async def opened(settings: StoreSettings) -> Store:
    return await open_store(settings, SystemClock(), SystemIds())


@pytest.fixture
async def pair(settings: StoreSettings) -> AsyncIterator[tuple[Store, Store]]:
    stores = await asyncio.gather(opened(settings), opened(settings))
    yield stores
    for store in stores:
        await store.close()


async def test_servers_over_one_etcd_share_one_history(pair: tuple[Store, Store]) -> None:
    left, right = pair
    assert left.identity == right.identity
    start = await left.revision()
    watch = right.watch("", after=start)
    (first,) = await left.commit([Write("/a", b"1", 0)])
    entry = await right.get("/a")
    assert entry is not None
    assert entry.revision == first
    (second,) = await right.commit([Write("/a", b"2", first)])
    with pytest.raises(Conflict) as caught:
        await left.commit([Write("/a", b"3", first)])
    assert caught.value.actual == second
    seen: list[int] = []
    while len(seen) < 2:
        seen += [event.revision for event in await anext(watch)]
    assert seen == [first, second]
    await left.compact(second)
    assert await right.compacted() == second
    with pytest.raises(Compacted):
        await right.range("", revision=first)


async def test_a_read_shows_what_either_server_acknowledged_before_it_began(
    pair: tuple[Store, Store],
) -> None:
    acknowledged = dict.fromkeys(("/a", "/b"), 0)

    async def write(key: str, store: Store) -> None:
        for number in range(40):
            value = None if number % 8 == 7 else b"%d" % number
            (revision,) = await store.commit([Write(key, value)])
            acknowledged[key] = revision

    async def read(key: str, store: Store) -> None:
        newest = 0
        for _ in range(80):
            floor = acknowledged[key]
            entry = await store.get(key)
            if entry is not None:
                assert entry.revision >= max(floor, newest)
                newest = entry.revision

    async with asyncio.TaskGroup() as tasks:
        for key, writer in zip(acknowledged, pair, strict=True):
            tasks.create_task(write(key, writer))
            for store in (*pair, *pair):
                tasks.create_task(read(key, store))


async def test_a_write_is_shown_at_once_by_the_server_that_remembers_the_value_before(
    pair: tuple[Store, Store],
) -> None:
    writer, reader = pair
    revision = 0
    for number in range(20):
        (revision,) = await writer.commit([Write("/a", b"%d" % number, revision)])
        entry = await reader.get("/a")
        assert entry is not None
        assert (entry.value, entry.revision) == (b"%d" % number, revision)
    await writer.commit([Write("/a", None, revision)])
    assert await reader.get("/a") is None


async def test_two_servers_creating_the_same_keys_share_them_out(pair: tuple[Store, Store]) -> None:
    async def create(store: Store, number: int) -> bool:
        try:
            await store.commit([Write(f"/{number}", store.identity.encode(), 0)])
        except Conflict:
            return False
        return True

    attempts = [create(store, number) for number in range(60) for store in pair]
    won = await asyncio.gather(*attempts)
    assert [won[n] + won[n + 1] for n in range(0, 120, 2)] == [1] * 60


async def test_another_server_notices_that_the_store_was_replaced(
    settings: StoreSettings, capsys: pytest.CaptureFixture[str]
) -> None:
    left = await open_store(settings, SystemClock(), SystemIds())
    right = await opened(settings)
    waiting = asyncio.ensure_future(anext(right.watch("", after=await right.revision())))
    await asyncio.sleep(0)
    await left.adopt("restored", 10**13)
    with pytest.raises(Unavailable, match="was replaced"):
        await waiting
    with pytest.raises(Unavailable, match="was replaced"):
        await right.commit([Write("/a", b"")])
    for store in (left, right):
        await store.close()
    assert "restart this server" in capsys.readouterr().err


async def test_history_that_somebody_else_compacted_is_reported_as_compacted(
    settings: StoreSettings, etcd: EtcdProcess
) -> None:
    store = await opened(settings)
    start = await store.revision()
    for number in range(3):
        await store.commit([Write("/a", b"%d" % number)])
    live = store.watch("", after=await store.revision())
    etcdctl(etcd.url, "compaction", str((await store.revision()) // 4096))
    for read in (store.range("", revision=start), store.history("", after=start)):
        with pytest.raises(Compacted):
            await read
    (revision,) = await store.commit([Write("/b", b"")])
    assert [event.revision for event in await anext(live)] == [revision]
    await store.close()


async def test_a_commit_of_more_keys_than_etcd_takes_says_what_to_change(
    settings: StoreSettings,
) -> None:
    store = await opened(settings)
    assert len(await store.commit([Write(f"/{n}", b"") for n in range(127)])) == 127
    with pytest.raises(StoreError, match="128 keys in one commit; this etcd takes 127"):
        await store.commit([Write(f"/{n}", b"") for n in range(128)])
    await store.close()
    with pytest.raises(StoreError, match="want 2 to 4096"):
        await opened(replace(settings, etcd_max_txn_ops=5000))


async def test_a_value_larger_than_etcd_takes_is_refused_and_nothing_else(
    settings: StoreSettings,
) -> None:
    store = await opened(settings)
    results = await asyncio.gather(
        store.commit([Write("/small", b"")]),
        store.commit([Write("/huge", bytes(4 << 20))]),
        store.commit([Write("/small/too", b"")]),
        return_exceptions=True,
    )
    assert [isinstance(result, StoreError) for result in results] == [False, True, False]
    await store.close()


async def test_an_etcd_that_does_not_answer_is_reported(tmp_path: Path) -> None:
    absent = EtcdProcess(tmp_path)
    settings = StoreSettings(
        kind="etcd", etcd_servers=(absent.url, absent.url), etcd_timeout_seconds=0.1
    )
    with pytest.raises(Unavailable, match="out of reach"):
        await opened(settings)


async def test_a_member_that_is_away_is_passed_over(
    settings: StoreSettings, tmp_path: Path
) -> None:
    absent = EtcdProcess(tmp_path / "absent")
    store = await opened(replace(settings, etcd_servers=(absent.url, *settings.etcd_servers)))
    await store.commit([Write("/a", b"")])
    assert await store.count("") == 1
    await store.close()


async def test_an_etcd_that_may_lose_what_it_acknowledged_is_warned_of(
    settings: StoreSettings, capsys: pytest.CaptureFixture[str]
) -> None:
    client = EtcdClient(EtcdOptions(settings.etcd_servers), SystemClock())
    version = await client.version()
    await client.close()
    store = await opened(settings)
    await store.close()
    warning = "etcd may lose acknowledged writes when it is killed; upgrade it to 3.5.5 or newer"
    said = [line for line in capsys.readouterr().err.splitlines() if warning in line]
    warned = any(f'version="{version}"' in line for line in said)
    assert warned is not keeps_what_it_acknowledges(version)


@pytest.mark.parametrize("server", ["ftp://host:1", "http://"])
async def test_a_server_that_is_no_url_is_refused(server: str) -> None:
    with pytest.raises(StoreError, match="want http://host:port"):
        await opened(StoreSettings(kind="etcd", etcd_servers=(server,)))


class Deaf(EtcdClient):
    """Sends transactions and loses the answers."""

    deaf = False

    async def transact(self, request: bytes) -> Transacted:
        answer = await super().transact(request)
        if self.deaf and answer.succeeded:
            raise OutcomeUnknown("lost; its outcome is unknown")
        return answer


async def test_a_lost_answer_is_found_out_by_reading_back(settings: StoreSettings) -> None:
    client = Deaf(EtcdOptions(servers=settings.etcd_servers), SystemClock())
    store = EtcdStore(
        client, SystemClock(), SystemIds(), prefix=settings.etcd_prefix, max_txn_ops=128
    )
    await store._start()
    client.deaf = True
    revisions = await store.commit([Write("/a", b"1", 0), Write("/none", None), Write("/b", b"2")])
    client.deaf = False
    entry = await store.get("/b")
    assert entry is not None
    assert revisions[2] == entry.revision
    assert revisions[0] < revisions[2]
    await store.close()


async def test_a_lost_answer_that_left_no_trace_is_called_unknown(settings: StoreSettings) -> None:
    client = Deaf(EtcdOptions(servers=settings.etcd_servers), SystemClock())
    store = EtcdStore(
        client, SystemClock(), SystemIds(), prefix=settings.etcd_prefix, max_txn_ops=128
    )
    await store._start()
    await store.commit([Write("/a", b"1")])
    client.deaf = True
    with pytest.raises(Unavailable, match="outcome is unknown"):
        await store.commit([Write("/a", None)])
    client.deaf = False
    assert await store.get("/a") is None
    await store.close()


def etcdctl(url: str, *arguments: str) -> None:
    command = [str(binary().with_name("etcdctl")), "--endpoints", url, *arguments]
    subprocess.run(command, check=True, capture_output=True, env={"ETCDCTL_API": "3"})


class Authority:
    """Issues certificates for one test."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
        self.ca = self._write("ca.pem", self._certificate(self._name, self._key, ca=True))

    def issue(self, name: str) -> tuple[Path, Path]:
        """Return the files of a certificate for *name* on loopback, and of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = self._write(f"{name}.pem", self._certificate(subject, key, ca=False))
        private = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        return certificate, self._write(f"{name}.key", private)

    def _certificate(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, *, ca: bool
    ) -> bytes:
        now = datetime.datetime.now(datetime.UTC)
        loopback = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        built = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(hours=1))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([loopback]), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return built.public_bytes(serialization.Encoding.PEM)

    def _write(self, name: str, content: bytes) -> Path:
        path = self._directory / name
        path.write_bytes(content)
        return path


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[tuple[EtcdProcess, StoreSettings]]:
    """An etcd with TLS, client certificates and a password, and settings that fit."""
    authority = Authority(tmp_path)
    cert, key = authority.issue("server")
    client_cert, client_key = authority.issue("client")
    process = EtcdProcess(
        tmp_path / "etcd",
        *("--cert-file", str(cert), "--key-file", str(key)),
        *("--trusted-ca-file", str(authority.ca), "--client-cert-auth"),
        scheme="https",
    )
    process.start()
    tls = ("--cacert", str(authority.ca), "--cert", str(client_cert), "--key", str(client_key))
    try:
        etcdctl(process.url, *tls, "user", "add", "root:secret")
        etcdctl(process.url, *tls, "user", "grant-role", "root", "root")
        etcdctl(process.url, *tls, "auth", "enable")
        yield (
            process,
            StoreSettings(
                kind="etcd",
                etcd_servers=(process.url,),
                etcd_ca=authority.ca,
                etcd_cert=client_cert,
                etcd_key=client_key,
                etcd_user="root",
                etcd_password="secret",
                etcd_timeout_seconds=5,
            ),
        )
    finally:
        process.kill()


async def test_tls_certificates_and_passwords_open_a_guarded_etcd(
    guarded: tuple[EtcdProcess, StoreSettings],
) -> None:
    process, settings = guarded
    store = await opened(settings)
    watch = store.watch("", after=await store.revision())
    (first,) = await store.commit([Write("/a", b"1")])
    assert [event.revision for event in await anext(watch)] == [first]
    # Tokens are forgotten by a restarted etcd; a new one is fetched unasked.
    process.kill()
    process.start()
    # Reads are asked again; a write sent before the break is noticed would end in doubt.
    await store.get("/a")
    (second,) = await store.commit([Write("/a", b"2", first)])
    assert [event.revision for event in await anext(watch)] == [second]
    await store.close()
    with pytest.raises(StoreError, match="authentication failed"):
        await opened(replace(settings, etcd_password="wrong"))
    with pytest.raises(StoreError, match="credentials cannot be read"):
        await opened(replace(settings, etcd_ca=Path("/nowhere/ca.pem")))
