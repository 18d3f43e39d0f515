"""Every rule by which a copy is made, changed, left alone or removed."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.refs import ObjectRef, namespace_ref
from skerry.logic.fleet.placement.grants import Rule
from skerry.logic.fleet.tables.completeness import Verdict
from skerry.logic.fleet.translation.difference import Hold
from skerry.logic.fleet.translation.dirty import CONFIG
from skerry.logic.fleet.translation.grants import NOT_GRANTED
from skerry.logic.fleet.translation.ownership import Owned
from skerry.logic.fleet.translation.sources import WatchKey
from skerry.logic.fleet.translation.workspaces import (
    GRANTS,
    NAMESPACE_WATCH,
    Scope,
    selection_scope,
    types_scope,
)
from tests.kit.chain.translation_objects import (
    ANY_MAP,
    CLUSTER,
    COPY,
    GO,
    MAPS,
    PAGE,
    SECRETS,
    There,
    thing,
)

SPACE = namespace_ref("n")
OTHER = Rule(frozenset([""]), frozenset(["secrets"]), namespaced=True, cluster_scoped=False)
WRONG = {"matchExpressions": [{"key": "go", "operator": "Nonsense"}]}


@pytest.fixture
def there() -> There:
    return There()


def test_what_is_desired_and_not_there_is_created(there: There) -> None:
    there.placed()
    row = there.diff()
    assert row.verdict is Verdict.CREATE
    assert row.gvr is not None
    assert row.gvr.version == "v1"
    assert row.render is not None
    assert row.render()["data"] == {"k": "v"}
    assert row.problems == ()


def test_a_copy_that_is_as_desired_is_left_alone(there: There) -> None:
    there.placed()
    there.copy()
    assert there.diff().verdict is Verdict.NONE


def test_a_copy_that_differs_is_updated_and_what_is_no_copy_is_adopted(there: There) -> None:
    there.placed()
    there.copy(data={"k": "other"})
    assert there.diff().verdict is Verdict.UPDATE
    there.copy(labels={}, rv="2")
    assert there.diff().verdict is Verdict.UPDATE


def test_what_the_server_made_of_a_copy_counts_as_it_was_sent(there: There) -> None:
    there.placed()
    there.copy(data={"k": "v", "defaulted": "yes"})
    record = there.workspaces.record(CLUSTER, PAGE)
    desired = there.at().row(PAGE).digest
    assert record is not None
    assert desired is not None
    there.accepted[there.at().mailbox, PAGE] = (desired, record.digest)
    assert there.diff().verdict is Verdict.NONE
    there.placed(data={"k": "newer"}, rv="2")
    assert there.diff().verdict is Verdict.UPDATE


def test_a_copy_that_nobody_sends_is_deleted_as_the_one_that_was_seen(there: There) -> None:
    there.copy()
    # Its kind is known by the mailbox itself.
    row = there.diff()
    assert (row.verdict, row.uid) == (Verdict.DELETE, "u-page")


def test_a_copy_of_a_release_record_stays_with_its_source_and_no_new_one_is_made(
    there: There,
) -> None:
    release = {"type": "helm.sh/release.v1", "data": {"release": "eA=="}}
    item = ObjectRef("", "", "secrets", "n", "r")
    there.placed()
    there.put(SECRETS, thing("r", "one", "n", **release))
    assert there.diff(item).verdict is Verdict.NONE
    there.put(SECRETS, thing("r", CLUSTER, "n", labels=COPY, **release))
    assert there.diff(item).verdict is Verdict.NONE
    records = there.workspaces.watch(SECRETS)
    records.remove(next(records.everything("one")))
    assert there.diff(item).verdict is Verdict.DELETE


def test_what_is_no_copy_is_never_deleted(there: There) -> None:
    there.copy(labels={})
    assert there.diff().verdict is Verdict.NONE


def test_what_is_being_deleted_is_left_alone_and_made_anew_when_it_has_gone(there: There) -> None:
    there.placed()
    there.copy(data={"k": "other"}, meta={"deletionTimestamp": "now"})
    assert there.diff().verdict is Verdict.NONE
    there.workspaces.watch(MAPS).remove(next(there.workspaces.watch(MAPS).everything(CLUSTER)))
    assert there.diff().verdict is Verdict.CREATE


def _recorded(*, by: str, **more: Any) -> dict[str, Any]:
    return {"notes": {"edge.kcp.io/owner-workspace": by}, **more}


def test_a_copy_from_before_owners_were_recorded_is_written_only_where_it_is_contested(
    there: There,
) -> None:
    there.placed("two", meta={"creationTimestamp": "2"})
    there.copy()
    assert there.diff().verdict is Verdict.NONE
    # Somebody older arrives: whose content is there keeps the name, and that is recorded.
    there.placed("one", data={"k": "older"}, meta={"creationTimestamp": "1"})
    row = there.diff()
    assert row.verdict is Verdict.UPDATE
    assert row.render is not None
    made = row.render()
    assert made["data"] == {"k": "v"}
    assert made["metadata"]["annotations"]["edge.kcp.io/owner-workspace"] == "two"
    assert made["metadata"]["annotations"]["edge.kcp.io/withheld-from"] == "one"
    there.copy(notes=made["metadata"]["annotations"])
    assert there.diff().verdict is Verdict.NONE


def test_when_the_owners_object_goes_the_next_takes_over_by_an_update(there: There) -> None:
    there.placed("one", data={"k": "next"})
    there.copy(**_recorded(by="gone"))
    row = there.diff()
    assert (row.verdict, row.owned) == (Verdict.UPDATE, Owned("gone"))
    # Equal content makes no difference: whose it is changes.
    there.copy(**_recorded(by="gone", data={"k": "next"}))
    assert there.diff().verdict is Verdict.UPDATE
    there.copy(**_recorded(by="one", data={"k": "next"}))
    assert there.diff().verdict is Verdict.NONE


def test_an_owner_whose_placement_is_malformed_keeps_its_name_and_the_other_hears_of_it(
    there: There,
) -> None:
    placement = there.placed("one", data={"k": "rival"})
    there.placed("two")
    malformed = there.place("two", namespaceSelector=WRONG)
    there.copy(**_recorded(by="two"))
    row = there.diff()
    assert (row.verdict, row.missing) == (Verdict.PENDING, selection_scope(malformed))
    assert [p.placement for p in row.problems or ()] == [placement]


def test_a_name_whose_owner_was_not_read_waits(there: There) -> None:
    there.placed("one", data={"k": "rival"})
    there.placed("two")
    there.copy(**_recorded(by="two"))
    there.scopes.incomplete(types_scope("two"))
    assert there.diff().verdict is Verdict.PENDING


def test_a_confirmation_has_had_its_effect_once_another_has_the_name(there: There) -> None:
    there.placed("one")
    there.placed("two", data={"k": "theirs"})
    there.scopes.complete(GRANTS)
    there.book.mode = "Enforce"
    there.book.granted_to = {"two": [ANY_MAP], "one": [OTHER]}
    there.copy(**_recorded(by="one"))
    there.released.add(PAGE)
    row = there.diff()
    assert row.verdict is Verdict.UPDATE
    assert row.hold is not None
    assert not row.hold.gone
    there.copy(**_recorded(by="two", data={"k": "theirs"}))
    row = there.diff()
    assert row.verdict is Verdict.NONE
    assert row.hold is not None
    assert row.hold.gone


def test_what_came_up_from_the_edge_occupies_its_name(there: There) -> None:
    placement = there.placed()
    there.copy(labels={}, notes={"edge.kcp.io/upsynced": "true"})
    row = there.diff()
    assert row.verdict is Verdict.NONE
    assert [(p.placement, p.problem.reason) for p in row.problems or ()] == [
        (placement, "NameOccupied")
    ]


def test_a_copy_waits_for_its_namespace_to_go(there: There) -> None:
    there.placed()
    going = thing("n", CLUSTER, meta={"deletionTimestamp": "now"})
    there.put(NAMESPACE_WATCH, going)
    row = there.diff()
    assert row.verdict is Verdict.NONE
    assert [p.problem.reason for p in row.problems or ()] == ["NamespaceTerminating"]


# -- unknown is not absent ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "scope", [types_scope("one"), types_scope(CLUSTER), NAMESPACE_WATCH, MAPS], ids=str
)
def test_a_row_is_pending_on_whatever_it_depends_on(there: There, scope: Scope) -> None:
    there.placed()
    there.copy(data={"k": "other"})
    there.scopes.incomplete(scope)
    row = there.diff()
    assert (row.verdict, row.missing) == (Verdict.PENDING, scope)
    # Nothing is reported of what is not known.
    assert row.problems is None
    assert row.hold is None


@pytest.mark.parametrize("scope", [types_scope("two"), SECRETS, GRANTS], ids=str)
def test_a_row_is_not_pending_on_what_has_nothing_to_do_with_it(there: There, scope: Scope) -> None:
    there.placed()
    there.scopes.incomplete(scope)
    assert there.diff().verdict is Verdict.CREATE


@pytest.mark.parametrize("scope", [MAPS, SECRETS])
def test_a_namespace_is_not_deleted_before_everything_in_it_was_read(
    there: There, scope: WatchKey
) -> None:
    there.put(NAMESPACE_WATCH, thing("n", CLUSTER, labels=COPY))
    there.scopes.incomplete(scope)
    assert there.diff(SPACE).missing == scope
    there.scopes.complete(scope)
    assert there.diff(SPACE).verdict is Verdict.DELETE


def test_a_namespace_that_holds_what_is_no_copy_is_kept(there: There) -> None:
    there.put(NAMESPACE_WATCH, thing("n", CLUSTER, labels=COPY))
    there.put(SECRETS, thing("s", CLUSTER, "n"))
    assert there.diff(SPACE).verdict is Verdict.NONE


def test_a_malformed_placement_keeps_copies_and_stops_no_creation(there: There) -> None:
    malformed = there.place("two", "q", namespaceSelector=WRONG)
    there.copy()
    row = there.diff()
    assert (row.verdict, row.missing) == (Verdict.PENDING, selection_scope(malformed))
    there.placed(data={"k": "newer"})
    assert there.diff().verdict is Verdict.UPDATE


def test_a_default_namespace_is_never_made_nor_removed(there: There) -> None:
    there.put(NAMESPACE_WATCH, thing("default", "one", labels={"go": "yes"}))
    there.place("one", namespaceSelector=GO)
    assert there.diff(namespace_ref("default")).verdict is Verdict.NONE


def test_of_a_kind_that_nobody_serves_nothing_can_be_done(there: There) -> None:
    there.placed()
    assert there.diff(ObjectRef("", "example.io", "widgets", "n", "w")).verdict is Verdict.NONE


# -- grants ------------------------------------------------------------------------------------


def _enforced(there: There, *rules: object) -> None:
    there.book.mode = "Enforce"
    there.book.granted = rules  # type: ignore[assignment]  # rules
    there.scopes.complete(GRANTS)


SECRET = ObjectRef("", "", "secrets", "n", "s")


def _secret(there: There, *, copied: bool) -> ObjectRef:
    placement = there.placed()
    there.put(SECRETS, thing("s", "one", "n"))
    if copied:
        there.put(SECRETS, thing("s", CLUSTER, "n", labels=COPY))
    return placement


def test_what_no_grant_covers_is_not_created_and_is_reported(there: There) -> None:
    placement = _secret(there, copied=False)
    _enforced(there, ANY_MAP)
    row = there.diff(SECRET)
    assert row.verdict is Verdict.NONE
    assert row.hold == Hold("one", gone=True)
    assert [(p.placement, p.problem.reason) for p in row.problems or ()] == [
        (placement, NOT_GRANTED)
    ]
    assert there.diff(PAGE).verdict is Verdict.CREATE


def test_a_copy_that_no_grant_covers_any_more_stays_until_its_removal_is_confirmed(
    there: There,
) -> None:
    _secret(there, copied=True)
    _enforced(there, ANY_MAP)
    row = there.diff(SECRET)
    assert (row.verdict, row.hold) == (Verdict.NONE, Hold("one", held=True))
    there.released.add(SECRET)
    row = there.diff(SECRET)
    assert (row.verdict, row.hold) == (Verdict.DELETE, Hold("one"))


def test_a_placement_that_is_granted_nothing_at_all_hears_of_it_elsewhere(there: There) -> None:
    _secret(there, copied=True)
    _enforced(there)
    row = there.diff(SECRET)
    assert (row.verdict, row.problems, row.hold) == (Verdict.NONE, (), Hold(released=True))


def test_grants_that_only_observe_report_and_change_nothing(there: There) -> None:
    _secret(there, copied=False)
    _enforced(there, ANY_MAP)
    there.book.mode = "Observe"
    row = there.diff(SECRET)
    assert (row.verdict, row.problems) == (Verdict.CREATE, ())
    assert row.hold == Hold("one", gone=True)


def test_without_any_grant_nothing_is_said_of_grants_and_without_its_own_nothing_is_held(
    there: There,
) -> None:
    there.placed()
    assert there.diff().hold is None
    there.book.mode = "Elsewhere"
    there.scopes.complete(GRANTS)
    assert there.diff().hold == Hold()


def test_rows_wait_for_what_grants_depend_on(there: There) -> None:
    there.placed()
    _enforced(there, ANY_MAP)
    there.scopes.incomplete(GRANTS)
    assert there.diff().missing == GRANTS
    assert there.diff(CONFIG).missing == GRANTS


# -- SyncerConfig ------------------------------------------------------------------------------


def _live(spec: object) -> dict[str, object]:
    return {"metadata": {"uid": "u"}, "spec": spec, "status": {}}


def test_a_syncer_config_is_created_updated_and_emptied_but_never_deleted(there: There) -> None:
    assert there.diff(CONFIG).verdict is Verdict.NONE
    there.placed()
    row = there.diff(CONFIG)
    assert row.verdict is Verdict.CREATE
    assert row.render is not None
    spec = row.render()["spec"]
    assert spec["namespaceScope"]["namespaces"] == ["n"]
    there.live = _live(spec)
    assert there.diff(CONFIG).verdict is Verdict.NONE
    there.live = _live({})
    assert (there.diff(CONFIG).verdict, there.diff(CONFIG).uid) == (Verdict.UPDATE, "u")
    for placement in list(there.route):
        there.route.drop_placement(placement)
    there.route.settle()
    row = there.diff(CONFIG)
    assert row.render is not None
    assert row.render()["spec"] == {"namespaceScope": {}}


def test_a_syncer_config_that_has_no_status_is_not_as_it_should_be(there: There) -> None:
    there.placed()
    row = there.diff(CONFIG)
    assert row.render is not None
    there.live = _live(row.render()["spec"])
    del there.live["status"]
    assert there.diff(CONFIG).verdict is Verdict.UPDATE


@pytest.mark.parametrize("scope", [types_scope("one"), SECRETS], ids=str)
def test_a_syncer_config_depends_on_everything_in_its_workspaces(
    there: There, scope: Scope
) -> None:
    there.placed()
    there.scopes.incomplete(scope)
    assert there.diff(CONFIG).missing == scope


def test_a_syncer_config_stays_while_a_placement_is_malformed(there: There) -> None:
    malformed = there.place("two", "q", namespaceSelector=WRONG)
    there.placed()
    there.live = _live({})
    assert there.diff(CONFIG).missing == selection_scope(malformed)
