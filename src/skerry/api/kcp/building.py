"""Words to write schemas with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Raw = dict[str, Any]

LABEL_SELECTOR_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_OPERATORS_AND_VALUES = [
    {
        "properties": {"operator": {"enum": ["In", "NotIn"]}, "values": {"minItems": 1}},
        "required": ["values"],
    },
    {"properties": {"operator": {"enum": ["Exists", "DoesNotExist"]}, "values": {"maxItems": 0}}},
]


def text(description: str = "", **more: Any) -> Raw:
    """Return the schema of a string."""
    return _described({"type": "string", **more}, description)


def whole(description: str = "", **more: Any) -> Raw:
    """Return the schema of an integer."""
    return _described({"type": "integer", **more}, description)


def truth(description: str = "", **more: Any) -> Raw:
    """Return the schema of a boolean."""
    return _described({"type": "boolean", **more}, description)


def moment(description: str = "") -> Raw:
    """Return the schema of a time."""
    return text(description, format="date-time")


def listing(items: Raw, description: str = "", **more: Any) -> Raw:
    """Return the schema of a list."""
    return _described({"type": "array", "items": items, **more}, description)


def mapping(values: Raw, description: str = "", **more: Any) -> Raw:
    """Return the schema of a map with any keys."""
    return _described({"type": "object", "additionalProperties": values, **more}, description)


def struct(
    properties: Mapping[str, Raw],
    description: str = "",
    *,
    required: Sequence[str] = (),
    **more: Any,
) -> Raw:
    """Return the schema of an object with named members."""
    schema: Raw = {"type": "object", "properties": dict(properties), **more}
    if required:
        schema["required"] = list(required)
    return _described(schema, description)


def anything(description: str = "") -> Raw:
    """Return the schema of an object with any members."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return _described(schema, description)


def label_selector(description: str = "", *, checked: bool = False, **more: Any) -> Raw:
    """Return the schema of a Kubernetes label selector.

    The operator is an enumeration and values have the form of labels, so that a malformed
    selector is refused when it is written rather than found when it is used. *checked* asks for
    all that schemas can say: keys of expressions have the form of labels too, and there are values
    exactly where the operator wants some. Of keys under ``matchLabels`` they can say nothing.
    """
    pattern = {"pattern": LABEL_KEY} if checked else {}
    wanting: Raw = {"anyOf": _OPERATORS_AND_VALUES} if checked else {}
    expression = struct(
        {
            "key": text(
                "Label key that the expression applies to.", minLength=1, maxLength=317, **pattern
            ),
            "operator": text(
                "Relation of the label to the values.", enum=list(LABEL_SELECTOR_OPERATORS)
            ),
            "values": listing(
                text(maxLength=63, pattern=LABEL_VALUE),
                "The values; none for Exists and DoesNotExist.",
            ),
        },
        required=("key", "operator"),
        **wanting,
    )
    return struct(
        {
            "matchExpressions": listing(expression, "Expressions that must all hold."),
            "matchLabels": mapping(
                text(maxLength=63, pattern=LABEL_VALUE), "Labels that must all be present."
            ),
        },
        description,
        **{"x-kubernetes-map-type": "atomic", **more},
    )


_DOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
LABEL_KEY = rf"^({_DOMAIN}/)?([A-Za-z0-9][-A-Za-z0-9_.]{{0,61}})?[A-Za-z0-9]$"
LABEL_VALUE = r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$"


def conditions(*, severity: bool = True) -> Raw:
    """Return the schema of status conditions, in the form cluster-api gave them."""
    properties = {
        "type": text("Type of the condition."),
        "status": text("True, False or Unknown."),
        "lastTransitionTime": moment("Last time the status changed."),
        "reason": text("Reason for the last transition, in one CamelCase word."),
        "message": text("Human-readable message."),
    }
    if severity:
        properties["severity"] = text(
            "Severity when the status is not True: Error, Warning or Info."
        )
    condition = struct(properties, required=("lastTransitionTime", "status", "type"))
    return listing(condition, "Latest observations of the object's state.")


def column(name: str, path: str, kind: str = "string", priority: int = 0) -> Raw:
    """Return a printer column."""
    found: Raw = {"name": name, "type": kind, "jsonPath": path}
    if priority:
        found["priority"] = priority
    return found


def condition_path(kind: str, member: str = "status") -> str:
    """Return where a printer column finds a member of a condition."""
    return f'.status.conditions[?(@.type=="{kind}")].{member}'


AGE = column("Age", ".metadata.creationTimestamp", "date")


def definition(
    group: str,
    kind: str,
    plural: str,
    properties: Mapping[str, Raw],
    description: str,
    *,
    version: str = "v1alpha1",
    namespaced: bool = False,
    status: bool = True,
    columns: Sequence[Raw] = (),
    short_names: Sequence[str] = (),
    categories: Sequence[str] = (),
    required: Sequence[str] = (),
) -> Raw:
    """Return a CustomResourceDefinition of one version."""
    names: Raw = {
        "kind": kind,
        "listKind": f"{kind}List",
        "plural": plural,
        "singular": kind.lower(),
    }
    if short_names:
        names["shortNames"] = list(short_names)
    if categories:
        names["categories"] = list(categories)
    schema = struct(
        {
            "apiVersion": text("API version of the object."),
            "kind": text("Kind of the object."),
            "metadata": {"type": "object"},
            **properties,
        },
        description,
        required=required,
    )
    served: Raw = {
        "name": version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    if columns:
        served["additionalPrinterColumns"] = list(columns)
    if status:
        served["subresources"] = {"status": {}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": names,
            "scope": "Namespaced" if namespaced else "Cluster",
            "versions": [served],
        },
    }


def _described(schema: Raw, description: str) -> Raw:
    return {**schema, "description": description} if description else schema
