"""What the reports of a destination come to."""

from __future__ import annotations

from skerry.api.refs import ObjectRef
from skerry.logic.fleet.rollout.evidence import Item, evidence
from skerry.logic.fleet.rollout.expression import predicate
from skerry.logic.fleet.rollout.verdict import Evidence
from skerry.logic.fleet.summary.freshness import LIVE, lapsed
from skerry.logic.fleet.summary.health import Health
from skerry.logic.fleet.summary.report import Report

WEB = Item(ObjectRef("", "apps", "deployments", "shop", "web"), True)
CONFIG = Item(ObjectRef("", "", "configmaps", "shop", "c"), False)
FINE = Report(delivered=True, reported=True, health=Health("True", "", ""))
APPLIED = Report(delivered=True)


def found(*reports: tuple[Item, Report | None], expression: str = "") -> Evidence:
    asked = predicate(expression, "reports") if expression else None
    return evidence("c", reports, LIVE, translated=True, fail_when=asked)


def test_well_is_who_has_everything_and_nothing_of_it_unwell() -> None:
    assert found((WEB, FINE), (CONFIG, APPLIED)).well
    assert not found((WEB, FINE), (CONFIG, None)).well
    assert not found((WEB, APPLIED)).well
    assert found((Item(WEB.ref), APPLIED)).well


def test_unwell_is_named() -> None:
    sick = Report(True, True, Health("False", "ImagePull", "no such image"))
    one = found((CONFIG, APPLIED), (WEB, sick))
    assert (one.well, one.unwell) == (False, True)
    assert one.message == "deployments shop/web: ImagePull: no such image"


def test_a_lasting_refusal_is_not_taken_for_another() -> None:
    assert found((WEB, Report(health=Health("False", "Rejected", "")))).refusal == "Rejected"
    assert not found((WEB, Report(health=Health("False", "Unreachable", "")))).refusal


def test_a_silent_edge_is_evidence_of_nothing() -> None:
    one = evidence("c", [(WEB, FINE)], lapsed("2026-01-01T00:00:00Z"), translated=True)
    assert (one.heard, one.well, one.unwell) == (False, False, False)
    never = evidence("c", [(WEB, FINE)], None, translated=True)
    assert never.silent_since == ""


def test_an_expression_sees_numbers_and_has_no_answer_where_there_are_none() -> None:
    many = Report(True, True, FINE.health, numbers=(("restarts", 7),))
    asked = "reports.exists(r, r.restarts > 5)"
    assert found((WEB, many), expression=asked).fails is True
    assert found((WEB, FINE), expression=asked).fails is None
    assert found((WEB, FINE), expression="reports.exists(r, r.healthy == 'False')").fails is False


def test_numbers_of_an_edge_do_not_replace_our_own_names() -> None:
    lying = Report(True, True, Health("False", "X", ""), numbers=(("healthy", 1), ("name", 2)))
    assert found((WEB, lying), expression="reports.exists(r, r.name != 'web')").fails is False
