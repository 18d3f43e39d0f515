"""Tokens from a file: the CSV that kube-apiserver reads with ``--token-auth-file``.

Each line is ``token,user,uid`` and perhaps a quoted list of groups. Read once, at start.
"""

from __future__ import annotations

import csv
import hashlib
import io

from skerry.kit.log import Logger
from skerry.server.user import User

log = Logger("authentication")


class StaticTokens:
    """Tokens and the users they stand for. Only hashes are kept."""

    def __init__(self, text: str) -> None:
        self._users: dict[bytes, User] = {}
        for number, row in enumerate(csv.reader(io.StringIO(text), skipinitialspace=True), 1):
            if row:
                self._add(number, row)

    def _add(self, number: int, row: list[str]) -> None:
        if len(row) < 3:
            raise ValueError(
                f"token file line {number}: want at least 3 columns "
                f"(token, user name, user uid), found {len(row)}"
            )
        token, name, uid, *groups = row
        if not token:
            log.warning("empty token has been found in token file", line=number)
            return
        digest = _digest(token)
        if digest in self._users:
            log.warning("duplicate token has been found in token file", line=number)
        listed = [group for group in groups[0].split(",") if group] if groups else []
        self._users[digest] = User(name, uid, tuple(listed))

    def user(self, token: str) -> User | None:
        """Return whom *token* stands for.

        The lookup is by hash, so its timing tells nothing about the tokens that exist.
        """
        return self._users.get(_digest(token))


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
