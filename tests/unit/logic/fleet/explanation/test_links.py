"""Steps follow the tables of the chain, and a chain ends where a row is missing."""

from __future__ import annotations

from collections.abc import Iterator

from skerry.api.refs import ObjectRef
from skerry.logic.fleet.explanation.links import TABLES, Chain, Link, followed, object_json
from skerry.logic.fleet.tables.chain import CHAIN


def test_every_step_is_about_a_table_of_the_chain() -> None:
    assert set(TABLES.values()) <= {table.name for table in CHAIN}


def test_steps_are_followed_until_one_does_not_hold() -> None:
    asked: list[str] = []

    def links() -> Iterator[Link]:
        for link in (
            Link("selection", True),
            Link("location", False, "LocationNotSelected"),
            Link("copy", True),
        ):
            asked.append(link.step)
            yield link

    found = followed(links())
    assert asked == ["selection", "location"], "what comes after is not even read"
    assert found.outcome == "LocationNotSelected"
    assert found.broken == Link("location", False, "LocationNotSelected")
    assert not found.delivered


def test_what_cannot_be_known_ends_the_chain_like_what_is_not_so() -> None:
    found = Chain((Link("mailbox", None, "MailboxUnreadable"),))
    assert found.outcome == "MailboxUnreadable"


def test_an_applied_object_is_delivered_even_if_it_is_not_healthy() -> None:
    found = Chain((Link("applied", True), Link("health", False, "Degraded")))
    assert (found.delivered, found.outcome) == (True, "Degraded")
    assert Chain((Link("applied", True), Link("health", True))).outcome == "Healthy"


def test_an_object_is_named_without_its_workspace_which_is_the_placements() -> None:
    found = object_json(ObjectRef("wmw", "apps", "deployments", "shop", "web"))
    assert found == {
        "group": "apps",
        "resource": "deployments",
        "namespace": "shop",
        "name": "web",
    }


def test_the_json_of_a_step_has_what_there_is_to_say() -> None:
    bare = {"step": "location", "table": "destination", "holds": True}
    assert Link("location", True).as_json() == bare
    full = Link("location", False, "LocationNotSelected", ("why",), "label it")
    assert full.as_json() == {
        **bare,
        "holds": False,
        "reason": "LocationNotSelected",
        "messages": ["why"],
        "edit": "label it",
    }
