"""The status of a grant: what it is about, and whether its workspace is known to be closed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from skerry.api.edge import ENFORCE, OBSERVE, ConsentMode
from skerry.api.objects import Object
from skerry.controllers.edge_scheduler.grant_status import SeenGrant, grant_status
from skerry.logic.fleet.placement.consent_record import new_record
from skerry.logic.fleet.placement.grants import grant_of
from skerry.logic.machinery.plan import Update
from tests.kit.chain import building

NOW = datetime(2030, 1, 1, tzinfo=UTC)
CLOSED: Object = {**new_record("imw"), "mode": ENFORCE}


def seen(mode: str = "Enforce", **status: Any) -> SeenGrant:
    obj = building.grant("g", mode=mode, paths=["root:shop"], selector={})
    return SeenGrant(grant_of(obj), {**obj, "status": status}, 3, 1)


def written(
    grant: SeenGrant, record: Object | None, mode: ConsentMode | None = ENFORCE
) -> dict[str, Any]:
    update = grant_status(grant, mode, record, NOW)
    assert isinstance(update, Update)
    assert update.subresource == "status"
    assert (update.target.name, update.target.cluster) == ("g", "imw")
    status: dict[str, Any] = update.object["status"]
    return status


def reason(
    grant: SeenGrant, record: Object | None = CLOSED, mode: ConsentMode | None = ENFORCE
) -> str:
    return str(written(grant, record, mode)["conditions"][0]["reason"])


def test_a_grant_is_enforced_from_the_moment_that_is_remembered() -> None:
    assert reason(seen(), None) == "Pending"
    assert reason(seen(), new_record("imw")) == "Pending"
    assert reason(seen()) == "Enforced"


def test_a_grant_that_observes_says_whether_others_enforce() -> None:
    assert reason(seen(mode="Observe")) == "Observing"
    [alone] = written(seen(mode="Observe"), new_record("imw"), OBSERVE)["conditions"]
    [beside] = written(seen(mode="Observe"), CLOSED)["conditions"]
    assert ("message" in alone and alone["message"], "others" in beside["message"]) == ("", True)


def test_a_grant_that_cannot_be_read_is_invalid_and_says_why() -> None:
    broken = building.grant("g", selector=building.expression("a", "In"))
    [found] = written(SeenGrant(grant_of(broken), broken, 0, 0), CLOSED)["conditions"]
    assert (found["status"], found["reason"]) == ("False", "Invalid")
    assert found["message"]


def test_a_status_says_what_is_selected_and_is_not_written_twice() -> None:
    status = written(seen(), CLOSED)
    assert (status["locations"], status["workspaces"]) == (3, 1)
    again = seen()
    again = again._replace(object={**again.object, "status": status})
    assert grant_status(again, ENFORCE, CLOSED, NOW) is None
