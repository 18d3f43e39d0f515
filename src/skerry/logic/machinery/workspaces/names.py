"""Names of logical clusters, and the hashes labels carry, as kcp forms them."""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache

from skerry.kit.caching import short_text_cache

ROOT = "root"
# Bootstrap RBAC that counts in every cluster lives here; nobody else's objects do.
SYSTEM_ADMIN = "system:admin"
WILDCARD = "*"
# Administrators of every cluster.
ADMIN_GROUP = "system:kcp:admin"

_SEGMENT = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_ONE_SEGMENT = re.compile(rf"{_SEGMENT}").fullmatch
_PATH = re.compile(rf"^({_SEGMENT}:)*{_SEGMENT}$")
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_DIGITS_62 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_NAME_LENGTH = 16
INITIALIZER_LABEL = "initializer.internal.kcp.io/"


def is_path(text: str) -> bool:
    """Tell whether *text* has the form of a cluster name or path."""
    return _PATH.fullmatch(text) is not None


def base36(data: bytes) -> str:
    """Return *data*, read as one number, in lower-case base 36."""
    return _in_base(int.from_bytes(data, "big"), _DIGITS)


def base62(data: bytes) -> str:
    """Return *data*, read as one number, in base 62."""
    return _in_base(int.from_bytes(data, "big"), _DIGITS_62)


def _in_base(number: int, digits: str) -> str:
    if number == 0:
        return digits[0]
    found = []
    while number:
        number, rest = divmod(number, len(digits))
        found.append(digits[rest])
    return "".join(reversed(found))


def cluster_name(entropy: bytes) -> str:
    """Return the name of a new logical cluster made from 32 random bytes."""
    return base36(hashlib.sha224(entropy).digest())[:_NAME_LENGTH]


def home_cluster_name(user: str) -> str:
    """Return the name of the logical cluster that is *user*'s home."""
    return base36(hashlib.sha224(user.encode()).digest()[:8])


def home_path(user: str) -> str:
    """Return the path of *user*'s home: ``user:NAME`` where that can be a path.

    The home of any other name, such as one with a colon, has its logical cluster's name for a
    path; else it could be taken for a workspace below somebody else's home.
    """
    return f"user:{user}" if _ONE_SEGMENT(user) else home_cluster_name(user)


@lru_cache(maxsize=16)
def shard_name_hash(shard: str) -> str:
    """Return the short hash that stands for a shard in annotations."""
    return base36(hashlib.sha224(shard.encode()).digest())[:8]


@short_text_cache(4096)
def label_hash(text: str) -> str:
    """Return the hash by which labels refer to ``cluster:name`` pairs."""
    return base62(hashlib.sha224(text.encode()).digest())


@short_text_cache(256)
def initializer_label(initializer: str) -> tuple[str, str]:
    """Return the label that marks clusters which still have *initializer* to go."""
    digest = hashlib.sha224(initializer.encode()).hexdigest()
    return f"{INITIALIZER_LABEL}{digest[:35]}", digest


def joined(parent: str, name: str) -> str:
    """Return the path of the child *name* of *parent*."""
    return f"{parent}:{name}"


def parent_path(path: str) -> str:
    """Return the path above *path*; empty when it has none."""
    return path.rpartition(":")[0]
