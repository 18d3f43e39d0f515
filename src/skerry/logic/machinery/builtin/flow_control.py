"""FlowSchemas and PriorityLevelConfigurations.

Requests are limited by other rules here (``server.flow``), but whoever writes these objects gets
the same answers as from Kubernetes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from skerry.api.errors import FieldError
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.logic.machinery.builtin.rules import (
    Errors,
    Rules,
    RuleTable,
    absent,
    child,
    each,
    member,
    unsupported,
)
from skerry.logic.machinery.names import dns1123_label, dns1123_subdomain

_GROUP = "flowcontrol.apiserver.k8s.io"
_MAX_PRECEDENCE = 10_000
_MAX_QUEUES = 10_000_000
# What a 64-bit hash can deal a hand from.
_MAX_HASH_BITS = 60
_VERBS = frozenset(
    ("get", "list", "create", "update", "delete", "deletecollection", "patch", "watch", "proxy")
)
_METHODS = ("ByNamespace", "ByUser")
_Raw = Mapping[str, Any]


# -- FlowSchemas -----------------------------------------------------------------------------


def _default_schema(schema: Object) -> None:
    absent(child(schema, "spec"), "matchingPrecedence", 1000)
    absent(schema, "status", {})


def _validate_schema(schema: Object) -> Errors:
    spec = schema.get("spec") or {}
    errors = _precedence_errors(spec.get("matchingPrecedence") or 0, schema["metadata"])
    method = spec.get("distinguisherMethod")
    if method is not None and method.get("type") not in _METHODS:
        errors.append(unsupported("spec.distinguisherMethod.type", method, _METHODS))
    level, path = member(spec, "priorityLevelConfiguration", "name"), "spec."
    path += "priorityLevelConfiguration.name"
    if level:
        errors += each(path, level, dns1123_subdomain(level))
    else:
        errors.append(FieldError.required(path, "must reference a priority level"))
    for number, rule in enumerate(spec.get("rules") or ()):
        errors += _rule_errors(rule or {}, f"spec.rules[{number}]")
    return errors


def _precedence_errors(precedence: int, metadata: _Raw) -> Errors:
    path = "spec.matchingPrecedence"
    if precedence <= 0:
        return [FieldError.invalid(path, precedence, "must be a positive value")]
    if precedence > _MAX_PRECEDENCE:
        text = f"must not be greater than {_MAX_PRECEDENCE}"
        return [FieldError.invalid(path, precedence, text)]
    if precedence == 1 and metadata.get("name") != "exempt":
        text = "only the schema named 'exempt' may have matchingPrecedence 1"
        return [FieldError.invalid(path, precedence, text)]
    return []


def _rule_errors(rule: _Raw, path: str) -> Errors:
    errors: Errors = []
    subjects = rule.get("subjects") or ()
    if not subjects:
        text = "subjects must contain at least one value"
        errors.append(FieldError.required(f"{path}.subjects", text))
    for number, subject in enumerate(subjects):
        errors += _subject_errors(subject or {}, f"{path}.subjects[{number}]")
    resource, other = rule.get("resourceRules") or (), rule.get("nonResourceRules") or ()
    if not resource and not other:
        text = "at least one of resourceRules and nonResourceRules has to be non-empty"
        errors.append(FieldError.required(path, text))
    for number, each_rule in enumerate(resource):
        errors += _resource_rule_errors(each_rule or {}, f"{path}.resourceRules[{number}]")
    for number, each_rule in enumerate(other):
        errors += _path_rule_errors(each_rule or {}, f"{path}.nonResourceRules[{number}]")
    return errors


_SUBJECTS = {"ServiceAccount": "serviceAccount", "User": "user", "Group": "group"}


def _subject_errors(subject: _Raw, path: str) -> Errors:
    kind = subject.get("kind")
    if kind not in _SUBJECTS:
        return [unsupported(f"{path}.kind", kind or "", tuple(_SUBJECTS))]
    errors: Errors = []
    for other, field in _SUBJECTS.items():
        found = subject.get(field)
        where = f"{path}.{field}"
        if other != kind:
            if found is not None:
                text = f"{field} is forbidden when subject kind is not '{other}'"
                errors.append(FieldError.forbidden(where, text))
        elif found is None:
            text = f"{field} is required when subject kind is '{other}'"
            errors.append(FieldError.required(where, text))
        else:
            errors += _named_errors(found, kind, where)
    return errors


def _named_errors(found: _Raw, kind: str, path: str) -> Errors:
    name = found.get("name")
    if not name:
        errors = [FieldError.required(f"{path}.name")]
    elif kind == "ServiceAccount" and name != "*":
        errors = each(f"{path}.name", name, dns1123_subdomain(name))
    else:
        errors = []
    if kind != "ServiceAccount":
        return errors
    namespace = found.get("namespace")
    if namespace:
        return errors + each(f"{path}.namespace", namespace, dns1123_label(namespace))
    text = "must specify namespace for service account"
    return [*errors, FieldError.required(f"{path}.namespace", text)]


def _verb_errors(rule: _Raw, path: str) -> Errors:
    verbs, where = rule.get("verbs") or (), f"{path}.verbs"
    if not verbs:
        return [FieldError.required(where, "verbs must contain at least one value")]
    if "*" in verbs:
        return _alone_errors(verbs, where, "verbs")
    if not _VERBS.issuperset(verbs):
        return [unsupported(where, verbs, tuple(sorted(_VERBS)))]
    return []


def _alone_errors(values: Sequence[str], path: str, what: str) -> Errors:
    if "*" not in values or len(values) == 1:
        return []
    return [FieldError.invalid(path, values, f"if '*' is present, must not specify other {what}")]


def _path_rule_errors(rule: _Raw, path: str) -> Errors:
    errors = _verb_errors(rule, path)
    paths, where = rule.get("nonResourceURLs") or (), f"{path}.nonResourceURLs"
    if not paths:
        text = "nonResourceURLs must contain at least one value"
        return [*errors, FieldError.required(where, text)]
    if "*" in paths:
        return errors + _alone_errors(paths, where, "non-resource URLs")
    for number, text in enumerate(paths):
        why = _path_error(text)
        if why:
            errors.append(FieldError.invalid(f"{where}[{number}]", text, why))
    return errors


def _path_error(path: str) -> str:
    if not path:
        return "must not be empty"
    if path == "/":
        return ""
    if not path.startswith("/"):
        return "must start with slash"
    if " " in path:
        return "must not contain white-space"
    if "//" in path:
        return "must not contain double slash"
    if "*" in path and not (path.count("*") == 1 and path.endswith("/*")):
        return "wildcard can only do suffix matching"
    return ""


def _resource_rule_errors(rule: _Raw, path: str) -> Errors:
    errors = _verb_errors(rule, path)
    for field, one, many in (
        ("apiGroups", "api group", "api groups"),
        ("resources", "resource", "resources"),
    ):
        values = rule.get(field) or ()
        if not values:
            text = f"resource rules must supply at least one {one}"
            errors.append(FieldError.required(f"{path}.{field}", text))
        errors += _alone_errors(values, f"{path}.{field}", many)
    namespaces, where = rule.get("namespaces") or (), f"{path}.namespaces"
    if not namespaces and not rule.get("clusterScope"):
        text = "resource rules that are not cluster scoped must supply at least one namespace"
        return [*errors, FieldError.required(where, text)]
    if "*" in namespaces:
        return errors + _alone_errors(namespaces, where, "namespaces")
    intro = "each member of this list must be '*' or a DNS-1123 label; "
    for number, name in enumerate(namespaces):
        why = [intro + text for text in dns1123_label(name)]
        errors += each(f"{where}[{number}]", name, why)
    return errors


# -- PriorityLevelConfigurations -------------------------------------------------------------


def _default_level(level: Object) -> None:
    limited = member(level, "spec", "limited")
    if isinstance(limited, dict):
        absent(limited, "nominalConcurrencyShares", 30)
        absent(limited, "lendablePercent", 0)
        queuing = member(limited, "limitResponse", "queuing")
        if isinstance(queuing, dict):
            for name, value in (("handSize", 8), ("queues", 64), ("queueLengthLimit", 50)):
                if not queuing.get(name):
                    queuing[name] = value
    absent(level, "status", {})


def _validate_level(level: Object) -> Errors:
    spec, name = level.get("spec") or {}, level["metadata"].get("name")
    kind, errors = spec.get("type") or "", []
    if (name == "exempt") != (kind == "Exempt"):
        text = "type must be 'Exempt' if and only if name is 'exempt'"
        errors.append(FieldError.invalid("spec.type", kind, text))
    limited, exempt = spec.get("limited"), spec.get("exempt")
    if kind == "Exempt":
        if limited is not None:
            text = "must be nil if the type is not Limited"
            errors.append(FieldError.forbidden("spec.limited", text))
        return errors + _number_errors(exempt or {}, "spec.exempt")
    if kind != "Limited":
        return [*errors, unsupported("spec.type", kind, ("Exempt", "Limited"))]
    if exempt is not None:
        errors.append(FieldError.forbidden("spec.exempt", "must be nil if the type is Limited"))
    if limited is None:
        text = "must not be empty when type is Limited"
        return [*errors, FieldError.required("spec.limited", text)]
    return errors + _limited_errors(limited)


def _limited_errors(limited: _Raw) -> Errors:
    path = "spec.limited"
    errors = _number_errors(limited, path)
    borrowing = limited.get("borrowingLimitPercent")
    if borrowing is not None and borrowing < 0:
        text = "if specified, must be a non-negative integer"
        errors.append(FieldError.invalid(f"{path}.borrowingLimitPercent", borrowing, text))
    return errors + _response_errors(limited.get("limitResponse") or {}, f"{path}.limitResponse")


def _number_errors(level: _Raw, path: str) -> Errors:
    errors: Errors = []
    shares, lendable = level.get("nominalConcurrencyShares"), level.get("lendablePercent")
    if shares is not None and shares < 0:
        text = "must be a non-negative integer"
        errors.append(FieldError.invalid(f"{path}.nominalConcurrencyShares", shares, text))
    if lendable is not None and not 0 <= lendable <= 100:
        text = "must be between 0 and 100, inclusive"
        errors.append(FieldError.invalid(f"{path}.lendablePercent", lendable, text))
    return errors


def _response_errors(response: _Raw, path: str) -> Errors:
    kind, queuing = response.get("type") or "", response.get("queuing")
    if kind == "Reject":
        if queuing is None:
            return []
        text = "must be nil if limited.limitResponse.type is not Limited"
        return [FieldError.forbidden(f"{path}.queuing", text)]
    if kind != "Queue":
        return [unsupported(f"{path}.type", kind, ("Queue", "Reject"))]
    if queuing is None:
        text = "must not be empty if limited.limitResponse.type is Limited"
        return [FieldError.required(f"{path}.queuing", text)]
    return _queuing_errors(queuing, f"{path}.queuing")


def _queuing_errors(queuing: _Raw, path: str) -> Errors:
    length, queues, hand = (
        queuing.get(name) or 0 for name in ("queueLengthLimit", "queues", "handSize")
    )
    errors: Errors = []
    if length <= 0:
        errors.append(FieldError.invalid(f"{path}.queueLengthLimit", length, "must be positive"))
    if queues <= 0:
        errors.append(FieldError.invalid(f"{path}.queues", queues, "must be positive"))
    elif queues > _MAX_QUEUES:
        text = f"must not be greater than {_MAX_QUEUES}"
        errors.append(FieldError.invalid(f"{path}.queues", queues, text))
    where = f"{path}.handSize"
    if hand <= 0:
        errors.append(FieldError.invalid(where, hand, "must be positive"))
    elif hand > queues:
        text = f"should not be greater than queues ({queues})"
        errors.append(FieldError.invalid(where, hand, text))
    elif _entropy_bits(queues, hand) > _MAX_HASH_BITS:
        text = (
            f"required entropy bits of deckSize {queues} and handSize {hand} should not be "
            f"greater than {_MAX_HASH_BITS}"
        )
        errors.append(FieldError.invalid(where, hand, text))
    return errors


def _entropy_bits(deck: int, hand: int) -> int:
    """Return how many bits choose *hand* of *deck* in order, counted no further than needed."""
    ways = 1
    for number in range(min(hand, _MAX_HASH_BITS + 1)):
        ways *= deck - number
    return (ways - 1).bit_length()


def _always(validate: Callable[[Object], Errors]) -> Rules:
    return Rules(
        default=_default_schema if validate is _validate_schema else _default_level,
        validate_create=validate,
        validate_update=lambda new, _: validate(new),
    )


RULES: RuleTable = {
    GroupResource(_GROUP, "flowschemas"): _always(_validate_schema),
    GroupResource(_GROUP, "prioritylevelconfigurations"): _always(_validate_level),
}
