"""Definitions for the tests: a CronTab with everything, and small changes to it."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

from skerry.api.objects import Object

CRON_TAB: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "crontabs.stable.example.com"},
    "spec": {
        "group": "stable.example.com",
        "scope": "Namespaced",
        "names": {
            "plural": "crontabs",
            "singular": "crontab",
            "kind": "CronTab",
            "shortNames": ["ct"],
            "categories": ["all"],
        },
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["cronSpec"],
                                "x-kubernetes-validations": [
                                    {
                                        "rule": "self.minReplicas <= self.replicas",
                                        "message": "replicas must not be below minReplicas",
                                        "fieldPath": ".replicas",
                                    },
                                    {
                                        "rule": "self.zone == oldSelf.zone",
                                        "message": "zone is immutable",
                                    },
                                ],
                                "properties": {
                                    "cronSpec": {
                                        "type": "string",
                                        "pattern": r"^(\d+|\*)(/\d+)?(\s+(\d+|\*)(/\d+)?){4}$",
                                    },
                                    "image": {"type": "string"},
                                    "zone": {"type": "string", "default": "a", "maxLength": 20},
                                    "minReplicas": {"type": "integer", "default": 1},
                                    "replicas": {
                                        "type": "integer",
                                        "minimum": 1,
                                        "maximum": 10,
                                        "default": 1,
                                    },
                                    "env": {
                                        "type": "array",
                                        "maxItems": 50,
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["name"],
                                        "items": {
                                            "type": "object",
                                            "required": ["name"],
                                            "properties": {
                                                "name": {"type": "string", "maxLength": 63},
                                                "value": {"type": "string", "maxLength": 500},
                                            },
                                            "x-kubernetes-validations": [
                                                {"rule": "!self.name.startsWith('_')"}
                                            ],
                                        },
                                    },
                                },
                            },
                            "status": {
                                "type": "object",
                                "properties": {
                                    "replicas": {"type": "integer"},
                                    "labelSelector": {"type": "string"},
                                    "conditions": {
                                        "type": "array",
                                        "items": {
                                            "type": "object",
                                            "properties": {
                                                "type": {"type": "string"},
                                                "status": {"type": "string"},
                                            },
                                        },
                                    },
                                },
                            },
                        },
                    }
                },
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas",
                        "labelSelectorPath": ".status.labelSelector",
                    },
                },
                "selectableFields": [{"jsonPath": ".spec.image"}, {"jsonPath": ".spec.replicas"}],
                "additionalPrinterColumns": [
                    {"name": "Spec", "type": "string", "jsonPath": ".spec.cronSpec"},
                    {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"},
                    {
                        "name": "Ready",
                        "type": "string",
                        "jsonPath": '.status.conditions[?(@.type=="Ready")].status',
                        "priority": 1,
                    },
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
            }
        ],
        "conversion": {"strategy": "None"},
    },
    "status": {"storedVersions": ["v1"]},
}

CRON_TAB["spec"]["names"]["listKind"] = "CronTabList"


def cron_tab() -> Object:
    """Return a CronTab definition nobody else holds."""
    return copy.deepcopy(CRON_TAB)


def version_of(crd: Object, index: int = 0) -> Object:
    made: Object = crd["spec"]["versions"][index]
    return made


def schema_of(crd: Object, index: int = 0) -> Object:
    made: Object = version_of(crd, index)["schema"]["openAPIV3Schema"]
    return made


def with_spec(**properties: Any) -> Object:
    """Return a definition whose spec has just these fields."""
    crd = cron_tab()
    schema_of(crd)["properties"] = {"spec": {"type": "object", "properties": properties}}
    version_of(crd).pop("selectableFields")
    return crd


def established(crd: Object) -> Object:
    crd["status"]["conditions"] = [{"type": "Established", "status": "True"}]
    crd["status"]["acceptedNames"] = copy.deepcopy(crd["spec"]["names"])
    return crd


NOW = datetime(2024, 1, 1, tzinfo=UTC)
