"""What an object is to be in a mailbox, from whoever sends it."""

from __future__ import annotations

import pytest

from skerry.api.refs import namespace_ref
from skerry.logic.fleet.translation.copies import bare_namespace, digest
from skerry.logic.fleet.translation.merging import KIND_WITHHELD, NAME_TAKEN
from skerry.logic.fleet.translation.rows import NOTHING
from skerry.logic.fleet.translation.sources import record_of
from skerry.logic.fleet.translation.workspaces import GRANTS, NAMESPACE_WATCH, path_scope
from tests.kit.chain.translation_objects import (
    ANY_MAP,
    GO,
    MAPS,
    PAGE,
    ROLE,
    ROLES,
    There,
    thing,
)

SPACE = namespace_ref("n")
NAMED_ROLES = {"apiGroup": ROLE.group, "resources": ["*"], "resourceNames": ["*"]}
NAMED_SPACES = {"apiGroup": "", "resources": ["namespaces"], "resourceNames": ["n"]}


@pytest.fixture
def there() -> There:
    return There()


def test_an_object_of_one_workspace_is_sent_as_its_record_has_it(there: There) -> None:
    there.placed()
    row = there.at().row(PAGE)
    record = there.workspaces.record("one", PAGE)
    assert record is not None
    assert row.digest == record.digest
    assert row.render is not None
    assert digest(MAPS.group_resource, row.render()) == row.digest


def test_what_nobody_sends_or_is_not_there_is_not_desired(there: There) -> None:
    assert there.at().row(PAGE) is NOTHING
    there.placed(meta={"deletionTimestamp": "now"})
    assert there.at().row(PAGE) is NOTHING


def test_a_chosen_namespace_goes_bare_and_with_its_labels_when_it_is_named_too(
    there: There,
) -> None:
    there.placed()
    assert there.at().row(SPACE).digest == digest(SPACE.group_resource, bare_namespace("n"))
    there.place("one", namespaceSelector=GO, nonNamespacedObjects=[NAMED_SPACES])
    row = there.at().row(SPACE)
    assert row.render is not None
    assert row.render()["metadata"]["labels"]["go"] == "yes"


def test_a_namespace_that_is_only_named_does_not_go(there: There) -> None:
    there.put(NAMESPACE_WATCH, thing("n", "one"))
    there.place("one", namespaceSelector=GO, nonNamespacedObjects=[NAMED_SPACES])
    assert there.at().row(SPACE) is NOTHING


def test_of_two_workspaces_the_first_counts_and_the_other_hears_of_it(there: There) -> None:
    one = there.placed("one", data={"k": "old"}, meta={"creationTimestamp": "1"})
    two = there.placed("two", data={"k": "new"}, meta={"creationTimestamp": "2"}, rv="10")
    row = there.at().row(PAGE)
    assert row.render is not None
    assert row.render()["data"] == {"k": "old"}
    assert [(p.placement, p.problem.reason) for p in row.problems] == [(two, NAME_TAKEN)]
    assert there.at().senders(PAGE) == [one]


def test_an_object_whose_owner_lost_its_grant_stays_until_that_is_confirmed(there: There) -> None:
    one, two = there.placed("one"), there.placed("two", data={"k": "theirs"})
    there.copy(notes={"edge.kcp.io/owner-workspace": "one"})
    there.book.mode, there.book.granted_to = "Enforce", {"two": [ANY_MAP]}
    row = there.at().row(PAGE)
    assert (row.refused, row.frozen) == ((one,), True)
    assert [(p.placement, p.problem.reason) for p in row.problems] == [(two, NAME_TAKEN)]
    there.released.add(PAGE)
    row = there.at().row(PAGE)
    assert (row.refused, row.frozen) == ((one,), False)
    assert row.render is not None
    assert row.render()["data"] == {"k": "theirs"}


def test_a_copy_without_a_record_is_held_for_the_one_without_a_grant_whose_content_it_has(
    there: There,
) -> None:
    there.placed("one")
    there.placed("two", data={"k": "theirs"})
    there.copy()
    there.book.mode, there.book.granted_to = "Enforce", {"two": [ANY_MAP]}
    assert there.at().row(PAGE).frozen
    there.copy(data={"k": "theirs"})
    assert not there.at().row(PAGE).frozen


def test_a_path_that_was_not_read_is_what_the_row_misses(there: There) -> None:
    there.placed("one", data={"k": "a"})
    there.placed("two", data={"k": "b"})
    there.workspaces.leave("one")
    there.workspaces.follow("one")
    there.workspaces.retype("one")
    assert there.at().row(PAGE).missing == path_scope("one")


def test_a_customized_object_is_customized_for_its_location(there: There) -> None:
    notes = {"edge.kcp.io/expand-parameters": "true"}
    there.placed(data={"k": "%(env)"}, notes=notes)
    row = there.at().row(PAGE)
    assert row.render is not None
    assert row.render()["data"] == {"k": "prod"}


def test_what_cannot_be_customized_as_asked_is_withheld_unless_that_is_wanted(
    there: There,
) -> None:
    placement = there.placed(notes={"edge.kcp.io/customizer": "missing"})
    row = there.at().row(PAGE)
    assert row.digest is None
    assert [p.placement for p in row.problems] == [placement]
    assert there.at(strict=False).row(PAGE).digest is not None


@pytest.mark.parametrize(
    ("withhold", "inert", "sent"),
    [(True, True, False), (False, False, True), (None, True, True), (None, False, False)],
)
def test_what_would_act_on_the_hub_is_withheld_where_copies_are_not_inert(
    there: There, withhold: bool | None, inert: bool, sent: bool
) -> None:
    there.put(ROLES, thing("r", "one"))
    there.place("one", nonNamespacedObjects=[NAMED_ROLES])
    there.workspaces.copies_are_inert = inert
    row = there.at(withhold_denatured=withhold).row(ROLE)
    assert (row.digest is not None) is sent
    assert [p.problem.reason for p in row.problems] == ([] if sent else [KIND_WITHHELD])


def test_scopes_are_those_of_every_contributor_and_of_grants(there: There) -> None:
    there.placed("one")
    there.placed("two")
    before = set(there.at().scopes(PAGE))
    assert {("types", "one"), ("types", "two"), MAPS} <= before
    assert GRANTS not in before
    there.book.mode = "Enforce"
    assert GRANTS in set(there.at().scopes(PAGE))


def test_the_version_is_agreed_and_empty_where_nobody_serves_the_kind(there: There) -> None:
    assert there.at().version(PAGE.group_resource).version == ""
    there.placed()
    assert there.at().version(PAGE.group_resource).version == "v1"


def test_a_malformed_placement_contributes_no_version_and_is_known(there: There) -> None:
    wrong = {"matchExpressions": [{"key": "a", "operator": "Nonsense"}]}
    placement = there.place("one", namespaceSelector=wrong)
    assert there.at().version(PAGE.group_resource).version == ""
    assert list(there.at().malformed()) == [placement]


def test_what_is_not_granted_is_refused_and_what_is_there_frozen(there: There) -> None:
    placement = there.placed()
    there.book.mode = "Enforce"
    row = there.at().row(PAGE)
    assert (row.digest, row.refused, row.frozen) == (None, (placement,), True)
    there.book.granted = [ANY_MAP]
    row = there.at().row(PAGE)
    assert (row.digest is not None, row.refused, row.frozen) == (True, (), False)
    assert there.at().senders(PAGE) == [placement]


def test_a_namespace_named_without_a_grant_for_it_goes_bare_and_is_frozen(there: There) -> None:
    there.placed()
    placement = there.place("one", namespaceSelector=GO, nonNamespacedObjects=[NAMED_SPACES])
    there.book.mode, there.book.granted = "Enforce", [ANY_MAP]
    row = there.at().row(SPACE)
    assert row.digest == digest(SPACE.group_resource, bare_namespace("n"))
    assert (row.refused, row.frozen) == ((placement,), True)


def test_grants_that_observe_report_what_they_would_refuse(there: There) -> None:
    placement = there.placed()
    there.book.mode = "Observe"
    assert there.at().would_refuse(PAGE) == (placement,)
    assert there.at().row(PAGE).refused == ()
    there.book.granted = [ANY_MAP]
    assert there.at().would_refuse(PAGE) == ()


def test_a_view_of_a_mailbox_keeps_no_objects(there: There) -> None:
    there.placed()
    before = there.at()
    record = record_of(MAPS, thing("page", "one", "n", data={"k": "2"}, rv="2"))
    there.workspaces.watch(MAPS).put(record)
    assert before.row(PAGE).digest == there.at().row(PAGE).digest == record.digest
