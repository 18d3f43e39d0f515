"""A console's feed that is filled by hand, and rights that a test gives and takes."""

from __future__ import annotations

from dataclasses import dataclass, field

from skerry.api.kinds import GroupVersionResource
from skerry.server.user import User
from skerry.web.eyes import Eyes, Rights
from skerry.web.feed import Feed

ALICE, BOB = User("alice"), User("bob")


@dataclass
class Town:
    """Workspaces called ``root:CLUSTER``, and who may list what where."""

    allowed: set[tuple[str, str, str]] = field(default_factory=set)
    version: int = 0

    def __post_init__(self) -> None:
        self.feed = Feed()
        rights = Rights(self.may, lambda: self.version, lambda each: f"root:{each}", self.resolve)
        self.eyes = Eyes(self.feed, rights)

    def may(self, user: User, cluster: str, verb: str, gvr: GroupVersionResource) -> bool:
        return verb == "list" and (user.name, cluster, gvr.resource) in self.allowed

    def resolve(self, path: str) -> str | None:
        return path.removeprefix("root:") if path.startswith("root:") else None

    def grant(self, user: User, cluster: str, *resources: str) -> None:
        self.allowed |= {(user.name, cluster, each) for each in resources}
        self.version += 1

    def revoke(self, user: User, cluster: str) -> None:
        self.allowed = {each for each in self.allowed if each[:2] != (user.name, cluster)}
        self.version += 1
