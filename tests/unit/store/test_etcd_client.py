"""Which member is asked, when it is asked again, and what is said to be unknown."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import grpc
import pytest

from skerry.kit.clock import SystemClock
from skerry.store import etcd_messages as messages
from skerry.store.base import StoreError, Unavailable
from skerry.store.etcd_client import EtcdClient, EtcdOptions, OutcomeUnknown, RevisionGone
from tests.kit.store.tiny_etcd import Fault, TinyEtcd, client_of, tiny_etcd

PUT = messages.txn_request([], [messages.put_operation(b"a", b"1")])
GET = messages.range_request(b"a")


@pytest.fixture
async def etcd() -> AsyncIterator[TinyEtcd]:
    async with tiny_etcd() as served:
        yield served


async def test_a_read_is_asked_again_until_it_is_answered(etcd: TinyEtcd) -> None:
    etcd.put(a=b"1")
    etcd.spoil("Range", Fault(grpc.StatusCode.UNAVAILABLE, "the member stops"))
    async with client_of(etcd.url) as client:
        found = await client.range(GET)
    assert [entry.value for entry in found.entries] == [b"1"]
    assert etcd.calls == ["Range", "Range"]


async def test_a_write_whose_answer_is_lost_is_never_sent_twice(etcd: TinyEtcd) -> None:
    etcd.spoil("Txn", Fault(grpc.StatusCode.UNAVAILABLE, "connection reset", done=True))
    async with client_of(etcd.url) as client:
        with pytest.raises(OutcomeUnknown, match=r"UNAVAILABLE: connection reset.*unknown"):
            await client.transact(PUT)
    assert etcd.calls == ["Txn"]


@pytest.mark.parametrize("refusal", ["etcdserver: no leader", "etcdserver: too many requests"])
async def test_a_write_that_etcd_did_not_take_is_sent_again(etcd: TinyEtcd, refusal: str) -> None:
    etcd.spoil("Txn", Fault(grpc.StatusCode.UNAVAILABLE, refusal))
    async with client_of(etcd.url) as client:
        assert (await client.transact(PUT)).succeeded
    assert etcd.calls == ["Txn", "Txn"]
    assert etcd.keys[b"a"].value == b"1"


async def test_a_request_that_will_never_do_is_refused_at_once(etcd: TinyEtcd) -> None:
    etcd.spoil("Range", Fault(grpc.StatusCode.INVALID_ARGUMENT, "key is not provided"))
    async with client_of(etcd.url) as client:
        with pytest.raises(StoreError, match=r"refused the request .*key is not provided"):
            await client.range(GET)
    assert etcd.calls == ["Range"]


async def test_a_full_etcd_is_named_and_the_write_did_not_happen(etcd: TinyEtcd) -> None:
    full = Fault(grpc.StatusCode.RESOURCE_EXHAUSTED, "etcdserver: mvcc: database space exceeded")
    etcd.spoil("Txn", full)
    async with client_of(etcd.url) as client:
        with pytest.raises(Unavailable, match="no space left; the write did not happen") as raised:
            await client.transact(PUT)
    assert not isinstance(raised.value, OutcomeUnknown)


async def test_a_compacted_revision_is_gone_and_compacting_it_again_is_fine(etcd: TinyEtcd) -> None:
    etcd.put(a=b"1")
    etcd.put(a=b"2")
    async with client_of(etcd.url) as client:
        await client.compact(3)
        with pytest.raises(RevisionGone):
            await client.range(messages.range_request(b"a", revision=2))
        await client.compact(2)
    assert etcd.compacted == 3


async def test_several_ranges_are_of_one_moment(etcd: TinyEtcd) -> None:
    etcd.put(a=b"1", b=b"2")
    async with client_of(etcd.url) as client:
        first, second = await client.read(GET, messages.range_request(b"b"))
    assert (first.entries[0].value, second.entries[0].value) == (b"1", b"2")
    assert etcd.calls == ["Txn"]


async def test_the_member_after_the_one_that_failed_is_asked_next(etcd: TinyEtcd) -> None:
    async with tiny_etcd() as other, client_of(etcd.url, other.url) as client:
        etcd.spoil("Range", Fault(grpc.StatusCode.UNAVAILABLE, "the member stops"))
        await client.range(GET)
        await client.range(GET)
        assert (etcd.calls, other.calls) == (["Range"], ["Range", "Range"])


async def test_a_closed_client_says_so_and_does_not_look_cancelled(etcd: TinyEtcd) -> None:
    async with client_of(etcd.url) as client:
        await client.range(GET)
    with pytest.raises(Unavailable, match="closed"):
        await client.range(GET)


async def test_a_caller_who_gives_up_is_cancelled(etcd: TinyEtcd) -> None:
    async with client_of(etcd.url) as client:
        asking = asyncio.create_task(client.range(GET))
        await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking


# -- tokens ----------------------------------------------------------------------------------------


async def test_a_token_is_fetched_once_and_again_when_it_has_expired() -> None:
    async with (
        tiny_etcd(password="s3cret") as etcd,
        client_of(etcd.url, user="skerry", password="s3cret") as client,
    ):
        await client.transact(PUT)
        await client.range(GET)
        assert etcd.calls == ["Authenticate", "Txn", "Range"]
        etcd.tokens.clear()
        etcd.calls.clear()
        assert (await client.transact(PUT)).succeeded
        assert etcd.calls == ["Txn", "Authenticate", "Txn"]


async def test_a_wrong_password_is_an_answer_and_not_tried_again() -> None:
    async with (
        tiny_etcd(password="s3cret") as etcd,
        client_of(etcd.url, user="skerry", password="guess") as client,
    ):
        with pytest.raises(StoreError, match="authentication failed") as raised:
            await client.range(GET)
        assert not isinstance(raised.value, Unavailable)
        assert etcd.calls == ["Authenticate"]


def test_the_password_is_not_printed() -> None:
    assert "s3cret" not in repr(EtcdOptions(("a",), user="skerry", password="s3cret"))


# -- watches ---------------------------------------------------------------------------------------


async def watched(client: EtcdClient, start: int, count: int) -> list[bytes]:
    """Return the values of the first *count* events from revision *start* on."""
    values: list[bytes] = []
    async with (
        client.watch(messages.watch_request(b"a", b"b", start)) as stream,
        aclosing(stream),  # type: ignore[type-var]
    ):
        async for message in stream:
            values += [change.entry.value for change in message.changes]
            if len(values) >= count or message.canceled:
                return values
    return values


async def test_a_watch_brings_the_past_and_goes_on(etcd: TinyEtcd) -> None:
    etcd.put(a=b"1")
    async with client_of(etcd.url) as client:
        watching = asyncio.create_task(watched(client, 2, 2))
        await etcd.watching.wait()
        etcd.put(a=b"2")
        assert await watching == [b"1", b"2"]


async def test_a_watch_that_ends_is_unavailable(etcd: TinyEtcd) -> None:
    async with client_of(etcd.url) as client:
        watching = asyncio.create_task(watched(client, 2, 1))
        await etcd.watching.wait()
        etcd.break_watches()
        with pytest.raises(Unavailable, match="etcd ended the watch"):
            await watching


async def test_a_watch_that_cannot_fetch_its_token_is_unavailable_for_now() -> None:
    async with (
        tiny_etcd(password="s3cret") as etcd,
        client_of(etcd.url, user="skerry", password="s3cret") as client,
    ):
        etcd.spoil("Authenticate", Fault(grpc.StatusCode.UNAVAILABLE, "no leader"))
        with pytest.raises(Unavailable, match="no leader"):
            await watched(client, 2, 1)
        etcd.put(a=b"1")
        assert await watched(client, 2, 1) == [b"1"]


async def test_a_watch_whose_token_has_expired_fetches_another_for_the_next() -> None:
    async with (
        tiny_etcd(password="s3cret") as etcd,
        client_of(etcd.url, user="skerry", password="s3cret") as client,
    ):
        await client.range(GET)
        etcd.tokens.clear()
        etcd.put(a=b"1")
        assert await watched(client, 2, 1) == []
        assert await watched(client, 2, 1) == [b"1"]


# -- addresses -------------------------------------------------------------------------------------


@pytest.mark.parametrize("server", ["ftp://host:1", "http://", "https://:2379"])
async def test_what_is_no_address_is_refused_with_an_example(server: str) -> None:
    with pytest.raises(StoreError, match="want http://host:port or https://host:port"):
        EtcdClient(EtcdOptions((server,)), SystemClock())


async def test_credentials_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    options = EtcdOptions(("https://localhost:2379",), ca=tmp_path / "missing.pem")
    with pytest.raises(StoreError, match=r"credentials cannot be read: .*missing\.pem"):
        EtcdClient(options, SystemClock())
