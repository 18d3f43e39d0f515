"""One certificate: requested once, waited for, refused, or given up."""

from __future__ import annotations

import asyncio

import pytest

from skerry.api.errors import ApiError
from skerry.edge.syncer.identity.certificate_request import (
    NoLongerWanted,
    RequestRefused,
    certificate_for,
    requested,
)
from skerry.logic.fleet.syncing.certificates import PendingRequest, Verdict
from skerry.runtime.client import Client
from skerry.runtime.kubeconfig import ClientConfig
from skerry.runtime.transport import TransportError
from tests.kit.chain.issuing_hub import EDGE, CredentialTransport, IssuingHub, make_key
from tests.kit.sim.loop import virtual

BOOTSTRAP = ClientConfig(server="https://hub", token=f"skerry-edge.abc001.{'s' * 43}")


class Asking:
    """A request under way, and how often somebody was said to have to approve."""

    def __init__(self, hub: IssuingHub, pending: PendingRequest) -> None:
        self.hub, self.pending = hub, pending
        self.transport = CredentialTransport(hub, BOOTSTRAP)
        self.client = Client(self.transport, clock=hub.clock)
        self.waits = 0
        self.is_wanted = True

    def _waiting(self) -> None:
        self.waits += 1

    def _wanted(self) -> bool:
        return self.is_wanted

    def begin(self) -> asyncio.Task[Verdict]:
        asked = certificate_for(
            self.client, self.pending, waiting=self._waiting, wanted=self._wanted
        )
        return asyncio.get_running_loop().create_task(asked)


async def asking(*, manual: bool = False) -> Asking:
    return Asking(IssuingHub(manual=manual), await make_key(EDGE, "redeem:abc001"))


@virtual
async def test_a_hub_that_approves_by_itself_answers_at_once() -> None:
    here = await asking()
    verdict = await here.begin()
    assert verdict.certificate.startswith(b"-----BEGIN CERTIFICATE-----")
    assert here.waits == 0


@virtual
async def test_a_person_may_take_days() -> None:
    here = await asking(manual=True)
    task = here.begin()
    await asyncio.sleep(3 * 86400)
    assert not task.done()
    assert here.waits > 100, "people are reminded now and then"
    here.hub.approve(here.pending.name)
    assert (await task).certificate


@virtual
async def test_who_asks_again_with_the_same_key_meets_what_became_of_the_first_time() -> None:
    here = await asking()
    first = await here.begin()
    again = await here.begin()
    assert again.certificate == first.certificate
    assert len(here.hub.requests) == 1


@virtual
async def test_a_credential_that_ended_may_still_read_what_it_asked_for() -> None:
    here = await asking(manual=True)
    await requested(here.client, here.pending)
    name = here.pending.name
    here.hub.pinned["bootstrap:abc001"] = "another key"
    assert (await requested(here.client, here.pending))["metadata"]["name"] == name
    other = await make_key(EDGE, "redeem:abc001")
    with pytest.raises(ApiError, match="another key"):
        await requested(here.client, other)


@virtual
@pytest.mark.parametrize("kind", ["Denied", "Failed"])
async def test_a_refusal_is_final(kind: str) -> None:
    here = await asking(manual=True)
    task = here.begin()
    await asyncio.sleep(1)
    here.hub.approve(here.pending.name, kind)
    with pytest.raises(RequestRefused, match=f"was {kind}: said so"):
        await task


@virtual
async def test_a_request_that_is_wanted_no_more_is_given_up() -> None:
    here = await asking(manual=True)
    task = here.begin()
    await asyncio.sleep(1)
    here.is_wanted = False
    with pytest.raises(NoLongerWanted):
        await asyncio.wait_for(task, 600)


@virtual
async def test_a_request_that_somebody_removed_is_to_be_made_again() -> None:
    here = await asking(manual=True)
    task = here.begin()
    await asyncio.sleep(1)
    here.hub.delete(here.pending.name)
    with pytest.raises(TransportError, match="is gone; it is made again"):
        await task


@virtual
async def test_an_approval_without_a_certificate_is_not_the_end() -> None:
    here = await asking(manual=True)
    here.hub.signs = False
    task = here.begin()
    await asyncio.sleep(1)
    here.hub.approve(here.pending.name)
    await asyncio.sleep(1)
    assert not task.done()
    here.hub.signs = True
    here.hub.approve(here.pending.name)
    assert (await task).certificate
