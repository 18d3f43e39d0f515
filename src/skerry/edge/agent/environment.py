"""A container's environment: literal values, references, and the Services there are.

Pure: what is referred to is handed in. ``$(NAME)`` in a value means a variable defined before it;
``$$`` stands for a dollar sign; a name that is not defined is left as it is written.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skerry.api.objects import Object
from skerry.logic.machinery.quantity import Quantity

_REFERENCE = re.compile(r"\$\$|\$\(([^()$]+)\)")
_NAME = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")

Lookup = Callable[[str, str], Object | None]
"""Returns the ConfigMap or Secret of a kind (``configmap``, ``secret``) and name."""


class ConfigurationMissing(Exception):
    """Something the container refers to is not there; it waits until it is."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What references may be about, besides ConfigMaps and Secrets."""

    pod: Object
    node_name: str
    host_ip: str
    pod_ip: str
    allocatable: Mapping[str, str]


def expanded(text: str, values: Mapping[str, str]) -> str:
    """Return *text* with ``$(NAME)`` replaced where NAME is known."""

    def value(found: re.Match[str]) -> str:
        if found[0] == "$$":
            return "$"
        return values.get(found[1], found[0])

    return _REFERENCE.sub(value, text)


def expanded_strictly(text: str, values: Mapping[str, str]) -> str:
    """Return *text* with every ``$(NAME)`` replaced; raises ``ConfigurationMissing`` for others."""
    for found in _REFERENCE.finditer(text):
        if found[1] and found[1] not in values:
            raise ConfigurationMissing(f'missing value for "{found[1]}" in {text!r}')
    return expanded(text, values)


def environment(container: Object, facts: Facts, lookup: Lookup) -> dict[str, str]:
    """Return a container's variables; raises ``ConfigurationMissing``."""
    found: dict[str, str] = {}
    for source in container.get("envFrom") or ():
        found |= _all_of(source, lookup)
    for variable in container.get("env") or ():
        name = variable["name"]
        if "valueFrom" in variable:
            value = _referred(variable["valueFrom"], container, facts, lookup)
            if value is not None:
                found[name] = value
        else:
            found[name] = expanded(str(variable.get("value") or ""), found)
    return found


def _all_of(source: Object, lookup: Lookup) -> dict[str, str]:
    prefix = source.get("prefix") or ""
    for kind, field in (("configmap", "configMapRef"), ("secret", "secretRef")):
        reference = source.get(field)
        if reference is None:
            continue
        obj = lookup(kind, reference["name"])
        if obj is None:
            if reference.get("optional"):
                return {}
            raise ConfigurationMissing(f'{kind} "{reference["name"]}" not found')
        pairs = {f"{prefix}{key}": value for key, value in texts_of(kind, obj).items()}
        return {name: value for name, value in pairs.items() if _NAME.fullmatch(name)}
    return {}


def texts_of(kind: str, obj: Object) -> dict[str, str]:
    """Return the content of a ConfigMap or Secret as text."""
    data = obj.get("data") or {}
    if kind == "configmap":
        return {key: str(value) for key, value in data.items()}
    return {key: base64.b64decode(value).decode(errors="replace") for key, value in data.items()}


def _referred(source: Object, container: Object, facts: Facts, lookup: Lookup) -> str | None:
    if "fieldRef" in source:
        return field_value(facts, source["fieldRef"]["fieldPath"])
    if "resourceFieldRef" in source:
        return resource_value(source["resourceFieldRef"], container, facts)
    for kind, field in (("configmap", "configMapKeyRef"), ("secret", "secretKeyRef")):
        if field in source:
            return _key_of(kind, source[field], facts, lookup)
    return ""


def _key_of(kind: str, reference: Object, facts: Facts, lookup: Lookup) -> str | None:
    obj = lookup(kind, reference["name"])
    optional = bool(reference.get("optional"))
    if obj is None:
        if optional:
            return None
        raise ConfigurationMissing(f'{kind} "{reference["name"]}" not found')
    values = texts_of(kind, obj)
    if reference["key"] not in values:
        if optional:
            return None
        place = f"{facts.pod['metadata']['namespace']}/{reference['name']}"
        named = "ConfigMap" if kind == "configmap" else "Secret"
        raise ConfigurationMissing(f"couldn't find key {reference['key']} in {named} {place}")
    return values[reference["key"]]


_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")


def field_value(facts: Facts, path: str) -> str:
    """Return the pod field a downward reference names, as text."""
    metadata, spec = facts.pod["metadata"], facts.pod["spec"]
    subscript = _SUBSCRIPT.fullmatch(path)
    if subscript is not None:
        return str((metadata.get(subscript[1]) or {}).get(subscript[2], ""))
    if path in ("metadata.labels", "metadata.annotations"):
        pairs = metadata.get(path.partition(".")[2]) or {}
        return "\n".join(f"{name}={_quoted(pairs[name])}" for name in sorted(pairs))
    values = {
        "metadata.name": metadata["name"],
        "metadata.namespace": metadata.get("namespace", ""),
        "metadata.uid": metadata.get("uid", ""),
        "spec.nodeName": facts.node_name,
        "spec.serviceAccountName": spec.get("serviceAccountName", ""),
        "status.hostIP": facts.host_ip,
        "status.hostIPs": facts.host_ip,
        "status.podIP": facts.pod_ip,
        "status.podIPs": facts.pod_ip,
    }
    return str(values.get(path, ""))


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def resource_value(reference: Object, container: Object, facts: Facts) -> str:
    """Return a container's request or limit in units of the divisor, rounded up.

    A limit that is not set means all the node has.
    """
    which, _, resource = str(reference["resource"]).partition(".")
    resources = container.get("resources") or {}
    amount = (resources.get(which) or {}).get(resource)
    if amount is None and which == "limits":
        amount = facts.allocatable.get(resource)
    divisor = Quantity.parse(str(reference.get("divisor") or "0"))
    if not divisor:
        divisor = Quantity.of(1)
    value = Quantity.parse(str(amount or "0"))
    return str(-(-value.milli_value() // max(1, divisor.milli_value())))


def service_environment(
    services: Sequence[Object], reached_at: Callable[[Object, Object], tuple[str, int] | None]
) -> dict[str, str]:
    """Return the variables that tell of Services, in kubelet's form.

    *reached_at* gives the address and port where a port of a Service can really be reached.
    """
    found: dict[str, str] = {}
    for service in services:
        name = service["metadata"]["name"].upper().replace("-", "_")
        for number, port in enumerate(service["spec"].get("ports") or ()):
            place = reached_at(service, port)
            if place is None:
                continue
            host, real = place
            if number == 0:
                found |= {f"{name}_SERVICE_HOST": host, f"{name}_SERVICE_PORT": str(real)}
            if port.get("name"):
                suffix = port["name"].upper().replace("-", "_")
                found[f"{name}_SERVICE_PORT_{suffix}"] = str(real)
    return found


def proxy_environment(proxy: str, *, alone: bool) -> dict[str, str]:
    """Return what leads programs that speak HTTP to Services, and out of a pod's own network.

    In a pod that is *alone* on its network nothing else leads out; what is inside needs no proxy.
    """
    if not alone:
        return {"http_proxy": proxy, "no_proxy": "localhost,127.0.0.1"}
    near = "localhost,127.0.0.1,.svc,.cluster.local,10.0.0.0/8"
    return {"http_proxy": proxy, "https_proxy": proxy, "no_proxy": near}


def arguments(
    container: Object, image_entrypoint: Sequence[str], image_command: Sequence[str], values: Any
) -> tuple[str, ...]:
    """Return what is run: the pod's command and arguments over the image's own.

    A command given by the pod also silences the image's arguments.
    """
    command = [expanded(word, values) for word in container.get("command") or ()]
    words = [expanded(word, values) for word in container.get("args") or ()]
    if command:
        return (*command, *words)
    return (*image_entrypoint, *(words or image_command))
