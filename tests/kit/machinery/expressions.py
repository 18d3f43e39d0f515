"""CEL expressions computed, and the words of those that cannot be."""

from __future__ import annotations

from typing import Any

from skerry.logic.machinery.cel.compiler import CompileError, compile_expression
from skerry.logic.machinery.cel.typed import COST
from skerry.logic.machinery.cel.types import DYN
from skerry.logic.machinery.cel.values import EvaluationError


def computed(text: str, limit: float = 1_000_000, **variables: Any) -> Any:
    """Return the value of *text*, in which *variables* are of any type."""
    program = compile_expression(text, dict.fromkeys(variables, DYN))
    return program.run({**variables, COST: limit})


def complaint(text: str, **variables: Any) -> str:
    """Return why *text* cannot be compiled or computed, the first line; empty where it can."""
    try:
        computed(text, **variables)
    except (CompileError, EvaluationError) as error:
        return str(error).split("\n", 1)[0]
    return ""
