"""The keeper's namespaces, in a network namespace that ends with the test."""

from __future__ import annotations

import pytest

from skerry.edge.agent.network_keeper import GATEWAY, _apart
from skerry.edge.agent.pod_network import GATEWAY as AGENTS_GATEWAY
from tests.kit.agent.apart import apart

ALONE = "namespaces.CLONE_NEWNET | namespaces.CLONE_NEWNS"
KEEPER = """
import socket
from skerry.edge.agent.network_keeper import Keeper
# Settings of the network are this namespace's in a /proc and /sys that were mounted in it.
keeper = Keeper()
keeper.prepare(["10.96.0.0/16"])
def listening(uid, address, port):
    made = keeper.socket(uid, socket.SOCK_STREAM)
    made.bind((address, port))
    made.listen()
    return made
def connected(uid, address, port):
    made = keeper.socket(uid, socket.SOCK_STREAM)
    made.settimeout(2)
    try:
        made.connect((address, port))
    except OSError as error:
        return type(error).__name__
    return made.getsockname()[0]
"""


def test_agent_and_keeper_agree_on_the_gateway() -> None:
    assert GATEWAY == AGENTS_GATEWAY


def test_pods_reach_the_router_services_and_each_other_by_their_addresses() -> None:
    found = apart(
        KEEPER
        + """
keeper.add("a", "10.244.0.2")
keeper.add("b", "10.244.0.3")
kept = [
    listening("", "169.254.1.1", 3128),
    listening("", "10.96.0.10", 80),
    listening("b", "10.244.0.3", 8080),
]
say([
    connected("a", "169.254.1.1", 3128),
    connected("a", "10.96.0.10", 80),
    connected("a", "10.244.0.3", 8080),
    connected("", "10.244.0.3", 8080) != "",
    connected("a", "10.244.0.3", 81),
])
""",
        flags=ALONE,
    )
    assert found == ["10.244.0.2", "10.244.0.2", "10.244.0.2", True, "ConnectionRefusedError"]


def test_a_pod_has_one_namespace_however_often_it_is_asked_for_and_none_when_removed() -> None:
    found = apart(
        KEEPER
        + """
first = keeper.answer({"add": "a", "address": "10.244.0.2"})
again = keeper.answer({"add": "a", "address": "10.244.0.2"})
links = lambda: sorted(name for _, name in socket.if_nameindex())
before = links()
keeper.answer({"remove": "a"})
keeper.answer({"remove": "a"})
unknown, passed = keeper.answer({"socket": "a"})
say([first == again, before, links(), unknown, passed])
""",
        flags=ALONE,
    )
    same, before, after, unknown, passed = found
    assert same
    assert set(before) - set(after) == {"pod1"}
    assert (unknown, passed) == ({"failure": "no network for pod a"}, [])


def test_a_pod_that_could_not_be_connected_leaves_nothing_and_the_router_where_it_was() -> None:
    found = apart(
        KEEPER
        + """
keeper.add("a", "10.244.0.2")
links = lambda: sorted(name for _, name in socket.if_nameindex())
before, where = links(), os.readlink("/proc/self/ns/net")
try:
    keeper.add("b", "10.244.0.2")  # the route is taken
except OSError as error:
    failure = str(error)
say([failure, before == links(), where == os.readlink("/proc/self/ns/net")])
""",
        flags=ALONE,
    )
    failure, same_links, same_place = found
    assert "File exists" in failure
    assert same_links
    assert same_place


def test_sockets_are_passed_of_the_kind_and_the_namespace_asked_for() -> None:
    found = apart(
        KEEPER
        + """
keeper.add("a", "10.244.0.2")
def passed(asked):
    _, (descriptor,) = keeper.answer(asked)
    made = socket.socket(fileno=descriptor)
    kind = made.type == socket.SOCK_STREAM
    try:
        made.bind(("10.244.0.2", 0))
    except OSError:
        return [kind, False]
    return [kind, True]
say([passed({"socket": "a"}), passed({"socket": ""}), passed({"datagram": ""})])
""",
        flags=ALONE,
    )
    assert found == [[True, True], [True, False], [False, False]]


def test_what_fails_in_a_process_apart_is_raised_here() -> None:
    failed = apart(
        """
from skerry.edge.agent.network_keeper import _apart
def fail():
    raise OSError("nobody may mount here")
try:
    _apart(fail)
except OSError as error:
    say(str(error))
"""
    )
    assert failed == "nobody may mount here"


@pytest.mark.parametrize("value", [1, 2])
def test_what_happens_apart_changes_nothing_here(value: int) -> None:
    changed: list[int] = []
    _apart(lambda: changed.append(value))
    assert changed == []
