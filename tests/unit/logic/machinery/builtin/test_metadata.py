"""Rules every object's metadata obeys."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.objects import Object
from skerry.logic.machinery.builtin import field_manager_errors, validate_metadata
from skerry.logic.machinery.names import dns1123_subdomain
from tests.kit.counting import growth


def metadata_errors(
    old: Object | None = None, *, namespaced: bool = True, **metadata: Any
) -> list[str]:
    obj = {"metadata": metadata}
    former = None if old is None else {"metadata": old}
    return [str(e) for e in validate_metadata(obj, namespaced, dns1123_subdomain, former)]


GOOD: dict[str, Any] = {"name": "a", "namespace": "b"}


def test_a_name_and_a_namespace_are_enough() -> None:
    assert metadata_errors(**GOOD) == []
    assert metadata_errors(namespaced=False, name="a") == []


def test_a_nameless_object_is_refused() -> None:
    assert metadata_errors() == [
        "metadata.name: Required value: name or generateName is required",
        "metadata.namespace: Required value",
    ]


def test_a_namespace_where_none_belongs_is_refused() -> None:
    assert metadata_errors(namespaced=False, **GOOD) == [
        "metadata.namespace: Forbidden: not allowed on this type"
    ]


def test_generate_name_may_end_with_a_dash() -> None:
    assert metadata_errors(generateName="web-", **GOOD) == []
    assert metadata_errors(generateName="Web-", **GOOD)[0].startswith(
        'metadata.generateName: Invalid value: "Web-": a lowercase RFC 1123 subdomain'
    )


def test_bad_labels_and_annotations_are_named() -> None:
    errors = metadata_errors(labels={"a b": "c d"}, annotations={"-": ""}, **GOOD)
    assert [error.split(":")[0] for error in errors] == [
        "metadata.labels",
        "metadata.labels",
        "metadata.annotations",
    ]


def test_annotation_keys_may_be_upper_case_in_their_prefix() -> None:
    assert metadata_errors(annotations={"Example.com/a": "b"}, **GOOD) == []


def test_annotations_have_a_total_size() -> None:
    value = "x" * (256 * 1024)
    assert metadata_errors(annotations={"a": value}, **GOOD) == [
        "metadata.annotations: Too long: may not be more than 262144 bytes"
    ]
    assert metadata_errors(annotations={"a": value[1:]}, **GOOD) == []


def test_owners_must_be_complete_and_only_one_may_control() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}
    assert metadata_errors(ownerReferences=[owner], **GOOD) == []
    assert metadata_errors(ownerReferences=[{}], **GOOD) == [
        'metadata.ownerReferences.apiVersion: Invalid value: "": version must not be empty',
        'metadata.ownerReferences.kind: Invalid value: "": kind must not be empty',
        'metadata.ownerReferences.name: Invalid value: "": name must not be empty',
        'metadata.ownerReferences.uid: Invalid value: "": uid must not be empty',
    ]
    (error,) = metadata_errors(ownerReferences=[owner, {**owner, "name": "q"}], **GOOD)
    assert error.endswith('Found "true" in references for Pod/p and Pod/q')
    event = {**owner, "kind": "Event"}
    assert metadata_errors(ownerReferences=[event], **GOOD)[0].endswith(
        "/v1, Kind=Event is disallowed from being an owner"
    )


def test_the_two_deletion_finalizers_exclude_each_other() -> None:
    assert metadata_errors(finalizers=["orphan"], **GOOD) == []
    errors = metadata_errors(finalizers=["orphan", "foregroundDeletion"], **GOOD)
    assert errors[0].endswith("finalizer orphan and foregroundDeletion cannot be both set")
    assert metadata_errors(finalizers=["a b"], **GOOD)


OLD: dict[str, Any] = {
    **GOOD,
    "uid": "u",
    "resourceVersion": "1",
    "creationTimestamp": "t",
    "generation": 2,
}


@pytest.mark.parametrize("field", ["name", "namespace", "uid", "creationTimestamp"])
def test_identity_cannot_change(field: str) -> None:
    changed = {**OLD, field: "other"}
    assert metadata_errors(OLD, **changed) == [
        f'metadata.{field}: Invalid value: "other": field is immutable'
    ]


def test_an_update_needs_a_resource_version_and_a_growing_generation() -> None:
    changed = {**OLD, "resourceVersion": "", "generation": 1}
    assert metadata_errors(OLD, **changed) == [
        'metadata.resourceVersion: Invalid value: "": must be specified for an update',
        "metadata.generation: Invalid value: 1: must not be decremented",
    ]


def test_a_dying_object_gains_no_finalizers_but_loses_them() -> None:
    dying: dict[str, Any] = {**OLD, "deletionTimestamp": "t", "finalizers": ["a/b"]}
    assert metadata_errors(dying, **{**dying, "finalizers": []}) == []
    assert metadata_errors(dying, **{**dying, "finalizers": ["a/b", "c/d"]}) == [
        (
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being "
            'deleted, found new finalizers []string{"c/d"}'
        )
    ]


def test_managed_fields_are_well_formed() -> None:
    entry = {"operation": "Merge", "fieldsType": "FieldsV2", "manager": "m" * 129}
    assert metadata_errors(managedFields=[entry], **GOOD) == [
        'metadata.managedFields[0].operation: Invalid value: "Merge": must be `Apply` or `Update`',
        'metadata.managedFields[0].fieldsType: Invalid value: "FieldsV2": must be `FieldsV1`',
        "metadata.managedFields[0].manager: Too long: may not be more than 128 bytes",
    ]
    assert field_manager_errors("kubectl") == []
    assert str(field_manager_errors("a\n")[0]).endswith("invalid character U+000A (at position 1)")


@given(
    st.dictionaries(
        st.sampled_from(["labels", "annotations"]),
        st.dictionaries(st.text(max_size=10), st.text(max_size=10), max_size=3),
    )
)
def test_any_labels_and_annotations_are_judged_without_a_failure(fields: Object) -> None:
    for error in metadata_errors(**GOOD, **fields):
        assert error.startswith("metadata.")


def test_owners_beyond_the_limit_are_refused_by_number() -> None:
    owners = [{"apiVersion": "v1", "kind": "K", "name": str(i), "uid": "u"} for i in range(1001)]
    assert metadata_errors(**GOOD, ownerReferences=owners) == [
        "metadata.ownerReferences: Too many: 1001: must have at most 1000 items"
    ]


_FRESH = itertools.count()


@pytest.mark.parametrize(
    "metadata",
    [
        lambda n: {"ownerReferences": [{"controller": True}] * min(n, 1000)},
        lambda n: {"managedFields": [{"manager": "\x01" * n}]},
        lambda n: {"finalizers": ["/a/b"] * n},
        # Names that nobody has asked for before: what is known of a name is remembered.
        lambda n: {"labels": {f"{next(_FRESH)} {i}": " " for i in range(n)}},
        lambda n: {"annotations": {f"{next(_FRESH)} {i}": " " for i in range(n)}},
        lambda n: {"managedFields": [{"manager": "m", "operation": "x"}] * n},
    ],
)
def test_refusing_metadata_takes_work_in_proportion_to_it(
    metadata: Callable[[int], dict[str, Any]],
) -> None:
    def check(size: int) -> Callable[[], object]:
        made = metadata(size)
        return lambda: metadata_errors(**made)

    assert growth(check, 300) < 2.3
