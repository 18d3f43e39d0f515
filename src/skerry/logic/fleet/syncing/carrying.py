"""What of an object travels between hub and edge.

Content travels: labels, annotations and every section but ``status``. What the server keeps of
an object stays behind: UID, versions, owners, finalizers. So does what was generated for the
place it came from, such as the pod selector of a Job, which another server would refuse, and what
tools noted on the source for themselves (``api.edge.is_tool_key``).

The result is what server-side apply is given, so a field that is not in it is not ours.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from skerry.api.edge import CHANGED_BY, PROJECTED, is_tool_key
from skerry.api.objects import Object

_OWN_SECTIONS = frozenset(("apiVersion", "kind", "metadata", "status"))
# Notes of controllers, and of the hub, about the object they were written on.
_LOCAL_ANNOTATIONS = frozenset(
    ("deployment.kubernetes.io/revision", "deprecated.daemonset.template.generation", CHANGED_BY)
)
_LOCAL_LABELS = ("internal.apis.kcp.io/", "claimed.internal.apis.kcp.io/")
_JOB_LABELS = (
    "controller-uid",
    "job-name",
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-name",
)


def carried(obj: Mapping[str, Any]) -> Object:
    """Return what of a mailbox object is applied at the edge; shares unchanged parts with it."""
    metadata = obj["metadata"]
    kept: Object = {"name": metadata["name"]}
    if metadata.get("namespace"):
        kept["namespace"] = metadata["namespace"]
    if labels := {k: v for k, v in (metadata.get("labels") or {}).items() if _label_travels(k)}:
        kept["labels"] = labels
    annotations = metadata.get("annotations") or {}
    if kept_notes := {k: v for k, v in annotations.items() if _annotation_travels(k)}:
        kept["annotations"] = kept_notes
    made: Object = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": kept}
    made |= {name: value for name, value in obj.items() if name not in _OWN_SECTIONS}
    special = _SPECIAL.get((_group(obj["apiVersion"]), obj["kind"]))
    if special is not None:
        special(made)
    return made


def digest(value: object) -> str:
    """Return what tells one content from another, in few characters."""
    text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(text, digest_size=12).hexdigest()


def _label_travels(key: str) -> bool:
    return key != PROJECTED and not key.startswith(_LOCAL_LABELS) and not is_tool_key(key)


def _annotation_travels(key: str) -> bool:
    domain, slash, _ = key.partition("/")
    if slash and (domain == "kcp.io" or domain.endswith(".kcp.io")):
        return False
    return key not in _LOCAL_ANNOTATIONS and not is_tool_key(key)


def _group(api_version: str) -> str:
    return api_version.rpartition("/")[0]


# What single kinds leave behind. Each gets an object whose sections are still shared.


def _namespace(made: Object) -> None:
    made.pop("spec", None)  # finalizers, which the server keeps


def _service(made: Object) -> None:
    """Leave allocated addresses; ``None`` is a wish, an address is an allocation."""
    spec = dict(made.get("spec") or {})
    if spec.get("clusterIP") not in (None, "", "None"):
        spec.pop("clusterIP", None)
        spec.pop("clusterIPs", None)
    made["spec"] = spec


def _service_account(made: Object) -> None:
    made.pop("secrets", None)  # tokens made for it where it came from


def _job(made: Object) -> None:
    """Leave the generated selector and its labels, unless the owner brought a selector."""
    spec = dict(made.get("spec") or {})
    if spec.get("manualSelector"):
        return
    spec.pop("selector", None)
    template = dict(spec.get("template") or {})
    metadata = dict(template.get("metadata") or {})
    labels = {k: v for k, v in (metadata.get("labels") or {}).items() if k not in _JOB_LABELS}
    metadata.pop("labels", None)
    metadata.pop("creationTimestamp", None)
    if labels:
        metadata["labels"] = labels
    template.pop("metadata", None)
    if metadata:
        template["metadata"] = metadata
    spec["template"] = template
    made["spec"] = spec


def _template(made: Object) -> None:
    """Leave the null time stamp that typed clients write into templates."""
    spec = made.get("spec")
    if not isinstance(spec, Mapping):
        return
    template = spec.get("template")
    if not isinstance(template, Mapping):
        return
    metadata = template.get("metadata")
    if isinstance(metadata, Mapping) and metadata.get("creationTimestamp", "") is None:
        kept = {k: v for k, v in metadata.items() if k != "creationTimestamp"}
        made["spec"] = {**spec, "template": {**template, "metadata": kept}}


def _pod(made: Object) -> None:
    spec = dict(made.get("spec") or {})
    spec.pop("nodeName", None)
    made["spec"] = spec


_SPECIAL: dict[tuple[str, str], Callable[[Object], None]] = {
    ("", "Namespace"): _namespace,
    ("", "Service"): _service,
    ("", "ServiceAccount"): _service_account,
    ("", "Pod"): _pod,
    ("batch", "Job"): _job,
    ("apps", "Deployment"): _template,
    ("apps", "ReplicaSet"): _template,
    ("apps", "StatefulSet"): _template,
    ("apps", "DaemonSet"): _template,
}
