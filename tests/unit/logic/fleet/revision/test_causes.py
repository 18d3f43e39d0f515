"""What is different is named, with whoever made it so."""

from __future__ import annotations

from hypothesis import given

from skerry.logic.fleet.revision.causes import Cause, causes, last_manager
from tests.kit.chain import revisions
from tests.kit.chain.revisions import manifest, ref


@given(revisions.contents, revisions.contents)
def test_everything_that_differs_is_a_cause_and_nothing_else(
    before: dict[str, bytes], now: dict[str, bytes]
) -> None:
    found = causes(manifest(before), manifest(now))
    different = {n for n in before.keys() | now.keys() if before.get(n) != now.get(n)}
    assert {each.item.name for each in found} == different
    assert {each.item.name for each in found if not each.resource_version} == different - set(now)


def test_the_first_revision_has_no_causes() -> None:
    assert causes(None, manifest({"a": b"1"})) == ()


def test_a_cause_says_what_is_known() -> None:
    bare = {"item": {"group": "", "resource": "configmaps", "namespace": "shop", "name": "a"}}
    assert Cause(ref("a")).as_object() == bare
    more = {"resourceVersion": "9", "manager": "m" * 128, "user": "ann"}
    assert Cause(ref("a"), "9", "m" * 200, "ann").as_object() == {**bare, **more}


def test_who_wrote_the_status_made_no_change() -> None:
    fields = [
        {"manager": "kubectl", "time": "2026-01-02T00:00:00Z"},
        {"manager": "helm", "time": "2026-01-01T00:00:00Z"},
        {"manager": "agent", "time": "2026-01-03T00:00:00Z", "subresource": "status"},
    ]
    assert last_manager({"metadata": {"managedFields": fields}}) == "kubectl"
    assert last_manager({"metadata": {}}) == ""
