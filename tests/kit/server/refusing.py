"""An authorizer that allows all but a few requests."""

from __future__ import annotations

from skerry.server.access import Attributes, Decision
from skerry.server.user import User
from tests.kit.server.harness import Everybody


class Except(Everybody):
    """Allows everything but what it was asked to refuse, as of now."""

    def __init__(self, *refused: str) -> None:
        self.refused = set(refused)

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        action = f"{attributes.verb} {attributes.resource}"
        return Decision(allowed=action not in self.refused)
