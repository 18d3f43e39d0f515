"""Objects of every kind that a hub reads for itself, and each of them with one thing wrong.

A server remembers these kinds, or acts on them, as they are written: what gets past the checks of
a write must not be more than its readers can take.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from skerry.api.objects import Object

_RBAC = "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io/v1"
_SELECTOR: Final[Object] = {
    "matchLabels": {"a": "b"},
    "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}],
}
_SCHEMA: Final[Object] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {"a": {"type": "string", "pattern": "^a", "default": "a"}},
            "x-kubernetes-validations": [{"rule": "self.a != 'b'", "message": "m"}],
        }
    },
}
_NAMES: Final[Object] = {
    "plural": "widgets",
    "singular": "widget",
    "kind": "Widget",
    "listKind": "WidgetList",
    "shortNames": ["w"],
    "categories": ["all"],
}
_VERSION: Final[Object] = {
    "name": "v1",
    "served": True,
    "storage": True,
    "subresources": {
        "status": {},
        "scale": {"specReplicasPath": ".spec.r", "statusReplicasPath": ".status.r"},
    },
    "additionalPrinterColumns": [{"name": "A", "type": "string", "jsonPath": ".spec.a"}],
}
_RULE: Final[Object] = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE"],
    "resources": ["secrets"],
    "scope": "*",
}
_CLAIM: Final[Object] = {"group": "", "resource": "configmaps", "all": True}


class Observed(NamedTuple):
    """A kind, and an object of it that uses what the kind has."""

    api_version: str
    kind: str
    plural: str
    body: Object
    namespaced: bool = False

    def path(self) -> str:
        """Return where its objects are, within a workspace."""
        root = "/api/v1" if self.api_version == "v1" else f"/apis/{self.api_version}"
        return f"{root}{'/namespaces/default' if self.namespaced else ''}/{self.plural}"

    def named(self, name: str) -> Object:
        """Return the object under a name of its own, in the form that its kind wants."""
        body = self.body
        if self.plural == "customresourcedefinitions":
            body = {"spec": {**body["spec"], "group": f"{name}.example.com"}}
            name = f"widgets.{name}.example.com"
        elif self.plural == "apiresourceschemas":
            name = f"{name}.widgets.example.com"
        metadata = {
            "name": name,
            "labels": {"a": "b"},
            "annotations": {"c": "d"},
            "finalizers": ["example.com/x"],
            "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"}],
        }
        head = {"apiVersion": self.api_version, "kind": self.kind, "metadata": metadata}
        return copy.deepcopy({**head, **body})


_TYPE = {"name": "universal", "path": "root"}

KCP: Final = (
    Observed("tenancy.kcp.io/v1alpha1", "Workspace", "workspaces",
             {"spec": {"type": _TYPE, "location": {"selector": {"matchLabels": {"a": "b"}}}}}),
    Observed("tenancy.kcp.io/v1alpha1", "WorkspaceType", "workspacetypes",
             {"spec": {
                 "initializer": True, "extend": {"with": [_TYPE]},
                 "defaultChildWorkspaceType": _TYPE, "limitAllowedParents": {"none": True},
                 "limitAllowedChildren": {"types": [_TYPE]},
                 "additionalWorkspaceLabels": {"a": "b"},
                 "defaultAPIBindings": [{"path": "root", "export": "e"}]}}),
    Observed("apis.kcp.io/v1alpha1", "APIExport", "apiexports",
             {"spec": {
                 "latestResourceSchemas": ["today.widgets.example.com"],
                 "identity": {"secretRef": {"namespace": "n", "name": "s"}},
                 "maximalPermissionPolicy": {"local": {}}, "permissionClaims": [_CLAIM]}}),
    Observed("apis.kcp.io/v1alpha1", "APIBinding", "apibindings",
             {"spec": {
                 "reference": {"export": {"path": "root", "name": "shards.core.kcp.io"}},
                 "permissionClaims": [{**_CLAIM, "state": "Accepted"}]}}),
    Observed("apis.kcp.io/v1alpha1", "APIResourceSchema", "apiresourceschemas",
             {"spec": {"group": "example.com", "names": _NAMES, "scope": "Namespaced",
                       "versions": [{**_VERSION, "schema": _SCHEMA}]}}),
    Observed("apis.kcp.io/v1alpha1", "APIExportEndpointSlice", "apiexportendpointslices",
             {"spec": {"export": {"path": "root", "name": "shards.core.kcp.io"},
                       "partition": "p"}}),
    Observed("topology.kcp.io/v1alpha1", "Partition", "partitions",
             {"spec": {"selector": _SELECTOR}}),
    Observed("topology.kcp.io/v1alpha1", "PartitionSet", "partitionsets",
             {"spec": {"dimensions": ["region"], "shardSelector": _SELECTOR}}),
)  # fmt: skip

ACCESS: Final = (
    Observed(f"{_RBAC}/v1", "ClusterRole", "clusterroles",
             {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"],
                         "resourceNames": ["a"]},
                        {"nonResourceURLs": ["/x"], "verbs": ["get"]}],
              "aggregationRule": {"clusterRoleSelectors": [_SELECTOR]}}),
    Observed(f"{_RBAC}/v1", "ClusterRoleBinding", "clusterrolebindings",
             {"roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "r"},
              "subjects": [{"apiGroup": _RBAC, "kind": "User", "name": "u"},
                           {"kind": "ServiceAccount", "name": "s", "namespace": "n"}]}),
    Observed(f"{_RBAC}/v1", "Role", "roles",
             {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}, True),
    Observed(f"{_RBAC}/v1", "RoleBinding", "rolebindings",
             {"roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": "r"},
              "subjects": [{"apiGroup": _RBAC, "kind": "User", "name": "u"}]}, True),
    Observed("v1", "ServiceAccount", "serviceaccounts",
             {"secrets": [{"name": "x"}], "imagePullSecrets": [{"name": "y"}],
              "automountServiceAccountToken": True}, True),
    Observed("v1", "Secret", "secrets", {"type": "Opaque", "data": {"a": "Yg=="}}, True),
    Observed("v1", "Namespace", "namespaces", {"spec": {"finalizers": ["kubernetes"]}}),
    Observed("v1", "ResourceQuota", "resourcequotas",
             {"spec": {"hard": {"pods": "10"}, "scopeSelector": {"matchExpressions": [
                 {"scopeName": "PriorityClass", "operator": "In", "values": ["a"]}]}}}, True),
    Observed("v1", "LimitRange", "limitranges",
             {"spec": {"limits": [{"type": "Container", "max": {"cpu": "1"},
                                   "default": {"cpu": "1"},
                                   "maxLimitRequestRatio": {"cpu": "2"}}]}}, True),
    Observed("coordination.k8s.io/v1", "Lease", "leases",
             {"spec": {"holderIdentity": "h", "leaseDurationSeconds": 5, "leaseTransitions": 1,
                       "renewTime": "2026-01-01T00:00:00.000000Z"}}, True),
)  # fmt: skip

ADMISSION: Final = (
    Observed("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions",
             {"spec": {
                 "group": "example.com", "names": _NAMES, "scope": "Namespaced",
                 "conversion": {"strategy": "Webhook", "webhook": {
                     "conversionReviewVersions": ["v1"],
                     "clientConfig": {"url": "https://example.com/c"}}},
                 "versions": [{**_VERSION, "schema": {"openAPIV3Schema": _SCHEMA},
                               "selectableFields": [{"jsonPath": ".spec.a"}]}]}}),
    Observed(_ADMISSION, "ValidatingAdmissionPolicy", "validatingadmissionpolicies",
             {"spec": {
                 "failurePolicy": "Fail", "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
                 "matchConstraints": {
                     "namespaceSelector": _SELECTOR, "resourceRules": [_RULE],
                     "excludeResourceRules": [_RULE]},
                 "validations": [{"expression": "object.metadata.name != 'zzz'", "message": "m",
                                  "reason": "Invalid", "messageExpression": "'x'"}],
                 "variables": [{"name": "v", "expression": "1"}],
                 "matchConditions": [{"name": "c", "expression": "true"}],
                 "auditAnnotations": [{"key": "k", "valueExpression": "'v'"}]}}),
    Observed(_ADMISSION, "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings",
             {"spec": {
                 "policyName": "m0", "validationActions": ["Deny"],
                 "paramRef": {"selector": _SELECTOR, "namespace": "default",
                              "parameterNotFoundAction": "Allow"},
                 "matchResources": {"objectSelector": _SELECTOR, "resourceRules": [_RULE]}}}),
    Observed(_ADMISSION, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations",
             {"webhooks": [{
                 "name": "a.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
                 "failurePolicy": "Ignore", "timeoutSeconds": 1, "rules": [_RULE],
                 "clientConfig": {"url": "https://example.com/x", "caBundle": "Cg=="},
                 "namespaceSelector": _SELECTOR, "objectSelector": _SELECTOR,
                 "matchConditions": [{"name": "c", "expression": "true"}]}]}),
    Observed(_ADMISSION, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations",
             {"webhooks": [{
                 "name": "a.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
                 "failurePolicy": "Ignore", "reinvocationPolicy": "Never", "rules": [_RULE],
                 "clientConfig": {"service": {"name": "s", "namespace": "n", "path": "/p",
                                              "port": 443}}}]}),
)  # fmt: skip

EDGE: Final = (
    Observed("edge.kcp.io/v1alpha1", "EdgePlacement", "edgeplacements",
             {"spec": {
                 "locationSelectors": [_SELECTOR], "namespaceSelector": _SELECTOR,
                 "nonNamespacedObjects": [
                     {"apiGroup": "g", "resources": ["r"], "resourceNames": ["n"]}],
                 "upsync": [{"apiGroup": "g", "resources": ["r"], "namespaces": ["n"],
                             "names": ["x"]}]}}),
    Observed("edge.kcp.io/v1alpha1", "Customizer", "customizers",
             {"replacements": [{"path": "$.spec.a", "value": "1"}]}, True),
    Observed("edge.kcp.io/v1alpha1", "SinglePlacementSlice", "singleplacementslices",
             {"destinations": [{"cluster": "root:imw", "locationName": "l",
                                "syncTargetName": "s", "syncTargetUID": "u"}]}),
    Observed("edge.kcp.io/v1alpha1", "SyncerConfig", "syncerconfigs",
             {"spec": {
                 "namespaceScope": {"namespaces": ["n"], "resources": [
                     {"group": "g", "resource": "r", "apiVersion": "v1"}]},
                 "clusterScope": [{"group": "g", "resource": "r", "apiVersion": "v1",
                                   "objects": ["*"]}],
                 "upsync": [{"apiGroup": "g", "resources": ["r"], "names": ["x"]}]}}),
    Observed("workload.kcp.io/v1alpha1", "SyncTarget", "synctargets",
             {"spec": {"unschedulable": False, "cells": {"a": "b"},
                       "supportedAPIExports": [{"path": "root", "export": "kubernetes"}]}}),
    Observed("scheduling.kcp.io/v1alpha1", "Location", "locations",
             {"spec": {
                 "resource": {"group": "workload.kcp.io", "version": "v1alpha1",
                              "resource": "synctargets"},
                 "instanceSelector": _SELECTOR, "description": "d",
                 "availableSelectorLabels": [{"key": "a", "values": ["b"]}]}}),
)  # fmt: skip

_ABSENT: Final = object()
# What a value becomes: gone, nothing, and nothing in something.
_WRONG: Final = (_ABSENT, None, [None], {"x": None})


class Mutation(NamedTuple):
    """One value of an object that is replaced, or taken away."""

    path: tuple[Any, ...]
    wrong: Any

    def applied(self, obj: Object) -> Object:
        """Return *obj*, changed."""
        parent: Any = obj
        for step in self.path[:-1]:
            parent = parent[step]
        if self.wrong is _ABSENT:
            del parent[self.path[-1]]
        else:
            parent[self.path[-1]] = copy.deepcopy(self.wrong)
        return obj

    def __str__(self) -> str:
        wrong = "absent" if self.wrong is _ABSENT else self.wrong
        return f"{'.'.join(map(str, self.path))}: {wrong}"


def mutations(obj: Object) -> Iterator[Mutation]:
    """Yield whatever can be wrong with one value of *obj*; what it is and its name stay."""
    for path in _paths(obj, ()):
        if path[0] not in ("apiVersion", "kind") and path not in (
            ("metadata",),
            ("metadata", "name"),
        ):
            yield from (Mutation(path, wrong) for wrong in _WRONG)


def _paths(node: Any, at: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    members = node.items() if isinstance(node, dict) else enumerate(node)
    for step, member in members:
        yield (*at, step)
        if isinstance(member, dict | list):
            yield from _paths(member, (*at, step))
