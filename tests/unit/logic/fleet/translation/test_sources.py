"""Records: what is kept of an object, and how it is found."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.edge_identity import BOOTSTRAP_TYPE
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.customization.customize import CustomizerName
from skerry.logic.fleet.translation.copies import bare_namespace, digest
from skerry.logic.fleet.translation.ownership import Owned, claim_of, recorded_on
from skerry.logic.fleet.translation.sources import (
    Record,
    Records,
    WatchKey,
    lean_definition,
    record_of,
    wide,
)
from skerry.logic.fleet.translation.workspaces import (
    BINDING_WATCH,
    DEFINITION_WATCH,
    NAMESPACE_WATCH,
)

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


# -- what is kept of an object ---------------------------------------------------------------------


def test_a_copy_keeps_no_text_and_whose_it_is_and_a_source_since_when_it_claims_its_name() -> None:
    copy = record_of(MAPS, recorded_on(_object(metadata={"labels": COPY}), Owned("one")))
    assert (copy.text, copy.claim, copy.projected) == (None, None, True)
    assert copy.owned is not None
    assert copy.owned.cluster == "one"
    created = {"creationTimestamp": "2025-01-01T00:00:00Z"}
    source = record_of(MAPS, _object(metadata=created))
    assert (source.owned, source.plain) == (None, None)
    assert source.claim is not None
    assert source.claim.cluster == "one"
    assert source.claim < claim_of("one", _object(metadata={"creationTimestamp": "2026"}))


def test_a_copy_from_before_owners_were_recorded_is_known_by_its_plain_content() -> None:
    notes = {"argocd.argoproj.io/tracking-id": "shop"}
    source = record_of(MAPS, _object(data={"k": "v"}, notes=notes))
    old = record_of(MAPS, _object(data={"k": "v"}, notes=notes, metadata={"labels": COPY}))
    assert old.plain is not None
    assert old.digest != source.digest
    assert old.content == source.digest
    clean = record_of(MAPS, _object(data={"k": "v"}, metadata={"labels": COPY}))
    assert (clean.plain, clean.content) == (None, clean.digest)


@pytest.mark.parametrize("labels", [{}, COPY], ids=["object", "copy"])
def test_of_what_only_has_to_be_known_to_be_there_nothing_else_is_kept(
    labels: dict[str, str],
) -> None:
    presence = MAPS._replace(presence=True)
    record = record_of(presence, _object(data={"k": "v"}, metadata={"labels": labels}))
    assert (record.digest, record.text, record.owned, record.claim) == (b"", None, None, None)
    assert record.name == "page"


@pytest.mark.parametrize(("kind", "is_source"), [(BOOTSTRAP_TYPE, False), ("Opaque", True)])
def test_the_credentials_of_an_edge_are_nobodys_source(kind: str, is_source: bool) -> None:
    assert record_of(wide("", "v1", "secrets"), _object(type=kind)).is_source is is_source


def test_a_generation_is_the_sources_own_or_that_which_its_copy_records() -> None:
    assert record_of(MAPS, _object(metadata={"generation": 7})).generation == 7
    assert record_of(MAPS, _object()).generation == 0
    copy = record_of(MAPS, _object(metadata={"generation": 7, "labels": COPY}))
    assert copy.generation == 0, "the copy's own is the mailbox's affair"


def test_an_object_of_a_local_watch_is_in_the_cluster_that_is_watched() -> None:
    local = WatchKey("one", "example.io", "v1", "widgets")
    assert record_of(local, {"metadata": {"name": "w"}}).cluster == "one"
    assert record_of(local, _object(notes={"kcp.io/cluster": "two"})).cluster == "two"


def _named(labels: dict[str, str], name: str = "n") -> Record:
    return record_of(NAMESPACE_WATCH, {"metadata": {"name": name, "labels": labels}})


def test_few_labels_that_are_equal_are_kept_once_and_many_are_somebodys_own() -> None:
    few = {f"k{n}": "v" for n in range(8)}
    assert _named(few).labels == few
    assert _named(few).labels is _named(dict(few), "m").labels
    many = {f"k{n}": "v" for n in range(9)}
    assert _named(many).labels == many
    assert _named(many).labels is not _named(dict(many), "m").labels
    assert _named({}).labels is record_of(NAMESPACE_WATCH, {"metadata": {"name": "n"}}).labels


def test_a_long_text_is_somebodys_own() -> None:
    def text(size: int) -> bytes | None:
        notes = {"kcp.io/cluster": "one", "long": "x" * size}
        return record_of(NAMESPACE_WATCH, {"metadata": {"name": "n", "annotations": notes}}).text

    assert text(100) is text(100)
    assert text(4096) == text(4096)
    assert text(4096) is not text(4096)


# -- what is kept of bindings and definitions ------------------------------------------------------


def _binding(name: str, *resources: str, **status: Any) -> Any:
    bound = [{"group": "example.io", "resource": each, "schema": {"name": f"v1.{each}"}}
             for each in resources]  # fmt: skip
    obj = {"metadata": {"name": name}, "status": {"boundResources": bound, **status}}
    obj["spec"] = {"reference": {"export": {"path": "root", "name": "e", "other": 1}}}
    return orjson.loads(record_of(BINDING_WATCH, obj).lean or b"")


def test_a_binding_says_which_export_and_which_schemas_and_nothing_else() -> None:
    found = _binding("b", "things", apiExportClusterName="c", phase="Bound", conditions=[])
    assert found == {
        "metadata": {"name": "b"},
        "spec": {"reference": {"export": {"path": "root", "name": "e"}}},
        "status": {
            "apiExportClusterName": "c",
            "boundResources": [
                {
                    "group": "example.io",
                    "resource": "things",
                    "schema": {"name": "v1.things", "identityHash": ""},
                }
            ],
        },
    }


def test_a_binding_that_is_not_bound_yet_brings_nothing_and_has_no_name_of_its_own() -> None:
    assert _binding("b")["metadata"] == {"name": ""}
    record = record_of(BINDING_WATCH, {"metadata": {"name": "b"}, "status": None})
    assert record.lean == record_of(BINDING_WATCH, {"metadata": {"name": "c"}}).lean


def test_one_kind_that_travels_is_enough_for_a_binding_to_go_along() -> None:
    def name(*groups: str) -> str:
        bound = [{"group": each, "resource": "t", "schema": {"name": "s"}} for each in groups]
        obj = {"metadata": {"name": "b"}, "status": {"boundResources": bound}}
        found: str = orjson.loads(record_of(BINDING_WATCH, obj).lean or b"")["metadata"]["name"]
        return found

    assert name("edge.kcp.io") == ""
    assert name("edge.kcp.io", "example.io") == "b"


def _type(**more: Any) -> dict[str, Any]:
    names = {"plural": "widgets", "kind": "Widget", "singular": "widget"}
    version = {"name": "v1", "served": True, "schema": {"large": "x"}}
    spec = {"group": "example.io", "names": names, "scope": "Namespaced",
            "versions": [version, {"name": "v2"}]}  # fmt: skip
    metadata = {"name": "widgets.example.io", "uid": "u", "resourceVersion": "7", "labels": {}}
    return {"metadata": metadata, "spec": spec, **more}


LEAN_SPEC = {
    "group": "example.io",
    "names": {"plural": "widgets", "kind": "Widget"},
    "scope": "Namespaced",
    "versions": [{"name": "v1", "served": True}, {"name": "v2", "served": False}],
}


def test_a_schema_is_kept_without_how_its_objects_look() -> None:
    found = lean_definition(_type())
    assert found == {
        "metadata": {"name": "widgets.example.io", "uid": "u", "resourceVersion": "7"},
        "spec": LEAN_SPEC,
    }


def test_a_definition_says_whether_it_is_established_and_nothing_that_differs_by_workspace() -> (
    None
):
    conditions = [
        {"type": "NamesAccepted", "status": "True"},
        {"type": "Established", "status": "False", "lastTransitionTime": "now"},
    ]
    kind = "CustomResourceDefinition"
    found = lean_definition(_type(kind=kind, status={"conditions": conditions}))
    assert found == {
        "metadata": {"name": "widgets.example.io"},
        "spec": LEAN_SPEC,
        "status": {"conditions": [{"type": "Established", "status": "False"}]},
    }
    for status in (None, {}, {"conditions": None}):
        unborn = lean_definition(_type(kind=kind, status=status))
        assert unborn["status"] == {"conditions": []}


def test_only_bindings_and_definitions_say_something_about_types() -> None:
    assert record_of(MAPS, _object()).lean is None
    assert _named({}).lean is None
    definition = record_of(DEFINITION_WATCH, _type(kind="CustomResourceDefinition"))
    other = record_of(DEFINITION_WATCH, _type(kind="CustomResourceDefinition"))
    assert definition.lean is other.lean is not None


# -- as a table ------------------------------------------------------------------------------------

_place = st.tuples(
    st.sampled_from(["one", "two"]), st.sampled_from(["", "n", "m"]), st.sampled_from("ab")
)


@given(st.lists(st.tuples(_place, st.sampled_from(["put", "customized", "remove"]))))
def test_records_are_what_was_put_and_not_removed_wherever_one_looks(
    history: list[tuple[tuple[str, str, str], str]],
) -> None:
    records, expected = Records(MAPS), dict[tuple[str, str, str], Record]()
    for number, ((cluster, namespace, name), what) in enumerate(history):
        notes = {"kcp.io/cluster": cluster}
        if what == "customized":
            notes["edge.kcp.io/customizer"] = "n/c"
        metadata = {"name": name, "namespace": namespace, "annotations": notes}
        record = record_of(MAPS, {"metadata": {**metadata, "resourceVersion": str(number)}})
        place = (cluster, namespace, name)
        before = expected.pop(place, None)
        if what == "remove":
            assert records.remove(record) is before
            continue
        assert records.is_news(record)
        assert records.put(record) is before
        assert not records.is_news(record)
        expected[place] = record

    assert {(each.cluster, each.namespace, each.name): each for each in records} == expected
    for cluster in ("one", "two"):
        there = {key: each for key, each in expected.items() if key[0] == cluster}
        assert {id(each) for each in records.everything(cluster)} == {*map(id, there.values())}
        for namespace in ("", "n", "m"):
            assert dict(records.within(cluster, namespace)) == {
                key[2]: each for key, each in there.items() if key[1] == namespace
            }
        assert records.customized_by(cluster, CustomizerName("n", "c")) == sorted(
            records.ref(each) for each in there.values() if each.customizer is not None
        )
    for place in [(c, n, x) for c in ("one", "two") for n in ("", "n", "m") for x in "ab"]:
        assert records.get(*place) is expected.get(place)
