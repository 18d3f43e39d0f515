"""Create what is missing, put right what is wrong."""

from __future__ import annotations

import copy

from skerry.api.objects import Object
from skerry.controllers.core.root_ca.keys import CONFIG_MAPS, ROOT_CA_NAME
from skerry.controllers.core.root_ca.observe import Observed
from skerry.logic.machinery.plan import NOTHING, Create, Plan, Target, Update

_DESCRIPTION = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal "
    "endpoints such as the internal service IP or kubernetes.default.svc. "
    "No other usage is guaranteed across distributions of Kubernetes clusters."
)
_ANNOTATION = "kubernetes.io/description"


def decide(observed: Observed) -> Plan:
    """Make the namespace's ConfigMap say the CA, and why it is there."""
    key = observed.key
    target = Target(CONFIG_MAPS, ROOT_CA_NAME, key.name, key.cluster)
    data = {"ca.crt": observed.certificate}
    existing = observed.config_map
    if existing is None:
        wanted: Object = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": ROOT_CA_NAME,
                "namespace": key.name,
                "annotations": {_ANNOTATION: _DESCRIPTION},
            },
            "data": data,
        }
        return Plan([Create(target, wanted, reason="NamespaceActive")])
    annotations = existing["metadata"].get("annotations") or {}
    if existing.get("data") == data and _ANNOTATION in annotations:
        return NOTHING
    wanted = copy.deepcopy(existing)
    wanted["data"] = data
    wanted["metadata"]["annotations"] = {**annotations, _ANNOTATION: _DESCRIPTION}
    return Plan([Update(target, wanted, reason="RootCAChanged")])
