"""What a tab can look at is found by its name."""

from __future__ import annotations

import pytest

from skerry.api.errors import BadRequest
from skerry.web.desk import Desk, members_patch


def test_what_there_is_not_is_refused_with_what_there_is() -> None:
    async def nothing(*_: object) -> dict[str, object]:
        return {}

    desk = Desk(questions={"search": nothing, "explain": nothing})
    with pytest.raises(BadRequest, match="there are explain, search"):
        desk.question("wherefore")
    with pytest.raises(BadRequest, match="there are none"):
        desk.opening("fleet")


def test_a_patch_has_the_members_that_differ() -> None:
    assert members_patch({"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 5}) == {"b": 5, "c": None}
    assert members_patch({"a": 1}, {"a": 1}) == {}
