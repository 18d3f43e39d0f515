"""What Kubernetes fills in where a pod says nothing: in pods, and in every pod template.

A template gets less than a pod: requests copied from limits, host ports and service links are
decided when the pod itself is made, and so is what less than no grace means.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from skerry.api.objects import Object
from skerry.kit.caching import short_text_cache
from skerry.logic.machinery.builtin.amounts import canonical, canonical_list
from skerry.logic.machinery.builtin.rules import absent

_FILE_MODE = 0o644
_TOKEN_SECONDS = 3600
_TERMINATION_SECONDS = 30

# The grammar of image references: [host[:port]/]path[:tag][@digest]; upper case is allowed only
# in the host and the tag.
_PATH = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_HOST = r"(?:[a-zA-Z0-9](?:[-a-zA-Z0-9]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[-a-zA-Z0-9]*[a-zA-Z0-9])?)*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"  # noqa: E501
# Longer than any registry takes; the host alone may have 255 characters, the path as many.
_MAX_IMAGE_LENGTH = 2048
_REFERENCE = re.compile(
    rf"(?:{_HOST}/)?{_PATH}(?:/{_PATH})*(?::([A-Za-z0-9_][-.A-Za-z0-9_]{{0,127}}))?"
    r"(@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?"
)


@short_text_cache(2048, limit=512)
def pull_policy(image: str) -> str:
    """Return when an image is pulled unless the pod says: always where its tag may move."""
    found = _REFERENCE.fullmatch(image) if len(image) <= _MAX_IMAGE_LENGTH else None
    if found is None:
        return "IfNotPresent"
    tag = found[1] or ("" if found[2] else "latest")
    return "Always" if tag == "latest" else "IfNotPresent"


# An empty text in these means the same as none at all.
_SPEC_WORDS = {
    "restartPolicy": "Always",
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
}
_CONTAINER_WORDS = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
_GROUPS = ("initContainers", "containers", "ephemeralContainers")


def default_pod_spec(spec: Object) -> None:
    """Fill in a pod spec, in a pod or in a template."""
    _say(spec, _SPEC_WORDS)
    absent(spec, "terminationGracePeriodSeconds", _TERMINATION_SECONDS)
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}
    # The old name of the field is still served beside the new one.
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for volume in spec.get("volumes") or ():
        default_volume(volume)
    for group in _GROUPS:
        for container in spec.get(group) or ():
            default_container(container)
    canonical_list(spec, "overhead")
    _default_resources(spec.get("resources"))


def _say(obj: Object, words: Mapping[str, object]) -> None:
    for name, value in words.items():
        if not obj.get(name):
            obj[name] = value


def default_container(container: Object) -> None:
    """Fill in one container."""
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = pull_policy(container.get("image") or "")
    _say(container, _CONTAINER_WORDS)
    for port in container.get("ports") or ():
        if not port.get("protocol"):
            port["protocol"] = "TCP"
    for variable in container.get("env") or ():
        source = variable.get("valueFrom")
        if source:
            _default_value_source(source)
    if container.get("resources") is None:
        container["resources"] = {}
    _default_resources(container["resources"])
    _default_checks(container)


def _default_checks(container: Object) -> None:
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(name)
        if probe is not None:
            _default_probe(probe)
    lifecycle = container.get("lifecycle")
    if lifecycle:
        for name in ("postStart", "preStop"):
            _default_handler(lifecycle.get(name) or {})


def _default_value_source(source: Object) -> None:
    if source.get("fieldRef") is not None:
        _default_field_reference(source["fieldRef"])
    if source.get("resourceFieldRef") is not None:
        _default_resource_reference(source["resourceFieldRef"])


def _default_field_reference(reference: Object) -> None:
    if not reference.get("apiVersion"):
        reference["apiVersion"] = "v1"


def _default_resource_reference(reference: Object) -> None:
    """Print the divisor as the server does: an unset quantity is zero, not absent."""
    absent(reference, "divisor", "0")
    canonical(reference, "divisor")


def _default_resources(resources: Object | None) -> None:
    if resources:
        canonical_list(resources, "limits")
        canonical_list(resources, "requests")


_REQUEST = {"path": "/", "scheme": "HTTP"}
_PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}


def _default_probe(probe: Object) -> None:
    _say(probe, _PROBE)
    _default_handler(probe)
    if probe.get("grpc") is not None:
        absent(probe["grpc"], "service", "")


def _default_handler(handler: Object) -> None:
    request = handler.get("httpGet")
    if request is not None:
        _say(request, _REQUEST)


def _filled(values: Object) -> Callable[[Object], None]:
    """Return a default that sets each of *values* where nothing (or nothing but "") stands."""

    def fill(source: Object) -> None:
        for name, value in values.items():
            if source.get(name) is None or (value != "" and source[name] == ""):
                source[name] = value

    return fill


_default_file_mode = _filled({"defaultMode": _FILE_MODE})


def _default_files(items: Iterable[Object]) -> None:
    for item in items:
        _default_value_source(item)


def _default_downward(source: Object) -> None:
    _default_file_mode(source)
    _default_files(source.get("items") or ())


def _default_projected(source: Object) -> None:
    _default_file_mode(source)
    for part in source.get("sources") or ():
        if part.get("downwardAPI"):
            _default_files(part["downwardAPI"].get("items") or ())
        if part.get("serviceAccountToken") is not None:
            absent(part["serviceAccountToken"], "expirationSeconds", _TOKEN_SECONDS)


def default_claim_spec(spec: Object) -> None:
    """Fill in a claim for storage, standing alone or in a template."""
    absent(spec, "volumeMode", "Filesystem")
    _default_resources(spec.get("resources"))


def _default_ephemeral(source: Object) -> None:
    template = source.get("volumeClaimTemplate")
    if template and template.get("spec") is not None:
        default_claim_spec(template["spec"])


_VOLUMES: dict[str, Callable[[Object], None]] = {
    "configMap": _default_file_mode,
    "secret": _default_file_mode,
    "projected": _default_projected,
    "downwardAPI": _default_downward,
    "hostPath": _filled({"type": ""}),
    "emptyDir": lambda source: canonical(source, "sizeLimit"),
    "ephemeral": _default_ephemeral,
    "iscsi": _filled({"iscsiInterface": "default"}),
    "rbd": _filled({"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"}),
    "azureDisk": _filled(
        {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"}
    ),
    "scaleIO": _filled({"storageMode": "ThinProvisioned", "fsType": "xfs"}),
}


def default_volume(volume: Object) -> None:
    """Fill in one volume; one that names no source is an empty directory."""
    sources = [name for name, value in volume.items() if name != "name" and value is not None]
    if not sources:
        volume["emptyDir"] = {}
    for name in sources:
        default = _VOLUMES.get(name)
        if default is not None:
            default(volume[name])


def default_pod(pod: Object) -> None:
    """Fill in a pod: what templates get, and what only a pod to be run gets."""
    spec = pod.get("spec")
    if spec is None:
        spec = pod["spec"] = {}
    default_pod_spec(spec)
    for group in ("containers", "initContainers"):
        for container in spec.get(group) or ():
            _requests_from_limits(container.get("resources") or {})
            if spec.get("hostNetwork"):
                _host_ports(container)
    absent(spec, "enableServiceLinks", True)
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1


def _requests_from_limits(resources: Object) -> None:
    limits = resources.get("limits")
    if limits:
        resources["requests"] = {**limits, **(resources.get("requests") or {})}


def _host_ports(container: Object) -> None:
    for port in container.get("ports") or ():
        if not port.get("hostPort") and port.get("containerPort"):
            port["hostPort"] = port["containerPort"]


def default_template(holder: Object) -> None:
    """Fill in the pod template of a workload's spec."""
    template = holder.get("template")
    if template is None:
        template = holder["template"] = {}
    spec = template.get("spec")
    if spec is None:
        spec = template["spec"] = {}
    default_pod_spec(spec)
