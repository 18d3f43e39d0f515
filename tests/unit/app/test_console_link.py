"""What a hub believes of a console in another process, and the memory that both see."""

from __future__ import annotations

import pytest

from skerry.app.console_link import Versions, authorization, authorized
from skerry.server.user import User

ALICE = User("alice", groups=("shop", "system:authenticated"), extra={"a": ("b",)}, home="xyz")


def test_a_user_is_believed_with_the_secret_of_the_link_alone() -> None:
    said = authorization("secret", ALICE)
    assert authorized("secret", said) == ALICE
    assert authorized("other", said) is None


@pytest.mark.parametrize(
    "header",
    ["", "Console", "Console secret", "Console secret ", "Console secret !!", "Console secret AAA=",
     "Bearer secret", "Console  secret", "Console s\u00e9cret x"],
)  # fmt: skip
def test_what_says_no_user_is_nobody(header: str) -> None:
    assert authorized("secret", header) is None


def test_whoever_has_the_memory_sees_that_rights_changed() -> None:
    hub = Versions.new()
    console = Versions(hub.descriptor)
    before = console.read()
    hub.rights_changed()
    changed = console.read()
    hub.note_workspaces(7)
    assert len({before, changed, console.read()}) == 3
