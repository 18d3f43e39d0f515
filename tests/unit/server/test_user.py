"""Users as other logical clusters see them."""

from __future__ import annotations

from skerry.server.user import User

GROUPS = ("system:serviceaccounts", "system:authenticated")
ROBOT = User("system:serviceaccount:ci:robot", "7", GROUPS, home="c1")
ALICE = User("alice", groups=("system:authenticated",))


def test_at_home_a_principal_is_itself() -> None:
    assert ROBOT.seen_from("c1") is ROBOT


def test_elsewhere_a_principal_has_its_qualified_name_and_no_groups() -> None:
    seen = ROBOT.seen_from("c2")
    assert (seen.name, seen.groups) == ("system:kcp:serviceaccount:c1:ci:robot", ())


def test_a_user_of_the_hub_is_the_same_everywhere() -> None:
    assert ALICE.seen_from("c1") is ALICE.seen_from("c2") is ALICE
    assert ALICE.principal == "alice"


def test_who_was_qualified_is_not_qualified_again() -> None:
    seen = ROBOT.seen_from("c2")
    assert seen.seen_from("c3") == seen.seen_from("c1") == seen


def test_accounts_of_one_name_in_two_clusters_are_two_principals() -> None:
    twin = User(ROBOT.name, "7", GROUPS, home="c2")
    assert ROBOT.principal == ROBOT.seen_from("c9").principal != twin.principal
