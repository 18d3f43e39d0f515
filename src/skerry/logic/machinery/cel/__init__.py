"""CEL validation rules of custom resources.

Expressions are parsed by the CEL project's own parser (``cel_expr_python``). They are checked and
run here, because its evaluator cannot hold what Kubernetes puts into expressions: types declared
by a schema, quantities and addresses, times inside objects, costs. The tests run both evaluators
against each other on everything both understand.
"""

from skerry.logic.machinery.cel.evaluation import check_rules
from skerry.logic.machinery.cel.rules import compiled_rules, rules_of

__all__ = ["check_rules", "compiled_rules", "rules_of"]
