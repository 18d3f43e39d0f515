"""Pure functions of the page, called where they run: in the browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.kit.browser.console import Console, tab

Call = Callable[..., Any]
_CALL = """async ([name, called, given]) => {
  const main = document.querySelector("script[type=module]").src;
  const module = await import(new URL(name, main).href);
  return module[called](...given);
}"""


@pytest.fixture(scope="module")
def call(browser: Browser, console: Console) -> Iterator[Call]:
    """Call a function of a module of the page."""
    with tab(browser, console) as somebody:
        page = somebody.open("login")
        yield lambda name, called, *given: page.evaluate(_CALL, [name, called, given])
        assert not somebody.complaints


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-5, "0s"), (0, "0s"), (59.9, "59s"), (60, "1m"), (3599, "59m"), (3600, "1h"), (172800, "2d")],
)
def test_an_age_is_said_in_its_largest_unit(call: Call, seconds: float, words: str) -> None:
    assert call("format.js", "age", seconds) == words


def test_a_window_has_few_rows_wherever_it_is(call: Call) -> None:
    for top in (0, 3_200, 319_000):
        first, end = call("rows.js", "windowOf", top, 600, 32, 10_000)
        assert first <= top / 32
        assert end >= min(10_000, (top + 600) / 32)
        assert 0 < end - first < 100


@pytest.mark.parametrize("height", [10, 600, 100_000])
def test_a_window_of_any_height_is_bounded(call: Call, height: int) -> None:
    first, end = call("rows.js", "windowOf", 0, height, 16, 10_000)
    assert end - first < 100


@pytest.mark.parametrize(("size", "width"), [(1, 300), (7, 10), (2_480, 288), (10_000, 1_200)])
def test_every_cell_of_a_group_has_a_place_within_the_width(
    call: Call, size: int, width: int
) -> None:
    plan = call("map.js", "layout", size, 8, width)
    assert plan["columns"] * plan["rows"] >= size
    assert plan["columns"] == 1 or plan["columns"] * plan["pitch"] <= width


@pytest.mark.parametrize(
    ("sizes", "width", "number"),
    [([600], 600, 1), ([120] * 5, 600, 3), ([5_000, 5_000], 600, 1), ([3] * 40, 300, 2)],
)
def test_groups_stand_side_by_side_where_that_makes_the_map_less_high(
    call: Call, sizes: list[int], width: int, number: int
) -> None:
    assert call("map.js", "abreast", sizes, 16, width) == number


def test_a_graph_of_many_objects_shows_kinds_instead(call: Call) -> None:
    objects = [{"resource": "pods", "name": f"p{number}"} for number in range(3)]
    stages = [{"object": each, "wanted": 2, "healthy": 1} for each in objects]
    shown = call("graph.js", "objectNodes", stages, 3)
    assert [each["label"] for each in shown] == ["pods p0", "pods p1", "pods p2"]
    wanted = [{"label": "3 pods", "part": 3, "whole": 6}]
    assert call("graph.js", "objectNodes", stages, 2) == wanted


def test_a_difference_shows_its_lines_and_folds_the_rest(call: Call) -> None:
    before = {"b": {"image": "web:1.4"}, "a": list(range(20))}
    after = {"a": list(range(20)), "b": {"image": "web:1.5"}}
    lines = call("difference.js", "differenceLines", before, after)
    changed = [each["text"].strip() for each in lines if each["sign"] not in " …"]
    assert changed == ['"image": "web:1.4"', '"image": "web:1.5"']
    assert (lines[0]["sign"], len(lines) < 12) == ("…", True)
    (same,) = call("difference.js", "differenceLines", after, after)
    assert same["sign"] == "…"


def test_a_patch_replaces_members_cells_and_rows_and_nothing_else(call: Call) -> None:
    data = {"total": 2, "rows": ["a", "b"], "keys": ["env"]}
    patch = {"total": 3, "rows": {"1": "B", "2": "C"}}
    wanted = {"total": 3, "rows": ["a", "B", "C"], "keys": ["env"]}
    assert call("live.js", "patched", data, patch) == wanted


@pytest.mark.parametrize(
    ("sentence", "labels"),
    [
        ("label Location bari: env=prod", '"env": "prod"'),
        ("label SyncTarget bari: env=prod tier-", '"tier": null'),
        ("label Namespace shop: goes=out", '"goes": "out"'),
    ],
)
def test_a_smallest_edit_of_labels_becomes_a_manifest(
    call: Call, sentence: str, labels: str
) -> None:
    assert labels in call("edits.js", "manifestOf", sentence)


@pytest.mark.parametrize(
    "sentence", ["", "add to spec.strategy of EdgePlacement web: x", "label Location a: ???"]
)
def test_an_edit_that_cannot_be_read_is_not_offered(call: Call, sentence: str) -> None:
    assert call("edits.js", "manifestOf", sentence) is None


def test_an_address_survives_being_read_back(call: Call) -> None:
    path = call(
        "router.js", "address", ["edges", "root:inventory", "a/b c"], {"q": "env=é", "x": ""}
    )
    assert path == "/console/edges/root:inventory/a%2Fb%20c?q=env%3D%C3%A9"


def test_what_an_edit_does_is_one_effect_per_edge(call: Call) -> None:
    edges = [
        {"workspace": "root:imw", "name": "oslo", "effect": "changed"},
        {"workspace": "root:imw", "name": "bari", "effect": "gained"},
        {"workspace": "root:imw", "name": "faro", "effect": "lost"},
    ]
    found = call("views/whatif.js", "effectsOf", {"edges": edges})
    assert [(each["name"], each["effect"]) for each in found] == [
        ("bari", 1),
        ("faro", 2),
        ("oslo", 3),
    ]


@pytest.mark.parametrize(
    ("answer", "adverse", "look"),
    [
        ("yes", False, "yes"),
        ("no", False, "no"),
        ("yes", True, "no"),
        ("no", True, "yes"),
        ("unknown", True, "unknown"),
    ],
)
def test_a_condition_that_is_bad_when_it_holds_looks_good_when_it_does_not(
    call: Call, answer: str, adverse: bool, look: str
) -> None:
    assert call("marks.js", "lookOf", answer, adverse) == look
