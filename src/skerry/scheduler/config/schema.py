"""The fields a configuration file may have, and the strict decoder that walks them.

A schema is a type name (``int32``, ``int64``, ``float32``, ``bool``, ``string``, ``duration``,
``any``), a dict of fields for a struct, or a one-element list for a list.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from skerry.scheduler.config.errors import ConfigurationError

GROUP_VERSION = "kubescheduler.config.k8s.io/v1"
KIND = "KubeSchedulerConfiguration"

Schema = Any

_PLUGIN = {"name": "string", "weight": "int32"}
_PLUGIN_SET = {"enabled": [_PLUGIN], "disabled": [_PLUGIN]}
POINTS = (
    "preEnqueue",
    "queueSort",
    "preFilter",
    "filter",
    "postFilter",
    "preScore",
    "score",
    "reserve",
    "permit",
    "preBind",
    "bind",
    "postBind",
    "multiPoint",
)
_RESOURCE = {"name": "string", "weight": "int64"}
_SHAPE = {"utilization": "int32", "score": "int32"}
_TYPE_META = {"apiVersion": "string", "kind": "string"}

CONFIGURATION: Mapping[str, Schema] = {
    **_TYPE_META,
    "parallelism": "int32",
    "leaderElection": {
        "leaderElect": "bool",
        "leaseDuration": "duration",
        "renewDeadline": "duration",
        "retryPeriod": "duration",
        "resourceLock": "string",
        "resourceName": "string",
        "resourceNamespace": "string",
    },
    "clientConnection": {
        "kubeconfig": "string",
        "acceptContentTypes": "string",
        "contentType": "string",
        "qps": "float32",
        "burst": "int32",
    },
    "enableProfiling": "bool",
    "enableContentionProfiling": "bool",
    "percentageOfNodesToScore": "int32",
    "podInitialBackoffSeconds": "int64",
    "podMaxBackoffSeconds": "int64",
    "profiles": [
        {
            "schedulerName": "string",
            "percentageOfNodesToScore": "int32",
            "plugins": dict.fromkeys(POINTS, _PLUGIN_SET),
            "pluginConfig": [{"name": "string", "args": "any"}],
        }
    ],
    "extenders": [
        {
            "urlPrefix": "string",
            "filterVerb": "string",
            "preemptVerb": "string",
            "prioritizeVerb": "string",
            "weight": "int64",
            "bindVerb": "string",
            "enableHTTPS": "bool",
            "tlsConfig": {
                "insecure": "bool",
                "serverName": "string",
                "certFile": "string",
                "keyFile": "string",
                "caFile": "string",
                "certData": "string",
                "keyData": "string",
                "caData": "string",
            },
            "httpTimeout": "duration",
            "nodeCacheCapable": "bool",
            "managedResources": [{"name": "string", "ignoredByScheduler": "bool"}],
            "ignorable": "bool",
        }
    ],
    "delayCacheUntilActive": "bool",
}

# Arguments of in-tree plugins; those of others pass through as they are.
ARGUMENTS: Mapping[str, Mapping[str, Schema]] = {
    "DefaultPreemption": {
        **_TYPE_META,
        "minCandidateNodesPercentage": "int32",
        "minCandidateNodesAbsolute": "int32",
    },
    "InterPodAffinity": {
        **_TYPE_META,
        "hardPodAffinityWeight": "int32",
        "ignorePreferredTermsOfExistingPods": "bool",
    },
    "NodeAffinity": {**_TYPE_META, "addedAffinity": "any"},
    "NodeResourcesBalancedAllocation": {**_TYPE_META, "resources": [_RESOURCE]},
    "NodeResourcesFit": {
        **_TYPE_META,
        "ignoredResources": ["string"],
        "ignoredResourceGroups": ["string"],
        "scoringStrategy": {
            "type": "string",
            "resources": [_RESOURCE],
            "requestedToCapacityRatio": {"shape": [_SHAPE]},
        },
    },
    "PodTopologySpread": {**_TYPE_META, "defaultConstraints": ["any"], "defaultingType": "string"},
    "VolumeBinding": {**_TYPE_META, "bindTimeoutSeconds": "int64", "shape": [_SHAPE]},
}

_GO_NAMES = {"float32": "float32", "bool": "bool", "string": "string", "duration": "v1.Duration"}
_DURATION = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_WHOLE_DURATION = re.compile(r"[-+]?((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+|[-+]?0")
_UNIT_SECONDS = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
}


class Decoder:
    """Walks a document along a schema; unknown fields are collected, wrong types end it."""

    def __init__(self, type_name: str) -> None:
        self._type = type_name
        self.unknown: list[str] = []

    def decode(self, value: Any, schema: Schema, path: str = "") -> Any:
        """Return the document with absent and null fields left out."""
        if isinstance(schema, str):
            return self._scalar(value, schema, path)
        if isinstance(schema, list):
            if not isinstance(value, list):
                raise self._mismatch(value, path, "[]" + self._type)
            return [
                self.decode(item, schema[0], f"{path}[{index}]") for index, item in enumerate(value)
            ]
        if not isinstance(value, dict):
            raise self._mismatch(value, path, self._type)
        found: dict[str, Any] = {}
        for key, item in value.items():
            where = f"{path}.{key}" if path else str(key)
            if key not in schema:
                self.unknown.append(where)
            elif item is not None:
                found[key] = self.decode(item, schema[key], where)
        return found

    def _scalar(self, value: Any, kind: str, path: str) -> Any:
        if kind == "any":
            return value
        wrong = {
            "bool": not isinstance(value, bool),
            "string": not isinstance(value, str),
            "duration": not isinstance(value, str),
            "float32": isinstance(value, bool) or not isinstance(value, int | float),
        }.get(kind, isinstance(value, bool) or not isinstance(value, int))
        if wrong:
            raise self._mismatch(value, path, _GO_NAMES.get(kind, kind))
        if kind == "duration":
            parse_duration(value)
        return value

    def _mismatch(self, value: Any, path: str, wanted: str) -> ConfigurationError:
        kind = {str: "string", bool: "bool", int: "number", float: "number", list: "array"}.get(
            type(value), "object"
        )
        field = re.sub(r"\[\d+\]", "", path)
        return ConfigurationError(
            f"json: cannot unmarshal {kind} into Go struct field {self._type}.{field} "
            f"of type {wanted}"
        )

    def check(self) -> None:
        """Raise for whatever unknown fields were met."""
        if self.unknown:
            listed = ", ".join(f'unknown field "{path}"' for path in self.unknown)
            raise ConfigurationError(f"strict decoding error: {listed}")


def parse_duration(text: str) -> float:
    """Return the seconds a Go duration such as ``1m30s`` means."""
    if not _WHOLE_DURATION.fullmatch(text):
        raise ConfigurationError(f'time: invalid duration "{text}"')
    seconds = sum(
        float(number) * _UNIT_SECONDS[unit]
        for number, _, unit in _DURATION.findall(text.lstrip("+-"))
    )
    return -seconds if text.startswith("-") else seconds


def format_duration(seconds: float) -> str:
    """Return a duration as Go prints it: ``15s``, ``1m30s``, ``1h0m0s``."""
    if seconds < 1:
        return f"{round(seconds * 1000)}ms" if seconds else "0s"
    whole, rest = divmod(seconds, 60)
    minutes = int(whole)
    hours, minutes = divmod(minutes, 60)
    text = f"{rest:g}s"
    if hours:
        return f"{hours}h{minutes}m{text}"
    return f"{minutes}m{text}" if minutes else text
