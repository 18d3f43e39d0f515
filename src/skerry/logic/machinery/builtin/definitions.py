"""The schemas of Kubernetes 1.32, read from the data of ``kubernetes-validate``.

The package is found but never imported: it would bring a JSON-Schema library with it. The file
is read when the first schema is asked for, once per process, and decoded in about five
milliseconds; ``Schema`` builds what is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import orjson

from skerry.api.kinds import GroupVersionKind
from skerry.api.schema import Definitions, Schema

_PACKAGE = "kubernetes_validate"
_FILE = "kubernetes-json-schema/v1.32.0-local/_definitions.json"

# Groups that keep their types outside ``io.k8s.api.<first word of the group>``.
_ELSEWHERE = {
    "": "io.k8s.api.core",
    "rbac.authorization.k8s.io": "io.k8s.api.rbac",
    "apiextensions.k8s.io": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions",
    "apiregistration.k8s.io": "io.k8s.kube-aggregator.pkg.apis.apiregistration",
}


class SchemaDataMissingError(Exception):
    """The installed package does not carry the definitions; the installation is broken."""


@cache
def definitions() -> Definitions:
    """Return the definitions of all built-in types."""
    spec = find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise SchemaDataMissingError(f"package {_PACKAGE} is not installed")
    path = Path(spec.origin).parent / _FILE
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise SchemaDataMissingError(f"package {_PACKAGE} has no {_FILE}") from error
    return Definitions(orjson.loads(content)["$defs"])


def definition_name(kind: GroupVersionKind) -> str:
    """Return the name Kubernetes gives the definition of *kind*."""
    home = _ELSEWHERE.get(kind.group) or f"io.k8s.api.{kind.group.split('.', 1)[0]}"
    return f"{home}.{kind.version}.{kind.kind}"


def schema_of(kind: GroupVersionKind) -> Schema:
    """Return the schema of a built-in kind; a KeyError says there is none of that name."""
    return definitions().get(definition_name(kind))


def builtin_schema(kind: GroupVersionKind) -> Schema | None:
    """Return the schema of a kind if it is one of Kubernetes'."""
    try:
        return schema_of(kind)
    except KeyError:
        return None


@cache
def common_descriptions() -> Mapping[str, str]:
    """Return what Kubernetes says of the fields that every object has; tools look for its words."""
    fields = definitions().raw["io.k8s.api.core.v1.ConfigMap"]["properties"]
    found = {name: str(fields[name]["description"]) for name in ("apiVersion", "kind", "metadata")}
    conventions = found["kind"].rpartition("More info: ")[2]
    found["list metadata"] = f"Standard list metadata. More info: {conventions}"
    found["more"] = f"More info: {conventions.partition('#')[0]}"
    return found
