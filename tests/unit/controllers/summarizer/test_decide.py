"""What is written, changed and taken away."""

from __future__ import annotations

from typing import Any

from skerry.api.edge import edge_placement_ref
from skerry.controllers.summarizer.decide import ObservedDelivery, decide, decide_delivery
from skerry.controllers.summarizer.forms import lean_summary
from skerry.controllers.summarizer.observe import Observed, Returned, Wanted
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.summary.accumulator import Accumulator
from skerry.logic.fleet.summary.content import Subject
from skerry.logic.fleet.summary.health import HEALTHY
from skerry.logic.fleet.summary.report import Report
from skerry.logic.machinery.plan import Create, Delete, Patch, Update
from skerry.runtime.index import Key
from tests.kit.chain.summarizer_hub import DEPLOYMENTS

KEY = Key("c", "shop", "p-deployments-web")
PLACE = edge_placement_ref("c", "p")
WEB = Subject("apps", "v1", "deployments", "Deployment", "shop", "web")
WELL = Report(delivered=True, reported=True, health=HEALTHY)


def wanted(*edges: str) -> Wanted:
    accumulator = Accumulator((Destination("imw", each, each, f"u-{each}"), WELL) for each in edges)
    return Wanted(PLACE, "uid-p", WEB, accumulator.totals(10))


def written(observed: Observed) -> dict[str, Any]:
    """Return the summary *observed* leads to, as an informer would keep it."""
    (create,) = decide(observed)
    assert isinstance(create, Create)
    metadata = {**create.object["metadata"], "uid": "u", "resourceVersion": "7"}
    return lean_summary({**create.object, "metadata": metadata})


def test_a_missing_summary_is_made_once() -> None:
    existing = written(Observed(KEY, None, wanted("florin")))
    assert not decide(Observed(KEY, existing, wanted("florin")))


def test_a_changed_summary_is_replaced_as_it_was_read() -> None:
    existing = written(Observed(KEY, None, wanted("florin")))
    (update,) = decide(Observed(KEY, existing, wanted("florin", "guilder")))
    assert isinstance(update, Update)
    assert update.object["destinations"] == 2
    assert update.object["metadata"]["resourceVersion"] == "7"
    assert not update.overwrite


def test_labels_of_others_stay_and_a_lost_owner_is_restored() -> None:
    existing = written(Observed(KEY, None, wanted("florin")))
    existing["metadata"]["labels"] |= {"team": "blue"}
    assert not decide(Observed(KEY, existing, wanted("florin")))
    del existing["metadata"]["ownerReferences"]
    (update,) = decide(Observed(KEY, existing, wanted("florin")))
    assert isinstance(update, Update)
    assert update.object["metadata"]["labels"]["team"] == "blue"
    assert update.object["metadata"]["ownerReferences"][0]["uid"] == "uid-p"


def test_a_summary_without_cause_goes_and_no_namesake_of_it() -> None:
    existing = written(Observed(KEY, None, wanted("florin")))
    (delete,) = decide(Observed(KEY, existing, None))
    assert isinstance(delete, Delete)
    assert delete.uid == "u"
    assert not decide(Observed(KEY, None, None))


def test_a_status_is_given_back_to_the_version_that_was_read() -> None:
    source = {"metadata": {"name": "web", "namespace": "shop", "resourceVersion": "3"}}
    returned = Returned(DEPLOYMENTS, source, {"replicas": 2})
    _, update = decide(Observed(KEY, None, wanted("florin"), returned))
    assert isinstance(update, Update)
    assert update.subresource == "status"
    assert update.object == {**source, "status": {"replicas": 2}}


def test_deliveries_are_told_once_the_scheduler_has_written_its_part() -> None:
    assert not decide_delivery(ObservedDelivery(PLACE, {"metadata": {}}, 4))
    placement = {"metadata": {}, "status": {"specGeneration": 1, "matchingLocationCount": 1}}
    (patch,) = decide_delivery(ObservedDelivery(PLACE, placement, 4))
    assert isinstance(patch, Patch)
    assert patch.patch == {"status": {"deliveredObjects": 4}}
    placement["status"]["deliveredObjects"] = 4
    assert not decide_delivery(ObservedDelivery(PLACE, placement, 4))
