"""Expressions that make one value of another: what conversions between versions are written in.

The value is seen as ``self``, typed by its schema. What comes out must be JSON again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from skerry.api.schema import Schema
from skerry.logic.machinery.cel.compiler import CompileError, Program, compile_expression
from skerry.logic.machinery.cel.conversion import Convert, conversion
from skerry.logic.machinery.cel.evaluation import STUMBLES
from skerry.logic.machinery.cel.typed import COST, READ_COST, CostExceeded, Scope, charge
from skerry.logic.machinery.cel.types import declared
from skerry.logic.machinery.cel.values import EvaluationError, UInt
from skerry.logic.machinery.work import Work

_PLAIN = (bool, int, float, str, type(None))


class TransformationError(ValueError):
    """The expression means nothing, or nothing that can be stored."""


@dataclass(frozen=True, slots=True)
class Transformation:
    """A compiled expression."""

    _program: Program
    _convert: Convert | None

    @classmethod
    def compiled(cls, text: str, schema: Schema) -> Transformation:
        """Return what *text* makes of values of *schema*."""
        kind = declared(schema)
        if kind is None:
            raise TransformationError("the field has no type that expressions could see")
        try:
            program = compile_expression(text, {"self": kind})
        except CompileError as error:
            raise TransformationError(str(error)) from error
        return cls(program, conversion(schema, program.reads))

    def apply(self, value: Any, work: Work) -> Any:
        """Return what the expression makes of *value*, as JSON, within *work*."""
        seen = value if self._convert is None else self._convert(value)
        scope: Scope = {"self": seen, COST: work.left - self._program.cost}
        try:
            charge(scope, 0)
            return _stored(scope, self._program.run(scope))
        except EvaluationError as error:
            raise TransformationError(str(error)) from error
        except CostExceeded as error:
            raise TransformationError("operation cancelled: actual cost limit exceeded") from error
        except STUMBLES as error:
            raise TransformationError(f"no such overload: {error}") from error
        finally:
            work.left = scope[COST]


def _stored(scope: Scope, value: Any) -> Any:
    """Return *value* as JSON, charged as it goes: members may be shared, in JSON they are not."""
    if isinstance(value, UInt):
        return int(value)
    if isinstance(value, _PLAIN):
        charge(scope, len(value) * READ_COST if isinstance(value, str) else READ_COST)
        return value
    if isinstance(value, list):
        charge(scope, len(value))
        return [_stored(scope, each) for each in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        charge(scope, len(value))
        return {key: _stored(scope, each) for key, each in value.items()}
    raise TransformationError(f"a {type(value).__name__} cannot be stored as JSON")
