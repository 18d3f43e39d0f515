"""What an inventory's owner reads of grants, and what a word on the command line means."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.logic.fleet.explanation.consent import chosen, consent_text, holds, outstanding, unnoted

BANK: dict[str, Any] = {"workspace": "root:bank"}
EVIL: dict[str, Any] = {"workspace": "root:evil", "placements": 1, "locations": 7}
RECORD: dict[str, Any] = {
    "metadata": {"annotations": {"edge.kcp.io/confirm": "d-1,x"}},
    "mode": "Enforce",
    "grants": 1,
    "enforcingGrants": 0,
    "held": 3,
    "opening": {"id": "open-9"},
    "destinations": {
        "refused": [{**EVIL, "locationNames": ["a"]}],
        "held": [{**BANK, "id": "d-1", "placements": 2, "locations": 1, "locationNames": ["b"]}],
        "heldOmitted": 4,
    },
    "objects": {"held": [{**BANK, "id": "o-2", "objects": 3, "resources": ["secrets"]}]},
}


def ids(found: Any) -> list[str]:
    return [each.id for each in found]


def test_the_report_reports_who_is_refused_what_is_held_and_how_to_confirm() -> None:
    assert consent_text(RECORD, "root:imw").splitlines() == [
        "root:imw: Enforce (1 grants, 0 enforcing)",
        "",
        "REFUSED",
        "  root:evil: 1 EdgePlacements at 7 Locations (a, …)",
        "",
        "HELD UNTIL CONFIRMED",
        "  d-1  root:bank: 2 EdgePlacements at 1 Locations (b)",
        "  o-2  root:bank: 3 objects (secrets)",
        "  open-9  open the workspace: no grant enforces",
        "  … and 4 more",
        "  confirm with: skerry grants confirm ID",
    ]


def test_what_a_record_says_is_text_line_by_line() -> None:
    resources = ["a\x1b[2J\nnothing"]
    held = {**BANK, "id": "o-1", "objects": 1, "resources": resources}
    lines = consent_text({"mode": "Enforce", "objects": {"held": [held]}}, "root:imw").splitlines()
    assert "  o-1  root:bank: 1 objects (a?[2J nothing)" in lines


def test_a_workspace_without_grants_is_reported_to_be_open() -> None:
    assert consent_text(None, "root:imw") == "root:imw is open: it has no LocationGrant\n"
    text = consent_text({"mode": "Observe", "grants": 1}, "root:imw")
    assert "WOULD BE REFUSED\n  nothing" in text
    assert "confirm with" not in text


@pytest.mark.parametrize(
    ("names", "more", "meant"),
    [
        (["d-1"], {}, ["d-1"]),
        (["root:bank"], {}, ["d-1", "o-2"]),
        (["root:bank", "o-2"], {}, ["d-1", "o-2"]),
        ([], {"everything": True}, ["d-1", "o-2"]),
        ([], {"opens": True}, ["open-9"]),
        (["o-2"], {"opens": True}, ["o-2", "open-9"]),
    ],
)
def test_removals_are_named_by_id_or_workspace_and_opening_only_by_itself(
    names: list[str], more: dict[str, bool], meant: list[str]
) -> None:
    asked = {"everything": False, "opens": False, **more}
    assert ids(chosen(RECORD, names, **asked)) == meant


@pytest.mark.parametrize("name", ["d-2", "root:evil", "open-9", "", "bank"])
def test_a_name_that_means_nothing_is_refused(name: str) -> None:
    with pytest.raises(LookupError, match="nothing that is held"):
        chosen(RECORD, [name], everything=False, opens=False)


def test_a_workspace_that_does_not_wait_cannot_be_opened() -> None:
    closed = {key: value for key, value in RECORD.items() if key != "opening"}
    assert ids(holds(closed)) == ["d-1", "o-2"]
    with pytest.raises(LookupError, match="does not wait"):
        chosen(closed, [], everything=False, opens=True)


def test_an_id_is_outstanding_until_it_is_taken_and_unnoted_when_that_did_nothing() -> None:
    assert outstanding(RECORD, ["d-1", "o-2"]) == ["d-1"]
    noted = {**RECORD, "confirmations": [{"id": "d-1"}]}
    assert unnoted(noted, ["d-1", "o-2"]) == ["o-2"]
    assert unnoted(None, ["open-9"]) == []
