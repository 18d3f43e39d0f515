"""CEL over reports: true, false, or an error that is taken for neither."""

from __future__ import annotations

import pytest

from skerry.logic.fleet.rollout.expression import ExpressionError, predicate


def test_an_expression_over_reports_is_true_or_false() -> None:
    restarts = predicate("reports.exists(r, r.restarts > 5)", "reports")
    assert restarts.holds([{"restarts": 1}, {"restarts": 6}])
    assert not restarts.holds([{"restarts": 1}])
    assert not restarts.holds([])


@pytest.mark.parametrize("value", [{"other": 1}, {"restarts": "many"}, {"restarts": None}, 7, None])
def test_a_report_of_another_form_is_an_error(value: object) -> None:
    restarts = predicate("reports.exists(r, r.restarts > 5)", "reports")
    with pytest.raises(ExpressionError):
        restarts.holds([value])


def test_what_is_not_a_truth_is_an_error() -> None:
    first = predicate("reports[0]", "reports")
    assert first.holds([True])
    with pytest.raises(ExpressionError, match="want true or false"):
        first.holds([1])


def test_an_edge_cannot_make_an_evaluation_last() -> None:
    pairs = predicate("reports.all(a, reports.all(b, a >= b || a < b))", "reports")
    assert pairs.holds(list(range(20)))
    with pytest.raises(ExpressionError, match="costs more"):
        pairs.holds(list(range(5000)))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("reports.exists(", "Syntax error"),
        ("rows.size() > 1", "undeclared reference to 'rows'"),
        ("reports.size()", "it is a int; want true or false"),
        ("reports.all(a, reports.all(b, reports.all(c, a == b && b == c)))", "exceeds the budget"),
    ],
)
def test_what_cannot_be_evaluated_is_refused_when_it_is_written(text: str, words: str) -> None:
    with pytest.raises(ExpressionError) as refused:
        predicate(text, "reports")
    assert words in str(refused.value)
