"""Which answers of webhooks are reviews of the version that was sent."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.logic.machinery.reviews import ReviewError, type_of_review

GROUP = "admission.k8s.io"
KIND = "AdmissionReview"


def read(answer: Any, version: str = "v1") -> tuple[str, str]:
    return type_of_review(answer, GROUP, KIND, version)


@pytest.mark.parametrize(
    "answer",
    [
        {"apiVersion": f"{GROUP}/v1", "kind": KIND},
        {"apiVersion": f"{GROUP}/v1"},
        {"kind": KIND},
        {"apiVersion": None, "kind": ""},
        {},
    ],
)
def test_what_is_left_out_is_as_it_was_sent(answer: dict[str, Any]) -> None:
    assert read(answer) == (answer.get("apiVersion") or "", answer.get("kind") or "")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ([], "json parse error: json: cannot unmarshal array into Go value"),
        ("text", "json parse error: json: cannot unmarshal string into Go value"),
        (None, "couldn't get version/kind"),
        ({"apiVersion": 1}, "couldn't get version/kind; json parse error"),
        ({"kind": ["x"]}, "couldn't get version/kind; json parse error"),
        ({"kind": "Pod"}, 'no kind "Pod" is registered for version "admission.k8s.io/v1"'),
        ({"apiVersion": "v1"}, 'no kind "AdmissionReview" is registered for version "v1"'),
        ({"apiVersion": f"{GROUP}/v2"}, f'registered for version "{GROUP}/v2"'),
        (
            {"apiVersion": f"{GROUP}/v1beta1"},
            "converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion",
        ),
    ],
)
def test_another_answer_is_refused_in_the_words_of_kubernetes(answer: Any, why: str) -> None:
    with pytest.raises(ReviewError) as refused:
        read(answer)
    assert why in str(refused.value)


def test_an_older_version_is_taken_where_it_was_sent() -> None:
    older = f"{GROUP}/v1beta1"
    assert read({"apiVersion": older, "kind": KIND}, "v1beta1") == (older, KIND)
