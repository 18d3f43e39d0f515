"""Steps of a rollout are of what was seen: another revision or wave is not acted on."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.errors import Conflict
from skerry.app.console_decisions import check_seen

STATUS: dict[str, Any] = {"target": 4, "wave": {"name": "canary"}}


@pytest.mark.parametrize("given", [{}, {"target": 4}, {"target": 4, "wave": "canary"}])
def test_a_step_of_what_was_seen_is_taken(given: dict[str, Any]) -> None:
    check_seen(STATUS, given)


@pytest.mark.parametrize("given", [{"target": 3}, {"target": 4, "wave": "all"}, {"target": None}])
def test_a_rollout_that_moved_on_is_not_acted_on(given: dict[str, Any]) -> None:
    with pytest.raises(Conflict, match="it is at revision 4, wave canary by now"):
        check_seen(STATUS, given)


def test_a_rollout_that_nobody_has_looked_at_yet_has_no_wave() -> None:
    check_seen({}, {"target": None, "wave": ""})
