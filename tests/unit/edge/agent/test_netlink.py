"""Interfaces, addresses and routes, in a network namespace that ends with the test."""

from __future__ import annotations

from tests.kit.agent.apart import NETWORK, apart

ROUTER = """
import errno, socket
from skerry.edge.agent import netlink

def refused(action, *arguments):
    try:
        action(*arguments)
    except OSError as error:
        return errno.errorcode[error.errno]
    return ""
"""


def test_an_address_that_was_added_can_be_listened_on_and_no_other_can() -> None:
    found = apart(
        ROUTER
        + """
netlink.set_up("lo")
netlink.add_address("lo", "169.254.1.1")
listening = socket.socket()
listening.bind(("169.254.1.1", 80))
say(refused(socket.socket().bind, ("169.254.1.2", 80)))
""",
        flags=NETWORK,
    )
    assert found == "EADDRNOTAVAIL"


def test_all_addresses_of_a_local_network_are_our_own() -> None:
    found = apart(
        ROUTER
        + """
netlink.set_up("lo")
before = refused(socket.socket().bind, ("10.96.3.7", 80))
netlink.add_local("10.96.0.0/16")
listening = socket.socket()
listening.bind(("10.96.3.7", 80))
listening.listen()
socket.create_connection(("10.96.3.7", 80)).close()
say([before, refused(socket.socket().bind, ("10.97.0.1", 80))])
""",
        flags=NETWORK,
    )
    assert found == ["EADDRNOTAVAIL", "EADDRNOTAVAIL"]


def test_a_pair_leads_into_another_namespace_and_routes_lead_over_it() -> None:
    found = apart(
        ROUTER
        + """
router = os.open("/proc/self/ns/net", os.O_RDONLY)
namespaces.unshare(namespaces.CLONE_NEWNET)
pod = os.open("/proc/self/ns/net", os.O_RDONLY)
namespaces.join_descriptor(router)
netlink.add_pair("pod1", "eth0", pod)
netlink.add_address("pod1", "169.254.1.1")
netlink.set_up("pod1")
netlink.add_route("10.1.0.5/32", "pod1")
listening = socket.socket()
listening.bind(("169.254.1.1", 80))
listening.listen()
namespaces.join_descriptor(pod)
netlink.add_address("eth0", "10.1.0.5")
netlink.set_up("eth0")
inside = [name for _, name in socket.if_nameindex()]
netlink.add_route("169.254.1.1/32", "eth0")
before = refused(socket.create_connection, ("203.0.113.1", 80), 0.2)
netlink.add_route("0.0.0.0/0", "eth0", "169.254.1.1")
connection = socket.create_connection(("169.254.1.1", 80), 2)
namespaces.join_descriptor(router)
_, peer = listening.accept()
netlink.remove_link("pod1")
outside = [name for _, name in socket.if_nameindex()]
namespaces.join_descriptor(pod)
say([inside, before, peer[0], outside, [name for _, name in socket.if_nameindex()]])
""",
        flags=NETWORK,
    )
    inside, before, peer, outside, left = found
    assert "eth0" in inside
    assert before == "ENETUNREACH"
    assert peer == "10.1.0.5"
    assert "pod1" not in outside
    assert "eth0" not in left  # the other end goes with it


def test_what_the_kernel_refuses_is_an_error_that_names_the_request() -> None:
    found = apart(
        ROUTER
        + """
def said(action, *arguments):
    try:
        action(*arguments)
    except OSError as error:
        return str(error)
pod = os.open("/proc/self/ns/net", os.O_RDONLY)
netlink.add_pair("pod1", "pod2", pod)
say([said(netlink.add_pair, "pod1", "eth0", pod), said(netlink.set_up, "none")])
""",
        flags=NETWORK,
    )
    assert "netlink request 16" in found[0]
    assert "File exists" in found[0]
    assert "no interface with this name" in found[1]
