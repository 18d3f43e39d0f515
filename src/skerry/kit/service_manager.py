"""Notifies systemd, or whoever speaks its protocol, of what a service is about to do.

The protocol is one datagram of ``KEY=value`` lines to the socket that ``NOTIFY_SOCKET`` names. A
service of ``Type=notify`` counts as started when it says ``READY=1``, so that what is ordered after
it finds it at work.
"""

from __future__ import annotations

import socket

READY = "READY=1"


def notify(address: str, *lines: str) -> None:
    """Send *lines* to the socket at *address*; nobody listens where that is empty.

    A name that begins with ``@`` is one of the kernel's own (an abstract socket). Whoever has
    started us may be gone: that is no reason for a service to fail.
    """
    if not address:
        return
    name = f"\0{address[1:]}" if address.startswith("@") else address
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        try:
            sender.sendto("\n".join(lines).encode(), name)
        except OSError:
            return
