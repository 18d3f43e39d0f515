"""Who asks: the user as authentication found it, and as Kubernetes writes one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from skerry.logic.machinery.workspaces.principals import (
    ACCOUNT_PREFIX,
    CLUSTER_EXTRA,
    qualified_name,
)


class User(msgspec.Struct, frozen=True):
    """Who is asking, as authentication found out.

    ``home`` is the logical cluster outside of which the identity means nothing: that of a
    ServiceAccount, or the one in which the right to impersonate was held. It is empty for users
    that are the same everywhere. Credentials and headers cannot set it; only the server does.
    """

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    home: str = ""

    @property
    def principal(self) -> str:
        """The name that no other identity on this server has; for counting and remembering."""
        return qualified_name(self.name, self.home) if self.home else self.name

    def seen_from(self, cluster: str) -> User:
        """Return this user as *cluster* knows it: elsewhere than at home, a foreign principal.

        The only place where that is decided. A foreign principal is in no group of the other
        cluster, ``system:authenticated`` included. Its name says all, so it is qualified once
        however often it is asked.
        """
        if not self.home or self.home == cluster:
            return self
        return User(self.principal, self.uid, (), self.extra)


def user_info(user: User) -> dict[str, Any]:
    """Return a user as Kubernetes writes one."""
    info: dict[str, Any] = {"username": user.name}
    if user.uid:
        info["uid"] = user.uid
    if user.groups:
        info["groups"] = list(user.groups)
    extra = {key: list(values) for key, values in user.extra.items()}
    if user.home and user.name.startswith(ACCOUNT_PREFIX):
        # Accounts of two clusters may have one name.
        extra[CLUSTER_EXTRA] = [user.home]
    if extra:
        info["extra"] = extra
    return info
