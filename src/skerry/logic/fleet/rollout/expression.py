"""CEL in a Rollout: ``failWhen`` over one destination's reports, ``holds`` over a query's rows.

Values are dynamic, since reports are as various as kinds. What an expression may cost is bounded
when it is written, as far as it is known then, and again when it runs: edges decide how many
reports there are and what they say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from skerry.logic.machinery.cel.compiler import CompileError, Program, compile_expression
from skerry.logic.machinery.cel.evaluation import STUMBLES
from skerry.logic.machinery.cel.typed import COST, CostExceeded, Scope, charge
from skerry.logic.machinery.cel.types import DYN, list_of
from skerry.logic.machinery.cel.values import EvaluationError

# Elements that the estimate assumes, and what it may come to: three nested loops are refused.
_ASSUMED_ELEMENTS: Final = 1_000
_MAX_ESTIMATE: Final = 100_000_000
# What a run may cost: some tens of milliseconds, for thousands of reports.
_MAX_COST: Final = 300_000.0


class ExpressionError(ValueError):
    """The expression means nothing, costs too much, or has no result."""


@dataclass(frozen=True, slots=True)
class Predicate:
    """A compiled expression that is true or false of a list."""

    variable: str
    program: Program

    def holds(self, values: list[Any]) -> bool:
        """Return what the expression says of *values*; raises ``ExpressionError``."""
        scope: Scope = {self.variable: values, COST: _MAX_COST - self.program.cost}
        try:
            charge(scope, 0)
            found = self.program.run(scope)
        except EvaluationError as error:
            raise ExpressionError(str(error)) from error
        except CostExceeded as error:
            raise ExpressionError("it costs more than one evaluation may") from error
        except STUMBLES as error:
            raise ExpressionError(f"no such overload: {error}") from error
        if not isinstance(found, bool):
            raise ExpressionError(f"it is a {type(found).__name__}; want true or false")
        return found


def predicate(text: str, variable: str) -> Predicate:
    """Return *text* compiled, with a list called *variable*; raises ``ExpressionError``."""
    try:
        program = compile_expression(text, {variable: list_of(DYN, _ASSUMED_ELEMENTS)})
    except CompileError as error:
        raise ExpressionError(str(error)) from error
    if program.type.name not in ("bool", "dyn"):
        raise ExpressionError(f"it is a {program.type}; want true or false")
    if program.worst > _MAX_ESTIMATE:
        text = f"estimated cost {program.worst:.0f} for {_ASSUMED_ELEMENTS} elements"
        raise ExpressionError(f"{text} exceeds the budget {_MAX_ESTIMATE}")
    return Predicate(variable, program)
