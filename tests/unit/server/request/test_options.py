"""Continue tokens and options of lists and watches: what is taken, and what Kubernetes refuses."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.errors import BadRequest, Invalid
from skerry.server.http.message import Request
from skerry.server.request.options import (
    ANY_REVISION,
    decode_continue,
    delete_options,
    encode_continue,
    expired_continue,
    list_options,
    manager_of,
    write_options,
)


def asked(query: dict[str, str]) -> Request:
    return Request("GET", "/", urlencode(query))


@given(
    st.text(max_size=40),
    st.integers(1, 2**60) | st.just(ANY_REVISION),
    st.none() | st.integers(0, 10**9),
    st.integers(0, 2**40),
)
def test_a_continue_token_says_again_what_it_was_made_of(
    key: str, revision: int, left: int | None, began: int
) -> None:
    token = encode_continue(key, revision, left, float(began))
    assert decode_continue(token) == (key, revision, left, float(began))


@given(st.text(max_size=30))
def test_what_is_no_token_is_a_bad_request(text: str) -> None:
    try:
        decode_continue(text)
    except BadRequest as error:
        assert "continue key is not valid" in str(error)  # noqa: PT017 - any text may be a token


@pytest.mark.parametrize("revision", [0, -2])
def test_a_token_of_a_revision_that_cannot_be_is_refused(revision: int) -> None:
    with pytest.raises(BadRequest):
        decode_continue(encode_continue("a", revision))


def test_a_list_whose_snapshot_is_gone_may_go_on_with_the_newest() -> None:
    status = expired_continue("pods/a").status()
    assert decode_continue(status["metadata"]["continue"])[:2] == ("pods/a", ANY_REVISION)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"resourceVersion": "x"}, "must be a valid number"),
        ({"resourceVersionMatch": "Exact"}, "forbidden unless resourceVersion is provided"),
        (
            {"resourceVersionMatch": "Exact", "resourceVersion": "0"},
            '"Exact" is forbidden for resourceVersion "0"',
        ),
        ({"resourceVersionMatch": "Newest", "resourceVersion": "1"}, "Unsupported value"),
        ({"sendInitialEvents": "true"}, "forbidden for list"),
        ({"watch": "1", "resourceVersionMatch": "NotOlderThan"}, "unless sendInitialEvents"),
        ({"watch": "1", "sendInitialEvents": "true"}, "requires setting resourceVersionMatch"),
    ],
)
def test_combinations_that_kubernetes_refuses_are_refused(
    query: dict[str, str], words: str
) -> None:
    with pytest.raises(Invalid) as error:
        list_options(asked(query))
    assert words in str(error.value)


@pytest.mark.parametrize(
    "query",
    [
        {"limit": "many"},
        {"timeoutSeconds": "soon"},
        {"labelSelector": "a in b"},
        {"fieldSelector": "a"},
        {"continue": "x"},
        {"continue": encode_continue("a", 5), "resourceVersion": "7"},
    ],
)
def test_what_cannot_be_read_is_a_bad_request(query: dict[str, str]) -> None:
    with pytest.raises(BadRequest):
        list_options(asked(query))


def test_numbers_below_zero_are_none_and_absent_ones_say_nothing() -> None:
    found = list_options(asked({"limit": "-5", "timeoutSeconds": "-1"}))
    assert (found.limit, found.timeout_seconds) == (0, 0)
    assert list_options(asked({})).timeout_seconds is None
    going_on = asked({"continue": encode_continue("a", 5), "resourceVersion": "0"})
    assert list_options(going_on).continue_key == "a"


# -- writes ----------------------------------------------------------------------------------------


def test_a_write_without_options_has_the_manager_its_user_agent_names() -> None:
    found = write_options(Request("POST", "/", headers={"user-agent": "kubectl/v1.32"}), "x")
    assert (found.field_manager, found.dry_run, found.force) == ("kubectl", False, False)
    assert manager_of(Request("POST", "/")) == "unknown"
    assert manager_of(Request("POST", "/", headers={"user-agent": "a\tb/1"})) == "ab"


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"fieldValidation": "Some"}, "fieldValidation"),
        ({"fieldManager": "x" * 129}, "fieldManager"),
        ({"fieldManager": "a\x01"}, "fieldManager"),
        ({"dryRun": "Some"}, "dryRun"),
    ],
)
def test_an_option_of_a_write_that_makes_no_sense_is_refused_by_name(
    query: dict[str, str], field: str
) -> None:
    with pytest.raises(Invalid) as error:
        write_options(asked(query), "CreateOptions")
    assert f"{field}:" in str(error.value)


def test_the_options_of_a_delete_are_those_of_the_body_before_those_of_the_query() -> None:
    request = asked({"propagationPolicy": "Foreground", "gracePeriodSeconds": "5"})
    found = delete_options(request, {})
    assert (found.propagation, found.grace_seconds) == ("Foreground", 5)
    body = {"propagationPolicy": "Orphan", "gracePeriodSeconds": 0, "dryRun": ["All"]}
    found = delete_options(request, body)
    assert (found.propagation, found.grace_seconds, found.dry_run) == ("Orphan", 0, True)


def test_the_old_word_for_orphans_means_a_policy_and_contradicts_another() -> None:
    assert delete_options(asked({"orphanDependents": "true"}), {}).propagation == "Orphan"
    assert delete_options(asked({}), {"orphanDependents": False}).propagation == "Background"
    with pytest.raises(Invalid, match="cannot be both set"):
        delete_options(asked({}), {"orphanDependents": True, "propagationPolicy": "Orphan"})


def test_preconditions_are_taken_from_the_body() -> None:
    found = delete_options(asked({}), {"preconditions": {"uid": "u", "resourceVersion": "7"}})
    assert (found.uid, found.resource_version) == ("u", "7")
    with pytest.raises(BadRequest, match="gracePeriodSeconds"):
        delete_options(asked({}), {"gracePeriodSeconds": "5"})
