"""A bug is found by its log and says nothing to the client."""

from __future__ import annotations

import json

from skerry.server.http.failures import failure, where
from skerry.server.http.message import Request


def broken() -> None:
    raise KeyError("a secret thing")


def met() -> Exception:
    try:
        broken()
    except KeyError as error:
        return error
    raise AssertionError


def test_the_innermost_place_is_named() -> None:
    place = where(met())
    assert place.startswith(__file__)
    assert int(place.rpartition(":")[2]) == broken.__code__.co_firstlineno + 1
    assert where(ValueError("never raised")) == ""


def test_the_client_gets_a_status_without_any_of_it() -> None:
    answer = failure(Request("GET", "/api/v1/pods", ""), met())
    assert isinstance(answer.body, bytes)
    status = json.loads(answer.body)
    assert (answer.status, status["reason"], status["code"]) == (500, "InternalError", 500)
    assert b"secret" not in answer.body
    assert b".py" not in answer.body
