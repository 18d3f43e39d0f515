"""The overview in words and columns."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from skerry.logic.fleet.overview.overview import Counts, Part
from skerry.logic.fleet.overview.rows import EdgeRow, PlacementRow
from skerry.logic.fleet.overview.text import (
    edge_section,
    heard,
    placement_section,
    sentence,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def path(cluster: str) -> str:
    return f"root:{cluster}"


def test_one_sentence_counts_what_there_is() -> None:
    counts = Counts({"Lost": 2, "Held": 1, "Ready": 9997}, 97, 2, 1)
    assert sentence(counts) == (
        "10,000 edges: 9,997 ready, 1 held, 2 lost · 100 placements: 97 ready, 2 not, 1 unknown"
    )
    assert sentence(Counts({"Ready": 1}, 0, 0, 0)) == "1 edge: 1 ready · 0 placements"
    assert sentence(Counts({}, 0, 0, 0)) == "0 edges · 0 placements"


def test_an_edge_shows_its_age_and_what_was_not_said_is_a_dash() -> None:
    lost = EdgeRow("imw", "berlin", "Lost", NOW - timedelta(seconds=90), problem="silent")
    section = edge_section(Part([lost], 3), NOW, path, wide=False)
    assert dict(zip(section.head, section.rows[0], strict=True)) == {
        "EDGE": "berlin",
        "STATE": "Lost",
        "HEARD": "90s ago",
        "WANTED": "–",  # noqa: RUF001
        "APPLIED": "–",  # noqa: RUF001
        "UNHEALTHY": "–",  # noqa: RUF001
        "HELD": "0",
        "VERSION": "–",  # noqa: RUF001
        "PROBLEM": "silent",
    }
    assert section.footer == "… and 3 more (--limit 0 shows all)"
    wide = edge_section(Part([lost]), NOW, path, wide=True)
    assert dict(zip(wide.head, wide.rows[0], strict=True))["WORKSPACE"] == "root:imw"
    assert wide.footer == ""


def test_a_placement_shows_its_workspace() -> None:
    row = PlacementRow("shop", "web", "False", 1200, 1199, 1100, 99, 1, True, "sick")
    section = placement_section(Part([row]), path, wide=True)
    assert dict(zip(section.head, section.rows[0], strict=True)) == {
        "PLACEMENT": "web",
        "WORKSPACE": "root:shop",
        "READY": "False",
        "DESTINATIONS": "1,200",
        "DELIVERED": "1,199",
        "HEALTHY": "1,100",
        "UNKNOWN": "1",
        "UNHEALTHY": "99",
        "HELD": "yes",
        "PROBLEM": "sick",
    }


def test_an_edge_whose_hub_has_a_faster_clock_was_heard_of_just_now() -> None:
    assert heard(NOW + timedelta(minutes=5), NOW) == "0s ago"
    assert heard(None, NOW) == "never"
