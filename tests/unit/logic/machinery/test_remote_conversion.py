"""What conversions are looked up by, and what is believed of an answer."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.machinery.remote_conversion import (
    FETCHED,
    ConversionFailed,
    ConversionNeeded,
    ConversionWebhook,
    objects_of,
)
from skerry.logic.machinery.webhook_clients import client_config

WEBHOOK = ConversionWebhook(client_config({"url": "https://h"}), "v1")
OBJECT: dict[str, Any] = {
    "apiVersion": "ex.io/v1",
    "kind": "Car",
    "metadata": {"name": "a", "uid": "u", "generation": 3},
}


def review(*objects: Any) -> dict[str, Any]:
    response = {"uid": "r", "result": {"status": "Success"}, "convertedObjects": list(objects)}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "ConversionReview",
        "response": response,
    }


def test_what_is_at_the_version_needs_nobody() -> None:
    assert WEBHOOK.convert(OBJECT, "v1") is OBJECT


def test_what_was_fetched_is_found_and_given_anew_each_time() -> None:
    with pytest.raises(ConversionNeeded) as caught:
        WEBHOOK.convert(OBJECT, "v2")
    assert (caught.value.obj, caught.value.api_version) == (OBJECT, "ex.io/v2")
    converted = {**OBJECT, "apiVersion": "ex.io/v2"}
    token = FETCHED.set({("ex.io/v2", orjson.dumps(OBJECT)): orjson.dumps(converted)})
    try:
        found = WEBHOOK.convert(OBJECT, "v2")
        assert found == converted
        assert WEBHOOK.convert(OBJECT, "v2") is not found
    finally:
        FETCHED.reset(token)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(("apiVersion", "kind", "metadata", "spec")), JSON))
def test_whatever_comes_back_is_the_same_object_or_a_failure(changes: dict[str, Any]) -> None:
    answer = review({**OBJECT, "apiVersion": "ex.io/v2", **changes})
    try:
        [found] = objects_of(WEBHOOK, "r", "ex.io/v2", [OBJECT], answer)
    except ConversionFailed:
        return
    assert (found["apiVersion"], found["kind"]) == ("ex.io/v2", "Car")
    kept = {name: found["metadata"][name] for name in ("name", "uid", "generation")}
    assert kept == OBJECT["metadata"]
