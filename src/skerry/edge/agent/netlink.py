"""The few requests to the kernel's routing that a pod network takes (rtnetlink).

Each function opens a socket in the network namespace of the moment, asks once and raises
``OSError`` when the kernel refuses. Standard library only; see ``namespaces``.
"""

from __future__ import annotations

import os
import socket
import struct
from ipaddress import IPv4Network

_NEW_LINK, _DELETE_LINK, _NEW_ADDRESS, _NEW_ROUTE = 16, 17, 20, 24
_ERROR = 2
_REQUEST, _ACKNOWLEDGE, _EXCLUSIVE, _CREATE = 0x1, 0x4, 0x200, 0x400
_UP = 1
_INTERFACE_NAME, _LINK_INFO, _NAMESPACE = 3, 18, 28
_INFO_KIND, _INFO_DATA, _PEER = 1, 2, 1
_ADDRESS, _LOCAL_ADDRESS = 1, 2
_DESTINATION, _OUTGOING, _GATEWAY = 1, 4, 5
_MAIN_TABLE, _LOCAL_TABLE = 254, 255
_STATIC = 4
_EVERYWHERE, _ON_LINK, _ON_HOST = 0, 253, 254
_UNICAST, _LOCAL = 1, 2


def set_up(name: str) -> None:
    """Switch an interface on."""
    _ask(_NEW_LINK, _link(socket.if_nametoindex(name), _UP, _UP))


def add_pair(name: str, peer: str, namespace: int) -> None:
    """Make two interfaces that lead to each other: one here, one in an open namespace."""
    other = _link() + _attribute(_INTERFACE_NAME, peer.encode() + b"\0")
    other += _attribute(_NAMESPACE, struct.pack("=I", namespace))
    information = _attribute(_INFO_KIND, b"veth")
    information += _attribute(_INFO_DATA, _attribute(_PEER, other))
    message = _link() + _attribute(_INTERFACE_NAME, name.encode() + b"\0")
    _ask(_NEW_LINK, message + _attribute(_LINK_INFO, information), _CREATE | _EXCLUSIVE)


def remove_link(name: str) -> None:
    """Remove an interface, and its peer with it."""
    _ask(_DELETE_LINK, _link(socket.if_nametoindex(name)))


def add_address(name: str, address: str) -> None:
    """Give an interface an address of its own."""
    packed = socket.inet_aton(address)
    message = struct.pack("=BBBBI", socket.AF_INET, 32, 0, 0, socket.if_nametoindex(name))
    message += _attribute(_LOCAL_ADDRESS, packed) + _attribute(_ADDRESS, packed)
    _ask(_NEW_ADDRESS, message, _CREATE)


def add_route(destination: str, name: str, gateway: str = "") -> None:
    """Send what is for *destination* out by an interface, to a gateway if one is given."""
    scope = _EVERYWHERE if gateway else _ON_LINK
    _ask_route(destination, name, _MAIN_TABLE, scope, _UNICAST, gateway)


def add_local(destination: str) -> None:
    """Take every address of *destination* for this namespace's own."""
    _ask_route(destination, "lo", _LOCAL_TABLE, _ON_HOST, _LOCAL)


def _ask_route(
    destination: str, name: str, table: int, scope: int, kind: int, gateway: str = ""
) -> None:
    network = IPv4Network(destination)
    message = struct.pack(
        "=8BI", socket.AF_INET, network.prefixlen, 0, 0, table, _STATIC, scope, kind, 0
    )
    if network.prefixlen:
        message += _attribute(_DESTINATION, network.network_address.packed)
    if gateway:
        message += _attribute(_GATEWAY, socket.inet_aton(gateway))
    message += _attribute(_OUTGOING, struct.pack("=I", socket.if_nametoindex(name)))
    _ask(_NEW_ROUTE, message, _CREATE | _EXCLUSIVE)


def _link(index: int = 0, flags: int = 0, change: int = 0) -> bytes:
    return struct.pack("=BxHiII", socket.AF_UNSPEC, 0, index, flags, change)


def _attribute(kind: int, value: bytes) -> bytes:
    size = 4 + len(value)
    return struct.pack("=HH", size, kind) + value + b"\0" * (-size % 4)


def _ask(kind: int, message: bytes, flags: int = 0) -> None:
    """Send one request and wait for the kernel's word."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as asking:
        asking.bind((0, 0))
        header = struct.pack(
            "=IHHII", 16 + len(message), kind, _REQUEST | _ACKNOWLEDGE | flags, 1, 0
        )
        asking.send(header + message)
        answer = asking.recv(65536)
    if struct.unpack_from("=H", answer, 4)[0] == _ERROR:
        number = -struct.unpack_from("=i", answer, 16)[0]
        if number:
            raise OSError(number, f"netlink request {kind}: {os.strerror(number)}")
