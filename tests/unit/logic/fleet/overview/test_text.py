"""The overview in words and columns."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from skerry.api.refs import CLUSTER_ANNOTATION
from skerry.logic.fleet.overview.overview import Counts, Overview, Part
from skerry.logic.fleet.overview.rows import EdgeRow, PlacementRow
from skerry.logic.fleet.overview.text import (
    as_json,
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


def test_states_are_named_from_the_best_to_the_worst_in_words() -> None:
    counts = Counts({"Refused": 1, "Unhealthy": 2, "Syncing": 3, "NotJoined": 4}, 0, 1, 0)
    assert sentence(counts) == (
        "10 edges: 4 not joined yet, 3 syncing, 2 unhealthy, 1 refusing objects"
        " · 1 placement: 1 not"
    )


@pytest.mark.parametrize(
    ("ready", "not_ready", "not_judged", "words"),
    [
        (1, 0, 0, "1 placement: 1 ready"),
        (0, 0, 2, "2 placements: 2 unknown"),
        (2, 1, 0, "3 placements: 2 ready, 1 not"),
    ],
)
def test_a_number_that_is_none_is_left_out_of_the_sentence(
    ready: int, not_ready: int, not_judged: int, words: str
) -> None:
    assert sentence(Counts({}, ready, not_ready, not_judged)) == f"0 edges · {words}"


def test_every_row_has_as_many_cells_as_its_table_has_columns() -> None:
    edges = [EdgeRow("imw", "a", "Ready"), EdgeRow("imw", "b", "Held", NOW, "1", 1, 2, 3, 4, "p")]
    placements = [PlacementRow("w", "web", "True"), PlacementRow("w", "db", "Unknown", problem="x")]
    for wide in (False, True):
        for section in (
            edge_section(Part(edges), NOW, path, wide=wide),
            placement_section(Part(placements), path, wide=wide),
        ):
            assert {len(row) for row in section.rows} == {len(section.head)}
            assert len(section.states) == len(section.rows)
            assert section.head[-1] == "PROBLEM"


def test_states_of_rows_are_beside_them_for_whoever_colours_them() -> None:
    edges = [EdgeRow("imw", "a", "Lost"), EdgeRow("imw", "b", "Ready")]
    assert edge_section(Part(edges), NOW, path, wide=False).states == ("Lost", "Ready")
    placements = [PlacementRow("w", "web", "False")]
    assert placement_section(Part(placements, 1200), path, wide=False).states == ("False",)


def test_a_narrow_table_of_placements_has_the_workspace_and_not_every_number() -> None:
    row = PlacementRow("shop", "web", "True", 3, unhealthy=1)
    section = placement_section(Part([row], 1200), path, wide=False)
    assert section.rows == (("web", "root:shop", "True", "3", "–", "–", "–", ""),)  # noqa: RUF001
    assert section.footer == "… and 1,200 more (--limit 0 shows all)"


def overview() -> Overview:
    found, annotations = Overview(), {CLUSTER_ANNOTATION: "imw"}
    ready = {"type": "Ready", "status": "True"}
    lost = {"type": "Ready", "status": "False", "message": "silent"}
    for name, condition in (("well", ready), ("lost", lost)):
        status: dict[str, Any] = {
            "conditions": [condition],
            "lastSyncerHeartbeatTime": "2026-03-01T11:59:00Z",
        }
        found.put_edge({"metadata": {"name": name, "annotations": annotations}, "status": status})
    found.put_edge({"metadata": {"name": "new", "annotations": annotations}})
    status = {"conditions": [ready], "destinationCount": 2, "deliveredDestinations": 2}
    found.put_placement({"metadata": {"name": "web", "annotations": annotations}, "status": status})
    found.put_placement({"metadata": {"name": "db", "annotations": annotations}})
    return found


def test_programs_get_every_row_with_null_for_what_was_not_said() -> None:
    made = as_json(overview(), path, problems=False)
    assert [each["name"] for each in made["edges"]] == ["lost", "new", "well"]
    lost, new, well = made["edges"]
    assert lost == {
        "name": "lost",
        "workspace": "root:imw",
        "state": "Lost",
        "lastHeard": "2026-03-01T11:59:00Z",
        "syncerVersion": None,
        "objects": {"wanted": None, "applied": None, "unhealthy": None, "held": 0},
        "problem": "silent",
    }
    assert (new["lastHeard"], well["problem"]) == (None, None)
    assert [(each["name"], each["ready"], each["delivered"]) for each in made["placements"]] == [
        ("db", "Unknown", None), ("web", "True", 2),
    ]  # fmt: skip
    assert made["counts"] == {
        "edges": {"Lost": 1, "NotJoined": 1, "Ready": 1},
        "placements": {"ready": 1, "notReady": 0, "unknown": 1},
    }
    assert json.loads(json.dumps(made)) == made


def test_programs_that_ask_for_problems_get_those_and_the_counts_of_all() -> None:
    made = as_json(overview(), path, problems=True)
    assert [each["name"] for each in made["edges"]] == ["lost"]
    assert [each["name"] for each in made["placements"]] == ["db"]
    assert made["counts"] == as_json(overview(), path, problems=False)["counts"]
