"""ValidatingAdmissionPolicies and bindings as tests write them."""

from __future__ import annotations

from typing import Any

GROUP_VERSION = "admissionregistration.k8s.io/v1"
CONFIG_MAP_RULE = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE", "UPDATE"],
    "resources": ["configmaps"],
}


def policy(name: str = "p", *expressions: str, **spec: Any) -> dict[str, Any]:
    """Return a policy about ConfigMaps; a part of *spec* that is None is left out."""
    whole = {
        "matchConstraints": {"resourceRules": [{**CONFIG_MAP_RULE}]},
        "validations": [{"expression": text} for text in expressions or ("true",)],
        **spec,
    }
    return {
        "apiVersion": GROUP_VERSION,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {key: value for key, value in whole.items() if value is not None},
    }


def binding(name: str = "b", of: str = "p", **spec: Any) -> dict[str, Any]:
    """Return a binding that denies; a part of *spec* that is None is left out."""
    whole = {"policyName": of, "validationActions": ["Deny"], **spec}
    return {
        "apiVersion": GROUP_VERSION,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {key: value for key, value in whole.items() if value is not None},
    }
