"""Reviews and what answers to them mean."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.machinery.admission.webhooks import (
    CallFailed,
    Webhook,
    denial_of,
    response_of,
    review_of,
    webhooks_of,
)

RAW = {"name": "w.example.com", "clientConfig": {"url": "https://h"}}


def made(**more: Any) -> Webhook:
    raw = {**RAW, "admissionReviewVersions": ["v2", "v1", "v1beta1"], **more}
    [found] = webhooks_of({"metadata": {"name": "c"}, "webhooks": [raw]})
    return found


def answer(**response: Any) -> dict[str, Any]:
    said = {"uid": "u", "allowed": True, **response}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": said}


def test_the_first_version_that_both_know_is_spoken() -> None:
    assert made().version == "v1"
    assert made(admissionReviewVersions=["v1beta1", "v1"]).version == "v1beta1"
    assert made(admissionReviewVersions=["v3"]).version == ""


def test_a_review_names_the_request_and_both_objects() -> None:
    review = orjson.loads(review_of(made(), "u", {"operation": "CREATE"}, {"a": 1}, None))
    assert review["request"] == {
        "uid": "u",
        "operation": "CREATE",
        "object": {"a": 1},
        "oldObject": None,
    }


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
MEMBERS = ("uid", "allowed", "status", "patch", "patchType", "auditAnnotations", "warnings")


@given(st.dictionaries(st.sampled_from(MEMBERS), JSON), st.booleans())
def test_whatever_is_answered_is_believed_or_refused(said: dict[str, Any], mutating: bool) -> None:
    try:
        found = response_of(made(), "u", answer(**said), mutating=mutating)
    except CallFailed:
        return
    assert said.get("uid", "u") == "u"
    assert mutating or not found.patch
    code, _, message, details = denial_of(made(), found.status)
    assert 400 <= code < 600
    assert message.startswith('admission webhook "w.example.com" denied the request')
    assert details.keys() <= {"name", "group", "kind", "uid", "causes", "retryAfterSeconds"}


def test_warnings_are_as_many_as_fit() -> None:
    found = response_of(made(), "u", answer(warnings=["x" * 500] * 100), mutating=False)
    assert len(found.warnings) == 16
    assert {len(text) for text in found.warnings} == {256}


def test_annotations_are_bounded() -> None:
    notes = {f"k{number}": "x" * 5000 for number in range(50)}
    found = response_of(made(), "u", answer(auditAnnotations=notes), mutating=False)
    assert len(found.annotations) == 20
    assert max(map(len, found.annotations.values())) == 1024


@pytest.mark.parametrize("status", [{"code": 0}, {"code": 200}, {"code": 700}, {}])
def test_a_refusal_is_never_a_success(status: dict[str, int]) -> None:
    assert denial_of(made(), status)[0] == 400
