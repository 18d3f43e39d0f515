"""What the transport allows a client to do, and for how long."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """Limits of the transport. Every buffer and every wait of a connection has a bound here."""

    body_bytes: int = 3 * MIB
    """Largest request body. kube-apiserver's limit; etcd could not store much more."""

    header_bytes: int = 128 * 1024
    """Largest request head, target included. Bearer tokens and group lists fit many times."""

    url_bytes: int = 64 * 1024
    """Longest request target. Room for label selectors naming thousands of values."""

    header_seconds: float = 32.0
    """How long a head may take to arrive; kube-apiserver's figure against slow senders."""

    body_seconds: float = 60.0
    """How long a body may take to arrive; the default request timeout of kube-apiserver."""

    idle_seconds: float = 120.0
    """How long an unused connection is kept. Clients drop theirs after 90 s: let them be first,
    so that no request meets a connection we are closing."""

    stalled_seconds: float = 60.0
    """How long a peer may take nothing of what is being sent before the connection is cut."""

    linger_seconds: float = 1.0
    """How long to go on reading after refusing a request, so that the peer sees the answer
    instead of a reset."""

    connections: int = 50_000
    """Most connections at once; a further one gets 503 and is closed. Each of 20,000 edges has a
    stream and a connection for its heartbeats."""

    handshakes: int = 64
    """TLS handshakes under way at once; further connections wait. Where one address has more than
    its share of them, those are more by what it has too much."""

    waiting: int = 4096
    """Connections that wait for their handshake; further ones stay in the kernel's queue."""

    others_seconds: float = 0.0
    """How long connections that would have to wait are left to other processes that share the
    listening socket; 0 where there are none."""

    stranger_connections: int = 512
    """Connections of one address without valid credentials, handshakes included; a further one is
    closed at once. A client shows its credentials with its first request."""

    stranger_seconds: float = 20.0
    """How long an unused connection without valid credentials is kept."""

    arriving_bytes: int = 256 * MIB
    """How much of large bodies is held while they arrive, from everybody; one sender may have a
    quarter of it. Beyond that a body is refused with 429."""

    pipelined: int = 16
    """Most requests read ahead on one connection before reading pauses."""

    gzip_bytes: int = 128 * 1024
    """Bodies above this are compressed for clients that accept it, as kube-apiserver does."""

    backlog: int = 4096
    """Connections the kernel queues while the loop is busy."""

    headers: tuple[tuple[str, str], ...] = (
        ("Cache-Control", "no-cache, private"),
        # No answer is a page or a script, whatever text of a client it repeats.
        ("X-Content-Type-Options", "nosniff"),
    )
    """Sent with every answer unless the answer has its own."""
