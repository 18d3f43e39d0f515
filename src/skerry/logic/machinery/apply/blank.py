"""What Kubernetes' typed decoder makes of nothing.

A create is tracked as a change from a blank object. Fields that are plain structs there, rather
than pointers, exist in the blank, so creating an object does not make anybody their owner:
``kubectl create deployment`` owns ``.spec.replicas`` but not ``.spec``. Schemas do not tell
pointers from structs; this table does, for the built-in kinds where it shows. Custom resources
have no blank: who creates one owns its ``.spec``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from skerry.api.schema import Schema

_POD: Final[Mapping[str, Any]] = {"containers": None}
_TEMPLATE: Final[Mapping[str, Any]] = {"metadata": {}, "spec": _POD}
_JOB: Final[Mapping[str, Any]] = {"template": _TEMPLATE}

_SPECS: Final[Mapping[str, Mapping[str, Any]]] = {
    "io.k8s.api.core.v1.Pod": _POD,
    "io.k8s.api.core.v1.ReplicationController": {},
    "io.k8s.api.apps.v1.Deployment": {"selector": None, "strategy": {}, "template": _TEMPLATE},
    "io.k8s.api.apps.v1.DaemonSet": {"selector": None, "template": _TEMPLATE, "updateStrategy": {}},
    "io.k8s.api.apps.v1.ReplicaSet": {"selector": None, "template": _TEMPLATE},
    "io.k8s.api.apps.v1.StatefulSet": {
        "selector": None,
        "template": _TEMPLATE,
        "updateStrategy": {},
    },
    "io.k8s.api.batch.v1.Job": _JOB,
    "io.k8s.api.batch.v1.CronJob": {"jobTemplate": {"metadata": {}, "spec": _JOB}},
    "io.k8s.api.core.v1.PersistentVolumeClaim": {"resources": {}},
}


_BLANK: Final[dict[str, Any]] = {"metadata": {}}


def is_lasting(schema: Schema | None) -> bool:
    """Tell whether *schema* is of Kubernetes' own, which are compiled once and served for ever.

    Only of those anything is remembered by the schema: a definition has another one whenever
    somebody changes it, and a memory would hold them all.
    """
    return schema is not None and schema.name.startswith("io.k8s.api.")


def blank_for(schema: Schema | None) -> dict[str, Any]:
    """Return the object that a create of this type is compared with, to be looked at only."""
    if schema is None or not is_lasting(schema):
        return _BLANK
    return _lasting_blank(schema)


@lru_cache(maxsize=1024)
def _lasting_blank(schema: Schema) -> dict[str, Any]:
    blank: dict[str, Any] = {**_BLANK}
    names = schema.property_names
    if "spec" in names:
        blank["spec"] = _SPECS.get(schema.name, {})
    if "status" in names:
        blank["status"] = {}
    if schema.name == "io.k8s.api.core.v1.PodTemplate":
        blank["template"] = _TEMPLATE
    return blank
