"""What a pod asks of the scheduler: affinity, tolerations, spread, gates."""

from __future__ import annotations

from collections.abc import Sequence

from skerry.api.errors import FieldError
from skerry.api.objects import Object
from skerry.logic.machinery.builtin.paths import NOT_POSITIVE
from skerry.logic.machinery.builtin.rules import Errors, each, unsupported
from skerry.logic.machinery.names import (
    dns1123_label,
    dns1123_subdomain,
    label_value,
    qualified_name,
)
from skerry.logic.machinery.selectors import label_selector_errors

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_UNSATISFIABLE = ("DoNotSchedule", "ScheduleAnyway")
_INCLUSION = ("Honor", "Ignore")


def scheduling_errors(spec: Object, path: str) -> Errors:
    """Return what is wrong with everything the scheduler reads of a pod spec."""
    errors: Errors = []
    affinity = spec.get("affinity")
    if affinity:
        errors += _affinity_errors(affinity, f"{path}.affinity")
    gates = spec.get("schedulingGates")
    if gates:
        errors += _gate_errors(gates, f"{path}.schedulingGates")
    constraints = spec.get("topologySpreadConstraints")
    if constraints:
        errors += _spread_errors(constraints, f"{path}.topologySpreadConstraints")
    tolerations = spec.get("tolerations")
    if tolerations:
        errors += toleration_errors(tolerations, f"{path}.tolerations")
    return errors


def _affinity_errors(affinity: Object, path: str) -> Errors:
    errors: Errors = []
    node = affinity.get("nodeAffinity")
    if node:
        where = f"{path}.nodeAffinity"
        if node.get(_REQUIRED) is not None:
            errors += node_selector_errors(node[_REQUIRED], f"{where}.{_REQUIRED}")
        for index, term in enumerate(node.get(_PREFERRED) or ()):
            item = f"{where}.{_PREFERRED}[{index}]"
            errors += _weight_errors(term, item)
            errors += node_term_errors(term.get("preference") or {}, f"{item}.preference")
    for name in ("podAffinity", "podAntiAffinity"):
        if affinity.get(name):
            errors += _pod_affinity_errors(affinity[name], f"{path}.{name}")
    return errors


def _weight_errors(term: Object, path: str) -> Errors:
    weight = term.get("weight") or 0
    if 0 < weight <= 100:
        return []
    return [FieldError.invalid(f"{path}.weight", weight, "must be in the range 1-100")]


def node_selector_errors(selector: Object, path: str) -> Errors:
    """Return what is wrong with a NodeSelector."""
    terms = selector.get("nodeSelectorTerms")
    if not terms:
        text = "must have at least one node selector term"
        return [FieldError.required(f"{path}.nodeSelectorTerms", text)]
    errors: Errors = []
    for index, term in enumerate(terms):
        errors += node_term_errors(term, f"{path}.nodeSelectorTerms[{index}]")
    return errors


def node_term_errors(term: Object, path: str) -> Errors:
    """Return what is wrong with one term of a NodeSelector."""
    errors: Errors = []
    for index, item in enumerate(term.get("matchExpressions") or ()):
        errors += _expression_errors(item, f"{path}.matchExpressions[{index}]")
    for index, item in enumerate(term.get("matchFields") or ()):
        errors += _field_errors(item, f"{path}.matchFields[{index}]")
    return errors


def _expression_errors(item: Object, path: str) -> Errors:
    operator, values = item.get("operator") or "", item.get("values") or ()
    errors: Errors = []
    if operator in ("In", "NotIn"):
        if not values:
            text = "must be specified when `operator` is 'In' or 'NotIn'"
            errors.append(FieldError.required(f"{path}.values", text))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            errors.append(FieldError.forbidden(f"{path}.values", text))
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            text = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            errors.append(FieldError.required(f"{path}.values", text))
    else:
        text = "not a valid selector operator"
        errors.append(FieldError.invalid(f"{path}.operator", operator, text))
    key = item.get("key") or ""
    return errors + each(f"{path}.key", key, qualified_name(key))


def _field_errors(item: Object, path: str) -> Errors:
    operator, values = item.get("operator") or "", item.get("values") or ()
    errors: Errors = []
    if operator not in ("In", "NotIn"):
        text = "not a valid selector operator"
        errors.append(FieldError.invalid(f"{path}.operator", operator, text))
    elif len(values) != 1:
        text = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        errors.append(FieldError.required(f"{path}.values", text))
    if item.get("key") != "metadata.name":
        text = "not a valid field selector key"
        return [*errors, FieldError.invalid(f"{path}.key", item.get("key") or "", text)]
    for index, value in enumerate(values):
        errors += each(f"{path}.values[{index}]", value, dns1123_subdomain(value))
    return errors


def _pod_affinity_errors(affinity: Object, path: str) -> Errors:
    errors: Errors = []
    for index, term in enumerate(affinity.get(_REQUIRED) or ()):
        errors += _pod_term_errors(term, f"{path}.{_REQUIRED}[{index}]")
    for index, weighted in enumerate(affinity.get(_PREFERRED) or ()):
        where = f"{path}.{_PREFERRED}[{index}]"
        errors += _weight_errors(weighted, where)
        errors += _pod_term_errors(
            weighted.get("podAffinityTerm") or {}, f"{where}.podAffinityTerm"
        )
    return errors


def _pod_term_errors(term: Object, path: str) -> Errors:
    errors = label_selector_errors(term.get("labelSelector"), f"{path}.labelSelector")
    errors += label_selector_errors(term.get("namespaceSelector"), f"{path}.namespaceSelector")
    for name in term.get("namespaces") or ():
        errors += each(f"{path}.namespace", name, dns1123_label(name))
    matched, mismatched = term.get("matchLabelKeys") or (), term.get("mismatchLabelKeys") or ()
    for field, keys in (("matchLabelKeys", matched), ("mismatchLabelKeys", mismatched)):
        errors += _label_key_errors(keys, term.get("labelSelector"), f"{path}.{field}")
    for index, key in enumerate(matched):
        if key in mismatched:
            text = "exists in both matchLabelKeys and mismatchLabelKeys"
            errors.append(FieldError.invalid(f"{path}.matchLabelKeys[{index}]", key, text))
    key = term.get("topologyKey") or ""
    if not key:
        errors.append(FieldError.required(f"{path}.topologyKey", "can not be empty"))
    return errors + each(f"{path}.topologyKey", key, qualified_name(key))


def _label_key_errors(keys: Sequence[str], selector: Object | None, path: str) -> Errors:
    if not keys:
        return []
    if selector is None:
        text = "must not be specified when labelSelector is not set"
        return [FieldError.forbidden(path, text)]
    errors: Errors = []
    for index, key in enumerate(keys):
        errors += each(f"{path}[{index}]", key, qualified_name(key))
    return errors


def _gate_errors(gates: Sequence[Object], path: str) -> Errors:
    errors: Errors = []
    taken: set[str] = set()
    for index, gate in enumerate(gates):
        name = gate.get("name") or ""
        errors += each(f"{path}[{index}]", name, qualified_name(name))
        if name in taken:
            errors.append(FieldError.duplicate(f"{path}[{index}]", name))
        taken.add(name)
    return errors


def _spread_errors(constraints: Sequence[Object], path: str) -> Errors:
    errors: Errors = []
    # An equal one further down is reported at the first.
    pairs = [(item.get("topologyKey"), item.get("whenUnsatisfiable")) for item in constraints]
    last = {pair: index for index, pair in enumerate(pairs)}
    for index, item in enumerate(constraints):
        where = f"{path}[{index}]"
        skew, action = item.get("maxSkew") or 0, item.get("whenUnsatisfiable") or ""
        if skew <= 0:
            errors.append(FieldError.invalid(f"{where}.maxSkew", skew, NOT_POSITIVE))
        if not item.get("topologyKey"):
            errors.append(FieldError.required(f"{where}.topologyKey", "can not be empty"))
        if action not in _UNSATISFIABLE:
            errors.append(unsupported(f"{where}.whenUnsatisfiable", action, _UNSATISFIABLE))
        pair = (item.get("topologyKey"), action)
        if last.get(pair, 0) > index:
            field = f"{where}.{{topologyKey, whenUnsatisfiable}}"
            errors.append(FieldError.duplicate(field, f"{{{pair[0]}, {pair[1]}}}"))
        errors += _spread_option_errors(item, where, action)
    return errors


def _spread_option_errors(item: Object, path: str, action: str) -> Errors:
    errors: Errors = []
    domains = item.get("minDomains")
    if domains is not None:
        if domains <= 0:
            errors.append(FieldError.invalid(f"{path}.minDomains", domains, NOT_POSITIVE))
        if action != "DoNotSchedule":
            text = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
            errors.append(FieldError.invalid(f"{path}.minDomains", domains, text))
    for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        policy = item.get(field)
        if policy is not None and policy not in _INCLUSION:
            errors.append(unsupported(f"{path}.{field}", policy, _INCLUSION))
    selector, keys = item.get("labelSelector"), item.get("matchLabelKeys") or ()
    errors += _label_key_errors(keys, selector, f"{path}.matchLabelKeys")
    selected = _selected_keys(selector or {})
    for index, key in enumerate(keys):
        if key in selected:
            text = "exists in both matchLabelKeys and labelSelector"
            errors.append(FieldError.invalid(f"{path}.matchLabelKeys[{index}]", key, text))
    return errors + label_selector_errors(selector, f"{path}.labelSelector")


def _selected_keys(selector: Object) -> set[str]:
    expressed = {item.get("key") for item in selector.get("matchExpressions") or ()}
    return expressed | set(selector.get("matchLabels") or ())


def toleration_errors(tolerations: Sequence[Object], path: str) -> Errors:
    """Return what is wrong with a list of tolerations."""
    errors: Errors = []
    for index, toleration in enumerate(tolerations):
        where = f"{path}[{index}]"
        key, operator = toleration.get("key") or "", toleration.get("operator") or ""
        effect = toleration.get("effect") or ""
        if key:
            errors += each(f"{where}.key", key, qualified_name(key))
        elif operator != "Exists":
            text = (
                'operator must be Exists when `key` is empty, which means "match all values '
                'and all keys"'
            )
            errors.append(FieldError.invalid(f"{where}.operator", operator, text))
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            text = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            errors.append(FieldError.invalid(f"{where}.effect", effect, text))
        errors += _toleration_value_errors(operator, toleration.get("value") or "", where)
        if effect and effect not in EFFECTS:
            errors.append(unsupported(f"{where}.effect", effect, EFFECTS))
    return errors


def _toleration_value_errors(operator: str, value: str, path: str) -> Errors:
    if operator in ("", "Equal"):
        wrong = label_value(value)
        return each(f"{path}.operator", value, [";".join(wrong)]) if wrong else []
    if operator != "Exists":
        return [unsupported(f"{path}.operator", operator, ("Equal", "Exists"))]
    text = "value must be empty when `operator` is 'Exists'"
    return [FieldError.invalid(f"{path}.operator", value, text)] if value else []
