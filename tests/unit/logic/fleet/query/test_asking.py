"""What a person types becomes the spec they mean."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skerry.logic.fleet.query.asking import Asked, AskingError, flags_of, resource_named, spec_of
from skerry.logic.fleet.query.plan import plan_of

SERVED = [
    ("apps", "deployments", ("deployment", "deploy")),
    ("", "pods", ("pod", "po")),
    ("example.io", "deployments", ("deployment",)),
]


def test_the_question_of_the_manual_becomes_its_spec() -> None:
    asked = Asked(
        "apps",
        "deployments",
        namespaces=("shop",),
        filter='report.healthy != "True"',
        by=("location.labels.region",),
        aggregates=("count", "p99:status.startMillis", "slow=max:status.startMillis"),
        top=("5:status.restarts",),
        order_by=("p99:desc", "region"),
        limit=7,
        stale_after="10m",
    )
    spec = spec_of(asked)
    assert spec == {
        "from": {
            "rows": "Copies",
            "apiGroup": "apps",
            "resources": ["deployments"],
            "namespaces": ["shop"],
        },
        "filter": 'report.healthy != "True"',
        "groupBy": [{"name": "region", "value": "location.labels.region"}],
        "aggregates": [
            {"name": "count", "function": "Count"},
            {"name": "p99", "function": "Percentile", "percentile": 99,
             "of": "status.startMillis"},
            {"name": "slow", "function": "Max", "of": "status.startMillis"},
            {"name": "top_restarts", "function": "Top", "k": 5, "of": "status.restarts"},
        ],
        "orderBy": [{"column": "p99", "descending": True}, {"column": "region"}],
        "limit": 7,
        "staleAfter": "10m",
    }  # fmt: skip
    assert plan_of(spec)[1] == []


def test_rows_are_counted_unless_something_else_is_asked() -> None:
    assert spec_of(Asked("apps", "deployments"))["aggregates"] == [
        {"name": "count", "function": "Count"}
    ]
    selected = spec_of(Asked("apps", "deployments", select=("location.name", "a=status.x + 1")))
    assert [column["name"] for column in selected["select"]] == ["name", "a"]
    assert "aggregates" not in selected


def test_no_two_columns_have_one_name() -> None:
    spec = spec_of(Asked("apps", "deployments", by=("status.a", "obj.a", "status.x == 'y'")))
    assert [column["name"] for column in spec["groupBy"]] == ["a", "a2", "value"]


@pytest.mark.parametrize(
    "asked",
    [
        Asked(aggregates=("median:status.x",)),
        Asked(aggregates=("sum",)),
        Asked(aggregates=("p100:status.x",)),
        Asked(aggregates=("count:status.x",)),
        Asked(top=("status.x",)),
        Asked(top=("five:status.x",)),
        Asked(order_by=("x:down",)),
    ],
)
def test_a_malformed_short_form_is_refused_with_what_is_wanted(asked: Asked) -> None:
    with pytest.raises(AskingError, match="want"):
        spec_of(asked)


@pytest.mark.parametrize(
    ("asked", "flags"),
    [
        (Asked(by=("a",)), "--by"),
        (Asked(aggregates=("count",)), "--agg"),
        (Asked(top=("5:a",)), "--top"),
        (Asked(show="a"), "--show"),
        (Asked(by=("a",), aggregates=("sum:b",), top=("5:a",)), "--by, --agg, --top"),
    ],
)
def test_flags_of_groups_beside_select_are_refused_by_name(asked: Asked, flags: str) -> None:
    with pytest.raises(AskingError, match=f"--select .*groups: leave {flags} out"):
        spec_of(replace(asked, select=("location.name",)))


def test_what_the_hub_refuses_beside_select_is_handed_on() -> None:
    spec = spec_of(Asked("apps", "deployments", select=("location.name",), having="count > 1"))
    assert {error.field for error in plan_of(spec)[1]} == {"spec.having"}


def test_show_without_top_is_refused() -> None:
    with pytest.raises(AskingError, match="want --top K:EXPR too"):
        spec_of(Asked("apps", "deployments", show="location.name"))


def test_what_was_typed_is_known_by_its_flags() -> None:
    assert flags_of(Asked()) == []
    typed = Asked(rows="Upsynced", namespaces=("a",), filter="x", order_by=("y",), limit=1)
    assert flags_of(typed) == ["--rows", "--namespace", "--filter", "--order-by", "--limit"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("deployments", ("apps", "deployments")),
        ("deploy", ("apps", "deployments")),
        ("pod", ("", "pods")),
        ("deployments.example.io", ("example.io", "deployments")),
        ("widgets.example.io", ("example.io", "widgets")),
    ],
)
def test_a_resource_is_known_by_any_of_its_names(text: str, found: tuple[str, str]) -> None:
    assert resource_named(text, SERVED) == found


def test_an_unknown_resource_is_refused() -> None:
    with pytest.raises(AskingError, match="no such resource"):
        resource_named("widgets", SERVED)
