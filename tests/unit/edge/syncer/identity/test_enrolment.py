"""Who an edge is, by what it comes, and what it keeps of that."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skerry.api.edge_identity import EdgeName
from skerry.edge.syncer.identity.certificate_request import RequestRefused
from skerry.edge.syncer.identity.enrolment import EdgeTerms, Enrolment, HubWays
from skerry.logic.fleet.syncing.certificates import EdgeIdentity, Way
from skerry.runtime.client import Client
from skerry.runtime.kubeconfig import ClientConfig
from skerry.wire.kubeconfig import KubeconfigError
from tests.kit.chain.issuing_hub import EDGE, CredentialTransport, IssuingHub, make_key
from tests.kit.sim.loop import virtual

SERVER = f"https://hub/clusters/{EDGE.mailbox}"


def config(number: int = 1, **fields: object) -> ClientConfig:
    made = ClientConfig(server=SERVER, token=f"skerry-edge.abc00{number}.{'s' * 43}")
    return replace(made, **fields)  # type: ignore[arg-type]


class Store:
    """Keeps the last identity, as a file would."""

    def __init__(self) -> None:
        self.kept = EdgeIdentity()
        self.saves: list[EdgeIdentity] = []

    async def load(self) -> EdgeIdentity:
        return self.kept

    async def save(self, identity: EdgeIdentity) -> None:
        self.kept = identity
        self.saves.append(identity)


class Stage:
    """An edge with a hub, whose kubeconfig a person may change."""

    def __init__(self, found: ClientConfig | None = None, *, uid: str = EDGE.uid) -> None:
        self.hub, self.store = IssuingHub(), Store()
        self.found = found or config()
        self.main = CredentialTransport(self.hub, replace(self.found, token="account"))
        self.identified: list[ClientConfig] = []
        self.unreadable = False
        ways = HubWays(
            Client(self.main, clock=self.hub.clock),
            self._identify,
            lambda chosen: CredentialTransport(self.hub, chosen),
        )
        terms = EdgeTerms("florin", EDGE.mailbox, uid, self._read)
        self.enrolment = Enrolment(terms, self.found, self.store, ways, make_key)

    def _identify(self, chosen: ClientConfig) -> None:
        self.identified.append(chosen)
        self.main.config = chosen

    def _read(self) -> ClientConfig:
        if self.unreadable:
            raise KubeconfigError("not YAML")
        return self.found

    async def obtain(self, way: Way = Way.REDEEM) -> None:
        await self.enrolment.obtain(way, lambda: None)


@virtual
async def test_a_bootstrap_credential_becomes_a_certificate_and_is_redeemed_once() -> None:
    stage = Stage()
    assert not stage.enrolment.has_certificate
    assert stage.enrolment.has_new_bootstrap
    await stage.obtain()
    assert stage.enrolment.has_certificate
    assert not stage.enrolment.has_new_bootstrap
    assert stage.enrolment.asked in stage.hub.requests
    assert stage.hub.asked_by == ["bootstrap:abc001"]
    stage.enrolment.use()
    assert stage.identified[-1].certificate
    assert (stage.identified[-1].token, stage.identified[-1].token_file) == ("", None)


@virtual
async def test_the_key_is_kept_before_anybody_is_asked() -> None:
    stage = Stage()
    stage.hub.lost_answers = 1
    with pytest.raises(Exception, match="the answer was lost"):
        await stage.obtain()
    [pending] = stage.store.kept.pending
    # After a crash the same key is asked with: the credential accepts the first it has seen.
    again = Stage()
    again.hub.requests, again.store.kept = stage.hub.requests, stage.store.kept
    await again.enrolment.load()
    await again.obtain()
    assert list(again.hub.requests) == [pending.name]
    assert again.store.kept.pending == ()


@virtual
async def test_a_refused_request_is_not_asked_again_with_its_key() -> None:
    stage = Stage()
    stage.hub.manual = True

    def deny() -> None:
        stage.hub.approve(stage.enrolment.asked, "Denied")

    with pytest.raises(RequestRefused):
        await stage.enrolment.obtain(Way.REDEEM, deny)
    assert stage.store.kept.pending == ()


@virtual
async def test_a_kubeconfig_that_leads_elsewhere_or_cannot_be_read_changes_nothing() -> None:
    stage = Stage()
    await stage.obtain()
    stage.found = config(2, server="https://other")
    stage.enrolment.read_again()
    assert not stage.enrolment.has_new_bootstrap
    stage.unreadable = True
    stage.enrolment.read_again()
    assert not stage.enrolment.has_new_bootstrap
    stage.unreadable, stage.found = False, config(2)
    stage.enrolment.read_again()
    assert stage.enrolment.has_new_bootstrap


@virtual
async def test_what_another_process_kept_is_taken_up_but_not_what_was_dropped() -> None:
    stage = Stage()
    await stage.obtain()
    assert not await stage.enrolment.load()
    stage.enrolment.drop_certificate()
    assert not stage.enrolment.has_certificate
    assert not await stage.enrolment.load(), "the store still has the one that is of no use"
    assert not stage.enrolment.has_certificate
    other = Stage()
    await other.obtain()
    stage.store.kept = other.store.kept
    assert await stage.enrolment.load()
    assert stage.enrolment.has_certificate


@virtual
async def test_an_edge_of_the_previous_version_asks_its_mailbox_who_it_is() -> None:
    stage = Stage(uid="")
    await stage.obtain()
    assert stage.store.kept.edge == EdgeName(EDGE.mailbox, EDGE.uid).user
    assert any("logicalclusters" in sent for sent in stage.main.sent)


@virtual
async def test_whether_certificates_are_issued_is_asked_anew_each_time() -> None:
    stage = Stage()
    assert await stage.enrolment.is_offered()
    stage.hub.extensions = []
    assert not await stage.enrolment.is_offered()


@virtual
async def test_authorities_that_the_hub_names_are_kept_and_believed() -> None:
    stage = Stage()
    await stage.obtain()
    await stage.enrolment.learn_authorities()
    assert stage.store.kept.ca == "", "a hub that names none is known by the kubeconfig"
    stage.hub.extensions.append("ca-bundle")
    # Its own certificate will do for a text that can be read as authorities.
    stage.hub.authorities = stage.store.kept.certificate.encode()
    await stage.enrolment.learn_authorities()
    assert stage.store.kept.ca == stage.hub.authorities.decode()
    assert stage.identified[-1].ca == stage.hub.authorities


@virtual
async def test_whether_the_hub_hears_strangers_is_asked_without_a_credential() -> None:
    stage = Stage()
    await stage.obtain()
    assert await stage.enrolment.hears_strangers()
    stage.hub.hangs_up_on.add("stranger")
    assert not await stage.enrolment.hears_strangers()
