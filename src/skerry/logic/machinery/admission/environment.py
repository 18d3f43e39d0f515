"""What CEL expressions of admission see.

``object``, ``oldObject`` and ``params`` may be anything and are declared ``dyn``; ``request`` and
``namespaceObject`` have known fields, so that a misspelt one is found when a policy is written.
``authorizer`` asks what the user of the request may do. ``variables`` holds the policy's own
variables: each is computed when an expression first reads it, and at most once for a request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from skerry.api.objects import Object
from skerry.logic.machinery.cel import types
from skerry.logic.machinery.cel.compiler import Program
from skerry.logic.machinery.cel.functions import declare
from skerry.logic.machinery.cel.standard import to_timestamp
from skerry.logic.machinery.cel.typed import COST, CostExceeded, Scope, charge
from skerry.logic.machinery.cel.types import CelType
from skerry.logic.machinery.cel.values import EvaluationError, name_type


def _object(**fields: CelType) -> CelType:
    return CelType("object", fields={name: (name, kind) for name, kind in fields.items()})


_TEXT = types.STRING
_TEXTS = types.list_of(_TEXT)
_GVK = _object(group=_TEXT, version=_TEXT, kind=_TEXT)
_GVR = _object(group=_TEXT, version=_TEXT, resource=_TEXT)
REQUEST: Final = _object(
    kind=_GVK,
    resource=_GVR,
    subResource=_TEXT,
    requestKind=_GVK,
    requestResource=_GVR,
    requestSubResource=_TEXT,
    name=_TEXT,
    namespace=_TEXT,
    operation=_TEXT,
    userInfo=_object(username=_TEXT, uid=_TEXT, groups=_TEXTS, extra=types.map_of(_TEXT, _TEXTS)),
    dryRun=types.BOOL,
    options=types.DYN,
)

_TIME_FIELDS = ("creationTimestamp", "deletionTimestamp")
_NAMESPACE_FIELDS: Final = {
    "metadata": _object(
        name=_TEXT,
        generateName=_TEXT,
        namespace=_TEXT,
        labels=types.map_of(_TEXT, _TEXT),
        annotations=types.map_of(_TEXT, _TEXT),
        uid=_TEXT,
        creationTimestamp=types.TIMESTAMP,
        deletionTimestamp=types.TIMESTAMP,
        deletionGracePeriodSeconds=types.INT,
        generation=types.INT,
        resourceVersion=_TEXT,
        finalizers=_TEXTS,
    ),
    "spec": _object(finalizers=_TEXTS),
    "status": _object(phase=_TEXT),
}
NAMESPACE: Final = replace(_object(**_NAMESPACE_FIELDS), nullable=True)

AUTHORIZER: Final = CelType("kubernetes.authorization.Authorizer")
RESOURCE_CHECK: Final = CelType("kubernetes.authorization.ResourceCheck")

# Expressions see these; ``params`` and ``variables`` only where the policy declares some.
COMMON: Final[Mapping[str, CelType]] = {
    "object": types.DYN,
    "oldObject": types.DYN,
    "request": REQUEST,
    "namespaceObject": NAMESPACE,
}
WITH_AUTHORIZER: Final[Mapping[str, CelType]] = {
    **COMMON,
    "authorizer": AUTHORIZER,
    "authorizer.requestResource": RESOURCE_CHECK,
}


def namespace_value(namespace: Object | None) -> Object | None:
    """Return what expressions see of a Namespace; None for objects that are in none."""
    if namespace is None:
        return None
    seen: Object = {}
    for part, kind in _NAMESPACE_FIELDS.items():
        found = namespace.get(part) or {}
        seen[part] = {name: found[name] for name in kind.fields if name in found}
    metadata = seen["metadata"]
    for name in _TIME_FIELDS:
        if name in metadata:
            metadata[name] = to_timestamp(metadata[name])
    return seen


# -- the authorizer --------------------------------------------------------------------------

# Kubernetes counts a check as this much of an expression's budget, because an authorizer may be a
# webhook far away; so an expression can make two and a policy 28. Ours answers from memory: what
# a check really takes is charged apart, or every policy with one would be sent to a worker.
CHECK_COST: Final = 350_000
_CHECK_UNITS: Final = 300
# In a scope: how many checks the running expression may still make.
CHECKS: Final = "\0checks"


@dataclass(frozen=True, slots=True)
class Check:
    """One question to the authorizer; with ``path`` it is about no resource.

    ``account`` is the namespace and name of a ServiceAccount to ask about in place of the user.
    """

    account: tuple[str, str] | None = None
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    verb: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The authorizer's answer."""

    allowed: bool
    reason: str = ""


Decide = Callable[[Check], Verdict]


class _Asking:
    """A question as it grows in an expression, and whom to ask."""

    __slots__ = ("check", "decide")

    def __init__(self, decide: Decide, check: Check) -> None:
        self.decide = decide
        self.check = check


class AuthorizerValue(_Asking):
    """``authorizer``: asks for the user of the request, or for a ServiceAccount."""


class GroupCheck(_Asking):
    """A question about an API group."""


class ResourceCheck(_Asking):
    """A question about a resource."""


class PathCheck(_Asking):
    """A question about a path that is no resource."""


class DecisionValue:
    """What a check found."""

    __slots__ = ("verdict",)

    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict


_G, _P, _D = (
    f"kubernetes.authorization.{name}" for name in ("GroupCheck", "PathCheck", "Decision")
)
_A, _R = AUTHORIZER.name, RESOURCE_CHECK.name
for _type, _type_name in (
    (AuthorizerValue, _A),
    (GroupCheck, _G),
    (ResourceCheck, _R),
    (PathCheck, _P),
    (DecisionValue, _D),
):
    name_type(_type, _type_name)


@declare("serviceAccount", f"{_A}.(string, string) {_A}")
def _service_account(asking: _Asking, namespace: str, name: str) -> AuthorizerValue:
    return AuthorizerValue(asking.decide, replace(asking.check, account=(namespace, name)))


@declare("path", f"{_A}.(string) {_P}")
def _path(asking: _Asking, path: str) -> PathCheck:
    if not path:
        raise EvaluationError("path must not be empty")
    return PathCheck(asking.decide, replace(asking.check, path=path))


@declare("group", f"{_A}.(string) {_G}")
def _group(asking: _Asking, group: str) -> GroupCheck:
    return GroupCheck(asking.decide, replace(asking.check, group=group))


@declare("resource", f"{_G}.(string) {_R}")
def _resource(asking: _Asking, resource: str) -> ResourceCheck:
    return ResourceCheck(asking.decide, replace(asking.check, resource=resource))


@declare("subresource", f"{_R}.(string) {_R}")
def _subresource(asking: _Asking, subresource: str) -> ResourceCheck:
    return ResourceCheck(asking.decide, replace(asking.check, subresource=subresource))


@declare("namespace", f"{_R}.(string) {_R}")
def _namespace(asking: _Asking, namespace: str) -> ResourceCheck:
    return ResourceCheck(asking.decide, replace(asking.check, namespace=namespace))


@declare("name", f"{_R}.(string) {_R}")
def _name(asking: _Asking, name: str) -> ResourceCheck:
    return ResourceCheck(asking.decide, replace(asking.check, name=name))


# RBAC does not know selectors: a check with one is a check without.
@declare("fieldSelector", f"{_R}.(string) {_R}")
@declare("labelSelector", f"{_R}.(string) {_R}")
def _selector(asking: _Asking, _: str) -> _Asking:
    return asking


@declare("check", f"{_R}.(string) {_D}", f"{_P}.(string) {_D}", metered=True)
def _check(scope: Scope, asking: _Asking, verb: str) -> DecisionValue:
    scope[CHECKS] -= 1
    if scope[CHECKS] < 0:
        raise CostExceeded
    charge(scope, _CHECK_UNITS)
    return DecisionValue(asking.decide(replace(asking.check, verb=verb)))


@declare("allowed", f"{_D}.() bool")
def _allowed(decision: DecisionValue) -> bool:
    return decision.verdict.allowed


@declare("reason", f"{_D}.() string")
def _reason(decision: DecisionValue) -> str:
    return decision.verdict.reason


# An authorizer that cannot answer denies; there is no third outcome here.
@declare("errored", f"{_D}.() bool")
def _errored(_: DecisionValue) -> bool:
    return False


@declare("error", f"{_D}.() string")
def _error(_: DecisionValue) -> str:
    return ""


# -- variables -------------------------------------------------------------------------------


class Variables(dict[str, Any]):
    """The policy's variables: computed when first read, an error as often as they are read.

    They have a scope of their own: where an expression reads one inside a loop, the loop's
    variables are none of its business.
    """

    __slots__ = ("_failed", "_programs", "_reader", "_scope")

    def __init__(
        self, programs: Mapping[str, Program], faulty: Mapping[str, str], scope: Scope
    ) -> None:
        """*scope* is what expressions run in; it pays for what they are first to read."""
        super().__init__()
        self._programs = programs
        self._reader = scope
        self._scope: Scope = {**scope, "variables": self}
        self._failed = {name: _failure(name, why) for name, why in faulty.items()}

    def __contains__(self, name: object) -> bool:
        return name in self._programs or name in self._failed

    def __missing__(self, name: str) -> Any:
        if name in self._failed:
            raise EvaluationError(self._failed[name])
        program, scope = self._programs[name], self._scope
        scope[COST] = self._reader[COST] - program.cost
        scope[CHECKS] = self._reader[CHECKS]
        try:
            value = self[name] = program.run(scope)
        except EvaluationError as error:
            self._failed[name] = _failure(name, str(error))
            raise EvaluationError(self._failed[name]) from error
        finally:
            self._reader[COST], self._reader[CHECKS] = scope[COST], scope[CHECKS]
        return value


def _failure(name: str, why: str) -> str:
    return f'composited variable "{name}" fails to evaluate: {why}'
