"""The agent's side of the network, over a socket to a keeper that a test plays."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skerry.edge.agent.pod_network import NetworkLost, NoNamespaces, PodNetwork, end_network
from skerry.edge.agent.processes import start_time
from skerry.edge.agent.runtime import CannotStart


class Keeper:
    """A process that stands for the keeper, and a thread that answers in its name."""

    def __init__(self, directory: Path) -> None:
        self.asked: list[dict[str, Any]] = []
        self.answers: dict[str, Any] = {}
        self.process = subprocess.Popen(["sleep", "100"], start_new_session=True)
        self.start = start_time(self.process.pid)
        record = json.dumps([self.process.pid, self.start])
        (directory / "keeper.json").write_text(record)
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(directory / "network.sock"))
        self._listening.listen()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        try:
            connection, _ = self._listening.accept()
        except OSError:
            return
        with connection:
            while line := connection.recv(4096):
                asked = json.loads(line)
                self.asked.append(asked)
                (kind, *_) = asked
                if kind in self.answers:
                    connection.sendall(json.dumps(self.answers[kind]).encode() + b"\n")
                    continue
                made = socket.socket(
                    socket.AF_INET, socket.SOCK_DGRAM if kind == "datagram" else socket.SOCK_STREAM
                )
                passed = [made.detach()] if kind in ("socket", "datagram") else []
                socket.send_fds(connection, [b"{}\n"], passed)
                for descriptor in passed:
                    os.close(descriptor)

    def end(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.process.kill()
        self.process.wait()
        self._thread.join(5)


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[Keeper]:
    made = Keeper(tmp_path)
    yield made
    made.end()


@pytest.fixture
async def network(tmp_path: Path, keeper: Keeper) -> Any:
    made = PodNetwork(tmp_path, "10.96.0.0/16")
    await made.start()
    yield made
    made.close()


async def test_the_keeper_of_an_earlier_agent_is_found_again(
    network: PodNetwork, keeper: Keeper
) -> None:
    keeper.answers["add"] = {"descriptor": 7}
    sandbox = network.attach("u1", "10.244.0.2")
    assert keeper.asked == [{"add": "u1", "address": "10.244.0.2"}]
    assert sandbox.user == f"/proc/{keeper.process.pid}/ns/user"
    assert sandbox.network == f"/proc/{keeper.process.pid}/fd/7"
    assert sandbox.epoch == keeper.start


async def test_a_pod_of_the_machines_network_has_everything_but_that(
    network: PodNetwork, keeper: Keeper
) -> None:
    assert network.outside().network == ""
    assert network.outside().epoch == keeper.start
    assert keeper.asked == []


async def test_what_the_keeper_refuses_cannot_start_and_a_removal_is_harmless(
    network: PodNetwork, keeper: Keeper
) -> None:
    keeper.answers["add"] = keeper.answers["remove"] = {"failure": "no more addresses"}
    with pytest.raises(CannotStart, match="no more addresses"):
        network.attach("u1", "10.244.0.2")
    network.detach("u1")
    assert keeper.asked[-1] == {"remove": "u1"}


async def test_sockets_that_are_passed_do_not_block_and_no_container_inherits_them(
    network: PodNetwork,
) -> None:
    with network.stream("u1") as stream, network.datagram_socket() as datagrams:
        assert (stream.type, datagrams.type) == (socket.SOCK_STREAM, socket.SOCK_DGRAM)
        for made in (stream, datagrams):
            assert not made.getblocking()
            assert not os.get_inheritable(made.fileno())


async def test_listening_takes_a_place_once(network: PodNetwork) -> None:
    with network.listening("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.close()
        await writer.wait_closed()
        assert reader is not None
        with pytest.raises(OSError, match="in use"):
            network.listening("127.0.0.1", port)
    with network.datagrams("127.0.0.1", 0) as bound:
        assert bound.getsockname()[1]


async def test_a_network_that_is_not_up_or_has_ended_says_so(
    tmp_path: Path, network: PodNetwork, keeper: Keeper
) -> None:
    fresh = PodNetwork(tmp_path, "10.96.0.0/16")
    with pytest.raises(CannotStart, match="is not up"):
        fresh.attach("u1", "10.244.0.2")
    fresh.detach("u1")
    network.close()
    with pytest.raises(CannotStart, match="is not up"):
        network.stream("u1")


async def test_a_keeper_that_ends_is_noticed(network: PodNetwork, keeper: Keeper) -> None:
    waiting = asyncio.create_task(network.lost())
    await asyncio.sleep(0)
    assert not waiting.done()
    keeper.process.kill()
    keeper.process.wait()
    with pytest.raises(NetworkLost, match="starting again"):
        await waiting


async def test_a_keeper_that_does_not_answer_is_none(tmp_path: Path, keeper: Keeper) -> None:
    (tmp_path / "network.sock").unlink()
    with pytest.raises(NoNamespaces, match="does not answer"):
        await PodNetwork(tmp_path, "10.96.0.0/16").start()


async def test_an_edge_that_ends_ends_its_keeper_and_nobody_elses(
    tmp_path: Path, keeper: Keeper
) -> None:
    (tmp_path / "other").mkdir()
    end_network(tmp_path / "other")
    record = json.dumps([keeper.process.pid, (keeper.start or 0) - 1])
    (tmp_path / "other" / "keeper.json").write_text(record)
    end_network(tmp_path / "other")  # its number is another process's by now
    assert keeper.process.poll() is None
    end_network(tmp_path)
    assert keeper.process.wait() == -9


async def test_a_recorded_keeper_that_has_ended_is_not_asked(
    tmp_path: Path, keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new one is started in its place; here that fails, which says that it was tried."""
    keeper.process.kill()
    keeper.process.wait()
    monkeypatch.setattr("skerry.edge.agent.pod_network._KEEPER", "/no/such/keeper.py")
    with pytest.raises(NoNamespaces, match="ended without a word"):
        await PodNetwork(tmp_path, "10.96.0.0/16").start()


async def test_a_record_cut_short_is_none(tmp_path: Path) -> None:
    (tmp_path / "keeper.json").write_text("[12")
    end_network(tmp_path)
