"""What is written, changed and taken away."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.edge import edge_placement_ref
from skerry.controllers.summarizer.decide import decide
from skerry.controllers.summarizer.observe import (
    DesiredSummary,
    Observed,
)
from skerry.controllers.summarizer.projections import lean_summary
from skerry.controllers.summarizer.watches import EVERY_KIND
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.summary.content import Subject
from skerry.logic.fleet.summary.health import HEALTHY
from skerry.logic.fleet.summary.report import Report
from skerry.logic.fleet.summary.standing import Detail
from skerry.logic.fleet.summary.tally import total
from skerry.logic.fleet.tables.completeness import Scope
from skerry.logic.machinery.plan import Create, Delete, Update
from skerry.runtime.index import Key

KEY = Key("c", "shop", "p-deployments-web")
PLACEMENT = edge_placement_ref("c", "p")
WEB = Subject("apps", "v1", "deployments", "Deployment", "shop", "web")
WELL = Report(delivered=True, reported=True, health=HEALTHY)
UNREAD = Scope("c", EVERY_KIND)


def desired(*edges: str, subject: Subject = WEB) -> DesiredSummary:
    details = [Detail(Destination("imw", each, each, f"u-{each}"), WELL) for each in edges]
    return DesiredSummary(PLACEMENT, "uid-p", subject, total(details, 10))


def written(observed: Observed) -> dict[str, Any]:
    """Return the summary *observed* leads to, as an informer would keep it."""
    (create,) = decide(observed)
    assert isinstance(create, Create)
    metadata = {**create.object["metadata"], "uid": "u", "resourceVersion": "7"}
    return lean_summary({**create.object, "metadata": metadata})


def test_a_missing_summary_is_made_once() -> None:
    existing = written(Observed(KEY, None, desired("florin")))

    assert not decide(Observed(KEY, existing, desired("florin")))


def test_a_summary_is_made_in_the_namespace_of_its_object() -> None:
    (create,) = decide(Observed(KEY, None, desired("florin")))

    assert isinstance(create, Create)
    assert create.target.gvr.resource == "statussummaries"
    assert (create.target.cluster, create.target.namespace) == ("c", "shop")


def test_the_summary_of_a_cluster_scoped_object_is_cluster_scoped() -> None:
    key = Key("c", "", "p-widgets-web")
    subject = Subject("example.org", "v1", "widgets", "Widget", "", "web")

    (create,) = decide(Observed(key, None, desired("florin", subject=subject)))

    assert isinstance(create, Create)
    assert create.target.gvr.resource == "clusterstatussummaries"
    assert create.object["kind"] == "ClusterStatusSummary"


def test_a_changed_summary_is_replaced_as_it_was_read() -> None:
    existing = written(Observed(KEY, None, desired("florin")))

    (update,) = decide(Observed(KEY, existing, desired("florin", "guilder")))

    assert isinstance(update, Update)
    assert update.object["destinations"] == 2
    assert update.object["metadata"]["resourceVersion"] == "7"
    assert not update.overwrite


def test_labels_of_others_stay() -> None:
    existing = written(Observed(KEY, None, desired("florin")))
    existing["metadata"]["labels"] |= {"team": "blue"}

    assert not decide(Observed(KEY, existing, desired("florin")))


@pytest.mark.parametrize("lost", ["ownerReferences", "labels"])
def test_a_lost_owner_or_label_is_restored(lost: str) -> None:
    existing = written(Observed(KEY, None, desired("florin")))
    before = existing["metadata"][lost]
    existing["metadata"] = {
        **existing["metadata"],
        lost: {"team": "blue"} if lost[0] == "l" else [],
    }

    (update,) = decide(Observed(KEY, existing, desired("florin")))

    assert isinstance(update, Update)
    restored = update.object["metadata"][lost]
    assert restored == ({"team": "blue", **before} if lost == "labels" else before)


def test_a_summary_without_cause_goes_and_no_namesake_of_it() -> None:
    existing = written(Observed(KEY, None, desired("florin")))

    (delete,) = decide(Observed(KEY, existing, None))

    assert isinstance(delete, Delete)
    assert delete.uid == "u"


def test_a_summary_that_is_neither_there_nor_desired_needs_nothing() -> None:
    assert not decide(Observed(KEY, None, None))


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("wanted", [True, False])
def test_nothing_is_written_or_deleted_before_everything_was_read(
    there: bool, wanted: bool
) -> None:
    existing = written(Observed(KEY, None, desired("florin"))) if there else None
    changed = desired("florin", "guilder") if wanted else None

    assert not decide(Observed(KEY, existing, changed, UNREAD))
