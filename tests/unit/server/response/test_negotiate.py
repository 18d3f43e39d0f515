"""Which representation an answer takes: the best liked clause that can be served."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.errors import NotAcceptable
from skerry.server.response.negotiate import Negotiated, negotiate, negotiate_without_tables

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        ("", Negotiated()),
        ("*/*", Negotiated()),
        ("application/*", Negotiated()),
        ("application/json", Negotiated()),
        ("APPLICATION/JSON", Negotiated()),
        ("application/yaml", Negotiated(yaml=True)),
        ("application/vnd.kubernetes.protobuf", Negotiated()),
        ("application/vnd.kubernetes.protobuf, application/yaml", Negotiated(yaml=True)),
        (TABLE, Negotiated(shape="table")),
        (METADATA, Negotiated(shape="metadata")),
        (f"{TABLE},application/json", Negotiated(shape="table")),
        ("application/yaml;as=Table;v=v1;g=meta.k8s.io", Negotiated(yaml=True, shape="table")),
        # Newer shapes may be listed first.
        ("application/json;as=Chart;v=v1;g=meta.k8s.io, application/json", Negotiated()),
        ("application/json;as=Table;v=v9;g=meta.k8s.io, application/json", Negotiated()),
        ("application/json;as=Table;v=v1;g=other.io, */*", Negotiated()),
        ("text/html, application/xhtml+xml, */*;q=0.8", Negotiated()),
        ("application/json;charset", Negotiated()),
        # What is liked better comes first, then what is more specific, then what is named first.
        ("application/json;q=0.5, application/yaml", Negotiated(yaml=True)),
        ("application/json;q=0.5, application/yaml;q=0.9", Negotiated(yaml=True)),
        ("application/yaml;q=0.9, application/json; q=0.95", Negotiated()),
        ("application/yaml;q=0.5, application/json;q=0.5", Negotiated(yaml=True)),
        ("*/*, application/yaml", Negotiated(yaml=True)),
        ("application/*, application/yaml", Negotiated(yaml=True)),
        ("application/yaml;q=0.5, */*", Negotiated()),
        (f"application/json;q=0.9,{TABLE};q=1", Negotiated(shape="table")),
        ("application/yaml;q=much, application/json;q=0.1", Negotiated()),
        ("application/yaml;q=nan, application/json;q=0.1", Negotiated()),
        (
            "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
            Negotiated(shape="metadata"),
        ),
    ],
)
def test_the_best_liked_that_can_be_served(accept: str, wanted: Negotiated) -> None:
    assert negotiate(accept) == wanted


@pytest.mark.parametrize(
    "accept", ["text/html", "application/json;as=Chart;v=v1;g=meta.k8s.io", "image/*"]
)
def test_nothing_that_can_be_served_is_refused_with_what_can(accept: str) -> None:
    with pytest.raises(NotAcceptable, match="application/yaml"):
        negotiate(accept)


def test_where_no_table_is_to_be_had_the_next_clause_counts() -> None:
    assert negotiate_without_tables(f"{TABLE},application/json") == Negotiated()
    assert negotiate_without_tables(METADATA) == Negotiated(shape="metadata")
    with pytest.raises(NotAcceptable):
        negotiate_without_tables(TABLE)


@given(st.text(max_size=60))
def test_any_header_is_answered_or_refused(accept: str) -> None:
    with suppress(NotAcceptable):
        assert negotiate(accept).shape in ("object", "table", "metadata")
