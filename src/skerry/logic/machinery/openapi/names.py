"""What definitions are called.

Built-in kinds bear the names of Kubernetes' Go packages; a custom kind ``Widget`` of group
``example.com`` is ``com.example.v1.Widget``, its group backwards.
"""

from __future__ import annotations

from skerry.api.kinds import GroupVersionKind, Subresource
from skerry.logic.machinery.resource import Resource

META = "io.k8s.apimachinery.pkg.apis.meta.v1"

# Groups whose definitions are not below ``io.k8s.api.<first word>``.
_HOMES = {
    "": "io.k8s.api.core",
    "rbac.authorization.k8s.io": "io.k8s.api.rbac",
    "apiextensions.k8s.io": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions",
    "apiregistration.k8s.io": "io.k8s.kube-aggregator.pkg.apis.apiregistration",
}


def definition_of(resource: Resource) -> str:
    """Return the name of the kind's own definition."""
    if resource.custom:
        return _custom_name(resource.info.gvk)
    return resource.schema.name or _built_in_name(resource.info.gvk)


def list_definition_of(resource: Resource) -> str:
    """Return the name of the definition of the kind's list."""
    info = resource.info
    kind = info.list_kind or f"{info.kind}List"
    return f"{definition_of(resource).removesuffix(info.kind)}{kind}"


def subresource_definition(resource: Resource, below: Subresource) -> str:
    """Return the name of the definition a subresource speaks."""
    if below.kind == resource.info.gvk:
        return definition_of(resource)
    return _built_in_name(below.kind)


def _built_in_name(kind: GroupVersionKind) -> str:
    home = _HOMES.get(kind.group) or f"io.k8s.api.{kind.group.split('.', 1)[0]}"
    return f"{home}.{kind.version}.{kind.kind}"


def _custom_name(kind: GroupVersionKind) -> str:
    backwards = ".".join(reversed(kind.group.split(".")))
    return f"{backwards}.{kind.version}.{kind.kind}"
