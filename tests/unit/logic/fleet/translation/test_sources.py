"""Records: what is kept of an object, and how it is found."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.refs import ObjectRef
from skerry.logic.fleet.customization.customize import CustomizerName
from skerry.logic.fleet.translation.copies import bare_namespace, digest
from skerry.logic.fleet.translation.sources import Records, WatchKey, record_of, wide
from skerry.logic.fleet.translation.workspaces import BINDING_WATCH, NAMESPACE_WATCH

MAPS = wide("", "v1", "configmaps")
PAGE = ObjectRef("", "", "configmaps", "n", "page")
COPY = {"edge.kcp.io/projected": "yes"}


def _object(name: str = "page", rv: str = "1", **more: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "n", "uid": "u", "resourceVersion": rv}
    notes = {"kcp.io/cluster": "one", **more.pop("notes", {})}
    return {"metadata": {**metadata, "annotations": notes, **more.pop("metadata", {})}, **more}


def test_a_source_keeps_the_text_of_its_copy_and_the_digest_that_the_copy_will_have() -> None:
    record = record_of(MAPS, _object(data={"k": "v"}, metadata={"finalizers": ["f"]}))
    assert record.is_source
    assert record.copy()["data"] == {"k": "v"}
    assert "finalizers" not in record.copy()["metadata"]
    made = {**record.copy(), "metadata": {**record.copy()["metadata"], "labels": COPY}}
    assert record.digest == digest(MAPS.group_resource, made)
    assert record_of(MAPS, {**made, "metadata": {**made["metadata"], "uid": "x"}}).digest == (
        record.digest
    )


def test_a_copy_with_notes_of_tools_differs_from_the_one_its_source_wants_now() -> None:
    notes = {"argocd.argoproj.io/tracking-id": "shop"}
    source = record_of(MAPS, _object(data={"k": "v"}, notes=notes))
    assert source.digest == record_of(MAPS, _object(data={"k": "v"})).digest
    before = record_of(MAPS, _object(data={"k": "v"}, notes=notes, metadata={"labels": COPY}))
    after = record_of(MAPS, _object(data={"k": "v"}, metadata={"labels": COPY}))
    assert before.digest != source.digest == after.digest


@pytest.mark.parametrize(
    ("key", "obj", "is_source", "is_foreign"),
    [
        (MAPS, _object(), True, True),
        (MAPS, _object(metadata={"labels": COPY}), False, False),
        (MAPS, _object(metadata={"deletionTimestamp": "now"}), False, True),
        (MAPS, _object("kube-root-ca.crt"), False, False),
        (MAPS._replace(presence=True), _object(), False, True),
    ],
    ids=["source", "copy", "being deleted", "system", "presence"],
)
def test_what_an_object_is_to_the_translator(
    key: WatchKey, obj: dict[str, Any], is_source: bool, is_foreign: bool
) -> None:
    record = record_of(key, obj)
    assert (record.is_source, record.is_foreign) == (is_source, is_foreign)


def test_labels_are_kept_where_objects_can_be_selected_by_them() -> None:
    labels = {"labels": {"go": "yes"}}
    assert record_of(MAPS, _object(metadata=labels)).labels == {}
    namespace = bare_namespace("n")
    namespace["metadata"]["labels"] = labels["labels"]
    assert record_of(NAMESPACE_WATCH, namespace).labels == {"go": "yes"}


def test_a_binding_that_brings_nothing_that_travels_says_the_same_under_any_name() -> None:
    def lean(name: str, group: str) -> bytes | None:
        bound = {"group": group, "resource": "things", "schema": {"name": "s"}}
        obj = {"metadata": {"name": name}, "status": {"boundResources": [bound]}}
        return record_of(BINDING_WATCH, obj).lean

    assert lean("a", "edge.kcp.io") == lean("b", "edge.kcp.io")
    assert lean("a", "example.io") != lean("b", "example.io")


def test_records_are_found_by_cluster_namespace_and_name_until_they_are_removed() -> None:
    records = Records(MAPS)
    page = record_of(MAPS, _object())
    assert records.put(page) is None
    assert not records.is_news(page)
    newer = record_of(MAPS, _object(rv="2"))
    assert records.is_news(newer)
    assert records.put(newer) is page
    assert records.get("one", "n", "page") is newer
    assert list(records.within("one", "n")) == ["page"]
    assert list(records.everything("one")) == list(records) == [newer]
    assert list(records.everything("two")) == []
    assert records.ref(newer) == PAGE
    assert records.remove(page) is newer
    assert records.remove(page) is None
    assert list(records) == []


def test_records_in_no_namespace_are_apart_from_those_of_namespaces() -> None:
    records = Records(NAMESPACE_WATCH)
    space = record_of(NAMESPACE_WATCH, {"metadata": {"name": "n"}})
    page = record_of(MAPS, _object())
    records.put(space)
    records.put(page)
    assert list(records.within("*")) == ["n"]
    assert list(records.within("one")) == []
    assert set(map(id, records)) == {id(space), id(page)}
    assert records.remove(space) is space
    assert list(records) == [page]


@pytest.mark.parametrize(
    ("key", "obj", "matters"),
    [
        (MAPS, _object("kube-root-ca.crt"), False),
        (MAPS, _object("kube-root-ca.crt", metadata={"labels": COPY}), True),
        (wide("", "v1", "serviceaccounts"), _object("default"), False),
        (wide("", "v1", "secrets"), _object(type="helm.sh/release.v1"), True),
        (MAPS, _object(), True),
    ],
    ids=["of each namespace", "copied by somebody", "account", "release", "source"],
)
def test_what_each_namespace_has_for_itself_matters_to_nobody(
    key: WatchKey, obj: dict[str, Any], matters: bool
) -> None:
    assert Records(key).matters(record_of(key, obj)) is matters


def test_equal_texts_of_namespaces_are_kept_once() -> None:
    def text(cluster: str) -> bytes | None:
        notes = {"annotations": {"kcp.io/cluster": cluster}}
        return record_of(NAMESPACE_WATCH, {"metadata": {"name": "n", **notes}}).text

    assert text("one") is text("two")


def test_what_names_a_customizer_is_found_by_it_as_long_as_it_does() -> None:
    records, name = Records(MAPS), CustomizerName("n", "c")
    own = {"edge.kcp.io/customizer": "c"}
    records.put(record_of(MAPS, _object(notes=own)))
    assert records.customized_by("one", name) == [PAGE]
    assert records.customized_by("two", name) == []
    records.put(record_of(MAPS, _object(rv="2")))
    assert records.customized_by("one", name) == []
    records.put(record_of(MAPS, _object(rv="3", notes=own)))
    records.remove(record_of(MAPS, _object()))
    assert records.customized_by("one", name) == []


def test_equal_identities_are_one_object() -> None:
    records = Records(MAPS)
    one = record_of(MAPS, _object())
    two = record_of(MAPS, _object(notes={"kcp.io/cluster": "two"}))
    assert records.ref(one) is records.ref(two)


def test_a_watch_names_a_bound_kind_by_its_identity() -> None:
    assert wide("apps", "v1", "deployments", identity="h").gvr.resource == "deployments:h"
    assert MAPS.gvr.resource == "configmaps"
