"""An edge's certificate: obtained, kept through crashes, renewed, lapsed, refused."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from skerry.api.errors import Conflict
from skerry.edge.syncer.identity.credential import HubCredential
from skerry.edge.syncer.identity.credential_gate import CredentialGate
from skerry.edge.syncer.identity.enrolment import EdgeTerms, Enrolment, HubWays
from skerry.edge.syncer.identity.token import HubToken
from skerry.edge.syncer.metrics import SyncerMetrics
from skerry.kit.clock import LoopClock
from skerry.kit.ids import SeededIds
from skerry.logic.fleet.syncing.certificates import EdgeIdentity
from skerry.logic.fleet.syncing.manifest import hub_kubeconfig
from skerry.runtime.client import Client
from skerry.runtime.kubeconfig import ClientConfig
from skerry.runtime.transport import ConnectionLost, TransportError
from skerry.wire.kubeconfig import KubeconfigError
from tests.kit.chain.issuing_hub import (
    EDGE,
    HUB_START,
    CredentialTransport,
    IssuingHub,
    make_key,
)
from tests.kit.chain.issuing_hub import token as account_token
from tests.kit.sim.loop import virtual

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)


def authority() -> bytes:
    """Return any CA: without one every context would load the machine's."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "any")])
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(HUB_START - 2 * DAY)
        .not_valid_after(HUB_START + 3650 * DAY)
    )
    return built.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


CONFIG = ClientConfig(server=f"https://hub/clusters/{EDGE.mailbox}", ca=authority())


def bootstrap(number: int) -> ClientConfig:
    made = hub_kubeconfig("", b"", "florin", f"skerry-edge.abc00{number}.{'s' * 43}", EDGE.uid)
    user = made["users"][0]["user"]
    extensions = {each["name"]: each["extension"] for each in user["extensions"]}
    return replace(CONFIG, token=user["token"], user_extensions=extensions)


class MemoryStore:
    """A store that several processes of an edge share, and that can fail."""

    def __init__(self) -> None:
        self.kept = EdgeIdentity()
        self.version = 0
        self.saves = 0
        self.fail_at = 0

    def opened(self) -> OpenStore:
        return OpenStore(self)


class OpenStore:
    def __init__(self, shared: MemoryStore) -> None:
        self._shared, self._seen = shared, 0

    async def load(self) -> EdgeIdentity:
        self._seen = self._shared.version
        return self._shared.kept

    async def save(self, identity: EdgeIdentity) -> None:
        self._shared.saves += 1
        if self._shared.saves == self._shared.fail_at:
            raise OSError("no space left on device")
        if self._seen != self._shared.version:
            raise Conflict("somebody else was faster")
        self._shared.version += 1
        self._seen, self._shared.kept = self._shared.version, identity


class Edge:
    """One edge: what it keeps, and what its kubeconfig says."""

    def __init__(
        self, hub: IssuingHub, config: ClientConfig, skew: timedelta = timedelta(0)
    ) -> None:
        self.hub, self.config, self.skew = hub, config, skew
        self.store = MemoryStore()
        self.main: CredentialTransport
        self.gate: CredentialGate
        self.account: HubToken | None = None
        self.keys = 0

    def credential(self, seed: int = 1) -> HubCredential:
        """Return a credential as a started process has it."""
        begun = self.config if self.account else replace(self.config, token="")
        main = self.main = CredentialTransport(self.hub, begun)
        self.gate = CredentialGate(main)

        def identify(config: ClientConfig) -> None:
            main.config = config

        async def made(*args: object) -> object:
            self.keys += 1
            return await make_key(*args)  # type: ignore[arg-type]

        def read() -> ClientConfig:
            return self.config

        terms = EdgeTerms("florin", EDGE.mailbox, "", read)
        ways = HubWays(
            Client(main, clock=LoopClock(HUB_START + self.skew)),
            identify,
            lambda config: CredentialTransport(self.hub, config),
        )
        return HubCredential(
            Enrolment(terms, self.config, self.store.opened(), ways, made),  # type: ignore[arg-type]
            ways,
            self.gate,
            ids=SeededIds(seed),
            metrics=SyncerMetrics(),
            account=self.account,
        )

    @asynccontextmanager
    async def running(self, seed: int = 1) -> AsyncIterator[HubCredential]:
        credential = self.credential(seed)
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(credential.run())
            yield credential
            task.cancel()


async def days(count: float) -> None:
    await asyncio.sleep(count * DAY.total_seconds())


@virtual
async def test_an_edge_redeems_its_bootstrap_credential_and_comes_with_a_certificate() -> None:
    hub = IssuingHub()
    edge = Edge(hub, bootstrap(1))
    async with edge.running() as credential:
        await credential.certified.wait()
        assert edge.gate.is_open
        assert credential.message == ""
        assert credential.expires == HUB_START + 7 * DAY
        assert edge.main.config.certificate
        assert edge.main.config.token == ""
    assert edge.store.kept.edge == EDGE.user
    assert edge.store.kept.pending == ()
    assert hub.asked_by == ["bootstrap:abc001"]
    # Started again it needs nothing of the hub.
    async with edge.running() as again:
        await again.certified.wait()
    assert edge.main.sent == []


@virtual
async def test_an_edge_waits_for_days_until_somebody_approves() -> None:
    hub = IssuingHub(manual=True)
    edge = Edge(hub, bootstrap(1))
    async with edge.running() as credential:
        waiting = asyncio.create_task(edge.gate.request("GET", "/mailbox"))
        await days(3)
        assert credential.message == "waiting for approval: skerry edge approve florin"
        assert not waiting.done()
        (name,) = hub.requests
        assert credential.fingerprint.replace(":", "") == name.removeprefix("edge-")
        hub.approve(name)
        await credential.certified.wait()
        assert (await waiting).status == 404
        # The week begins when the request was approved, not when it was made.
        await days(4.7)
        assert len(hub.requests) == 2
    assert edge.keys == 2


@pytest.mark.parametrize("lifetime", [7 * DAY, HOUR, timedelta(minutes=10)])
@pytest.mark.parametrize("skew", [-DAY, timedelta(0), DAY])
@virtual
async def test_a_clock_that_is_wrong_by_a_day_neither_misses_nor_multiplies_renewals(
    lifetime: timedelta, skew: timedelta
) -> None:
    hub = IssuingHub(lifetime)
    edge = Edge(hub, bootstrap(1), skew)
    seconds = lifetime.total_seconds()
    async with edge.running():
        for _ in range(60):
            await asyncio.sleep(seconds / 6)
            answer = await edge.gate.request("GET", "/mailbox")
            assert answer.status == 404, "the hub accepted the certificate"
    # Ten lifetimes at 0.57 to 0.67 each.
    assert 15 <= len(hub.requests) <= 18
    assert set(hub.asked_by[1:]) == {"certificate"}
    assert edge.keys == len(hub.requests)


@pytest.mark.parametrize("skew", [-DAY, timedelta(0), DAY])
@virtual
async def test_an_edge_that_is_restarted_every_day_renews_in_time(skew: timedelta) -> None:
    hub = IssuingHub()
    edge = Edge(hub, bootstrap(1), skew)
    for day in range(30):
        async with edge.running(day) as credential:
            await days(0.5)
            assert credential.certified.is_set()
            assert (await edge.gate.request("GET", "/mailbox")).status == 404
        await days(0.5)
    assert 6 <= len(hub.requests) <= 10


@pytest.mark.parametrize("away", [8, 30, 89])
@virtual
async def test_a_lapsed_certificate_gets_its_successor(away: int) -> None:
    hub = IssuingHub()
    edge = Edge(hub, bootstrap(1))
    async with edge.running() as credential:
        await credential.certified.wait()
    hub.refuse.add("bootstrap:abc001")
    await days(away)
    async with edge.running() as credential:
        assert (await edge.gate.request("GET", "/mailbox")).status == 404
        assert credential.message == ""
    assert hub.asked_by == ["bootstrap:abc001", "certificate"]


@virtual
async def test_an_edge_away_for_too_long_says_so_and_returns_with_a_new_credential() -> None:
    hub = IssuingHub()
    edge = Edge(hub, bootstrap(1))
    async with edge.running() as credential:
        await credential.certified.wait()
    hub.refuse.add("bootstrap:abc001")
    await days(120)
    async with edge.running() as credential:
        await days(1)
        assert "skerry edge bootstrap florin" in credential.message
        assert not edge.gate.is_open
        edge.config = bootstrap(2)
        await credential.certified.wait()
        assert credential.message == ""
    assert hub.asked_by == ["bootstrap:abc001", "bootstrap:abc002"]


@virtual
async def test_a_revoked_edge_stops_asking_at_once_and_says_so_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    hub = IssuingHub()
    edge = Edge(hub, bootstrap(1))
    async with edge.running() as credential:
        await days(1)
        hub.refuse |= {"certificate", "bootstrap:abc001"}
        assert (await edge.gate.request("GET", "/mailbox")).status == 401
        await asyncio.sleep(0.1)
        assert not edge.gate.is_open
        assert not credential.certified.is_set()
        assert "the hub refuses this edge" in credential.message
        before = len(edge.main.sent)
        await days(1)
        # At growing intervals up to a quarter of an hour, not with every request.
        assert len(edge.main.sent) - before <= 24 * 6 + 10
        assert "the hub refuses this edge" in credential.message
        assert capsys.readouterr().err.count("the hub refuses this edge") == 1
        hub.refuse.clear()
        hub.refuse.add(edge.store.kept.certificate)
        edge.config = bootstrap(2)
        await credential.certified.wait()
    # The first, that of the renewal which was refused, the new start's.
    assert edge.keys == 3


@virtual
async def test_connections_that_are_lost_all_the_time_cost_a_question_now_and_then() -> None:
    hub = IssuingHub()
    edge = Edge(hub, bootstrap(1))
    async with edge.running() as credential:
        await credential.certified.wait()
        before = len(edge.main.sent)
        for _ in range(1000):
            edge.gate.suspicion.suspect()
            await asyncio.sleep(1)
    assert len(edge.main.sent) - before <= 1000 / 60 + 8
    assert len(hub.requests) == 1, "nothing was wrong with the certificate"


@virtual
async def test_a_hub_that_hangs_up_on_our_certificate_but_hears_strangers_refuses_it() -> None:
    hub = IssuingHub()
    edge = Edge(hub, bootstrap(1))
    async with edge.running() as credential:
        await credential.certified.wait()
        hub.hangs_up_on = {"certificate", "stranger"}
        with pytest.raises(ConnectionLost):
            await edge.gate.request("GET", "/mailbox")
        await asyncio.sleep(100)
        assert edge.gate.is_open, "it may be the line"
        hub.hangs_up_on = {"certificate"}
        with pytest.raises(ConnectionLost):
            await edge.gate.request("GET", "/mailbox")
        await asyncio.sleep(100)
        assert "the hub refuses this edge" in credential.message
        assert not edge.gate.is_open
        edge.config = bootstrap(2)
        hub.hangs_up_on = set()
        await credential.certified.wait()
    assert edge.gate.is_open


@virtual
async def test_whenever_the_process_dies_the_next_one_succeeds_with_the_same_key() -> None:
    died_with = set()
    for step in range(40):
        hub = IssuingHub()
        edge = Edge(hub, bootstrap(1))
        dying = asyncio.create_task(edge.credential().run())
        for _ in range(step):
            await asyncio.sleep(0)
        kept = edge.store.kept
        died_with.add((bool(kept.pending), bool(hub.requests), bool(kept.certificate)))
        dying.cancel()
        await asyncio.wait([dying])
        async with edge.running() as credential, asyncio.timeout(3600):
            await credential.certified.wait()
        assert edge.keys == 1 or kept == EdgeIdentity(), "a key that was kept is used"
        assert len(hub.requests) == 1
    # Having nothing; a key; a key that the hub knows; a certificate.
    nothing, key = (False, False, False), (True, False, False)
    known, done = (True, True, False), (False, True, True)
    assert died_with == {nothing, key, known, done}


@pytest.mark.parametrize("fails", [1, 2])
@virtual
async def test_a_full_disk_delays_an_identity_and_costs_no_key(fails: int) -> None:
    hub = IssuingHub()
    edge = Edge(hub, bootstrap(1))
    edge.store.fail_at = fails
    async with edge.running() as credential:
        await credential.certified.wait()
    assert len(hub.requests) == 1


@virtual
async def test_a_lost_answer_is_asked_for_again() -> None:
    hub = IssuingHub()
    hub.lost_answers = 1
    edge = Edge(hub, bootstrap(1))
    async with edge.running() as credential:
        await credential.certified.wait()
    assert len(hub.requests) == 1


@virtual
async def test_a_request_that_is_gone_is_made_again_with_the_same_key() -> None:
    hub = IssuingHub(manual=True)
    edge = Edge(hub, bootstrap(1))
    async with edge.running() as credential:
        await days(1)
        (name,) = hub.requests
        hub.delete(name)
        await days(0.1)
        assert list(hub.requests) == [name]
        hub.approve(name)
        await credential.certified.wait()
    assert edge.keys == 1


@pytest.mark.parametrize("decision", ["Denied", "Failed"])
@virtual
async def test_a_denied_request_is_reported_and_its_key_is_not_used_again(decision: str) -> None:
    hub = IssuingHub(manual=True)
    edge = Edge(hub, bootstrap(1))
    async with edge.running() as credential:
        await days(1)
        (name,) = hub.requests
        hub.approve(name, decision)
        await asyncio.sleep(1)
        assert f"{decision}: said so" in credential.message
        assert edge.store.kept.pending == ()
        hub.manual = False
        edge.config = bootstrap(2)
        await credential.certified.wait()
    assert name not in [hub.pinned["bootstrap:abc002"]]


@virtual
async def test_a_new_bootstrap_credential_is_taken_up_while_an_old_one_waits() -> None:
    hub = IssuingHub(manual=True)
    edge = Edge(hub, bootstrap(1))
    async with edge.running() as credential:
        await days(1)
        edge.config = bootstrap(2)
        await asyncio.sleep(400)
        assert hub.asked_by == ["bootstrap:abc001", "bootstrap:abc002"]
        hub.approve(hub.pinned["bootstrap:abc002"])
        await credential.certified.wait()


@virtual
async def test_a_bootstrap_credential_is_left_alone_while_the_certificate_works() -> None:
    hub = IssuingHub()
    edge = Edge(hub, bootstrap(1))
    async with edge.running() as credential:
        await credential.certified.wait()
    edge.config = bootstrap(2)
    async with edge.running():
        await days(6)
    assert hub.asked_by == ["bootstrap:abc001", "certificate"]


@virtual
async def test_a_hub_that_names_its_authorities_is_believed_and_others_are_not_from_then_on() -> (
    None
):
    hub = IssuingHub()
    hub.extensions.append("ca-bundle")
    hub.authorities = authority()
    edge = Edge(hub, bootstrap(1))
    async with edge.running() as credential:
        await credential.certified.wait()
        await asyncio.sleep(1)
        assert edge.main.config.ca == hub.authorities
        # It changes over: who renews knows both, who renews again the new one alone.
        for following in (hub.authorities + authority(), authority()):
            hub.authorities = following
            await days(5)
            assert edge.main.config.ca == following
            assert edge.store.kept.ca.encode() == following
        hub.authorities = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
        await days(5)
        assert edge.main.config.ca == following
    async with edge.running() as credential:
        await credential.certified.wait()
        assert edge.main.config.ca == following


@virtual
async def test_an_edge_whose_hub_was_replaced_goes_by_its_new_kubeconfig() -> None:
    hub = IssuingHub()
    hub.extensions.append("ca-bundle")
    hub.authorities = authority()
    edge = Edge(hub, bootstrap(1))
    async with edge.running() as credential:
        await credential.certified.wait()
        await asyncio.sleep(1)
        hub.vouched_by = hub.authorities = new = authority()
        for config in (bootstrap(1), bootstrap(2)):  # one is spent, the other knows the old hub
            edge.config = config
            with pytest.raises(TransportError):
                await edge.gate.request("GET", "/mailbox")
            await asyncio.sleep(100)
            assert hub.asked_by == ["bootstrap:abc001"]
        edge.config = replace(bootstrap(3), ca=new)
        with pytest.raises(TransportError):
            await edge.gate.request("GET", "/mailbox")
        await asyncio.sleep(1000)
        assert (await edge.gate.request("GET", "/mailbox")).status == 404
        assert hub.asked_by == ["bootstrap:abc001", "bootstrap:abc003"]
        assert edge.main.config.ca == new


@virtual
async def test_an_unreadable_kubeconfig_does_not_stop_the_search() -> None:
    hub = IssuingHub(manual=True)
    edge = Edge(hub, bootstrap(1))
    credential = edge.credential()

    def unreadable() -> ClientConfig:
        raise KubeconfigError("half written")

    enrolment = credential._enrolment
    enrolment.terms = replace(enrolment.terms, read=unreadable)
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(credential.run())
        await days(0.1)
        hub.approve(next(iter(hub.requests)))
        await credential.certified.wait()
        task.cancel()


@virtual
async def test_two_processes_of_one_edge_share_one_key() -> None:
    hub = IssuingHub(manual=True)
    edge = Edge(hub, bootstrap(1))
    async with edge.running(1) as one, edge.running(2) as other:
        await days(1)
        assert len(hub.requests) == 1
        hub.approve(next(iter(hub.requests)))
        await one.certified.wait()
        await other.certified.wait()
        await days(30)
        assert one.certified.is_set()
        assert other.certified.is_set()
    # Whoever is second takes what the first has got.
    assert len(hub.requests) <= 2 + 30 / (7 * 0.56)


@virtual
async def test_an_account_of_the_previous_version_is_exchanged_once_the_hub_can(
    tmp_path: Path,
) -> None:
    hub = IssuingHub()
    hub.extensions = []
    given = account_token(HUB_START, 7 * DAY)
    edge = Edge(hub, replace(CONFIG, token=given))
    edge.account = HubToken(given, tmp_path / "hub-token")
    os.utime(edge.account.path, (HUB_START.timestamp(), HUB_START.timestamp()))
    async with edge.running() as credential:
        await asyncio.sleep(60)
        assert edge.gate.is_open
        assert not hub.requests
        hub.extensions = ["edge-client-signer"]
        await days(0.1)
        assert credential.certified.is_set()
        assert edge.store.kept.edge == EDGE.user
        assert edge.main.config.token == ""
        assert edge.main.config.token_file is None
        assert not (tmp_path / "hub-token").exists()
        await days(10)
    assert hub.asked_by == ["account", "certificate", "certificate"]
    assert not any("serviceaccounts" in sent for sent in edge.main.sent)


@virtual
async def test_an_account_that_the_hub_no_longer_knows_is_reported(tmp_path: Path) -> None:
    hub = IssuingHub()
    hub.refuse.add("account")
    given = account_token(HUB_START, 7 * DAY)
    edge = Edge(hub, replace(CONFIG, token=given))
    edge.account = HubToken(given, tmp_path / "hub-token")
    async with edge.running() as credential:
        await days(1)
        assert "the hub refuses this edge" in credential.message
        edge.config = bootstrap(1)
        await credential.certified.wait()
        assert credential.message == ""


@virtual
async def test_what_keeps_an_edge_from_its_hub_is_said_while_it_does() -> None:
    hub = IssuingHub()
    hub.hangs_up_on = {"bootstrap:abc001"}
    edge = Edge(hub, bootstrap(1))
    async with edge.running() as credential:
        await days(0.1)
        assert credential.message.startswith("no certificate yet: ")
        hub.hangs_up_on = set()
        await credential.certified.wait()
        assert credential.message == ""


@virtual
async def test_a_certificate_for_another_key_is_not_used() -> None:
    hub = IssuingHub(manual=True)
    hub.signs = False
    edge = Edge(hub, bootstrap(1))
    async with edge.running() as credential:
        await asyncio.sleep(60)
        (name,) = hub.requests
        stranger = await make_key(EDGE, "x")
        wrong = hub.sign(stranger.request.encode())
        status = {"certificate": base64.b64encode(wrong).decode()}
        hub.requests[name]["status"] = status
        hub._touch(hub.requests[name])
        await asyncio.sleep(1)
        assert not credential.certified.is_set()
        assert edge.store.kept.certificate == ""


@virtual
async def test_a_kept_identity_that_is_damaged_needs_a_new_one() -> None:
    hub = IssuingHub()
    edge = Edge(hub, bootstrap(1))
    edge.store.kept = EdgeIdentity(
        edge=EDGE.user,
        certificate="-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        key="nothing",
        received=datetime(2030, 1, 1, tzinfo=UTC),
        lifetime_seconds=600,
    )
    async with edge.running() as credential:
        await credential.certified.wait()
    assert hub.asked_by == ["bootstrap:abc001"]
