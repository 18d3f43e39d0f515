"""How an answer shows objects, by the header and the query of its request."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from skerry.api.errors import NotAcceptable
from skerry.server.http.message import Request
from skerry.server.response.rendering import representation
from skerry.server.response.representation import Representation
from tests.kit.server.calls import call_of

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
STREAM = "watch=1&sendInitialEvents=true&allowWatchBookmarks=true"


def of(accept: str, query: str = "") -> Representation:
    request = Request("GET", "/", query, {"accept": accept})
    return representation(call_of(request=request), lambda: datetime(2024, 1, 1, tzinfo=UTC))


def shape(accept: str, query: str = "") -> str:
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    return str(of(accept, query).shaped(obj)["kind"])


def test_the_header_says_which_shape() -> None:
    assert shape(TABLE) == "Table"
    assert shape("application/json") == "ConfigMap"
    assert of("application/yaml", "limit=5").content_type == "application/yaml"


def test_a_list_that_is_streamed_is_put_together_from_objects() -> None:
    assert shape(f"{TABLE},application/json", STREAM) == "ConfigMap"
    assert shape(f"{TABLE},application/json", "watch=1") == "Table"
    with pytest.raises(NotAcceptable):
        of(TABLE, STREAM)


def test_the_query_says_how_much_of_an_object_and_how_pretty() -> None:
    plain, asked = of(TABLE), of(TABLE, "includeObject=Object&pretty=true")
    assert plain is not asked
    assert asked.pretty is True
    assert plain.pretty is False
