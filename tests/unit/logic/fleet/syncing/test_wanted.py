"""Which objects of a mailbox are wishes, and what they ask for."""

from __future__ import annotations

import pytest

from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.logic.fleet.syncing.wanted import Options, goes_down, revision_of, wanted
from tests.kit.chain.synced_objects import whole_object

CONFIG_MAPS = GroupResource("", "configmaps")


def with_annotations(**annotations: str) -> Object:
    named = {f"edge.kcp.io/{name.replace('_', '-')}": text for name, text in annotations.items()}
    return {"metadata": {"annotations": named}}


def test_a_wish_is_what_travels_with_its_identity_and_revision() -> None:
    row = wanted(CONFIG_MAPS, "v1", whole_object())
    assert row is not None
    assert (row.version, row.uid, row.revision) == ("v1", "u", 5)
    assert row.content["data"] == {"a": "1"}
    assert "status" not in row.content
    assert row.options == Options()


def test_what_is_absent_or_being_deleted_is_no_wish() -> None:
    assert wanted(CONFIG_MAPS, "v1", None) is None
    terminating = whole_object()
    terminating["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    assert wanted(CONFIG_MAPS, "v1", terminating) is None


def test_a_report_is_no_wish_until_something_is_placed_under_its_name() -> None:
    report = whole_object()
    report["metadata"]["annotations"]["edge.kcp.io/upsynced"] = "true"
    assert goes_down(CONFIG_MAPS, report), "the label of a copy is on it"
    report["metadata"]["labels"] = {}
    assert not goes_down(CONFIG_MAPS, report)


def test_what_every_cluster_makes_for_itself_is_no_wish() -> None:
    assert not goes_down(CONFIG_MAPS, {"metadata": {"name": "kube-root-ca.crt"}})


def test_a_release_record_is_a_wish_only_where_it_was_copied_once() -> None:
    secrets = GroupResource("", "secrets")
    release: Object = {"metadata": {"name": "r"}, "type": "helm.sh/release.v1"}
    assert not goes_down(secrets, release)
    copied = {"name": "r", "labels": {"edge.kcp.io/projected": "yes"}}
    assert goes_down(secrets, {**release, "metadata": copied})


@pytest.mark.parametrize(
    ("obj", "options"),
    [
        ({"metadata": {}}, Options()),
        (with_annotations(create_only="true"), Options(create_only=True)),
        (with_annotations(downsync_overwrite="false"), Options(create_only=True)),
        (with_annotations(downsync_overwrite="true", create_only="yes"), Options()),
        (with_annotations(orphan_on_delete="true"), Options(orphan=True)),
        (with_annotations(adopt="true", recreate="true"), Options(adopt=True, recreate=True)),
    ],
)
def test_owners_ask_by_annotations(obj: Object, options: Options) -> None:
    assert Options.of(obj) == options


@pytest.mark.parametrize(("text", "number"), [("7", 7), ("", 0), (None, 0), ("x7", 0)])
def test_a_revision_is_a_number_or_none(text: object, number: int) -> None:
    assert revision_of(text) == number
