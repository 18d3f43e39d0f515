"""The types the workload controllers read and write."""

from __future__ import annotations

from skerry.api.kinds import GroupVersionResource

PODS = GroupVersionResource("", "v1", "pods")
NODES = GroupVersionResource("", "v1", "nodes")
REPLICATION_CONTROLLERS = GroupVersionResource("", "v1", "replicationcontrollers")
SERVICES = GroupVersionResource("", "v1", "services")
ENDPOINTS = GroupVersionResource("", "v1", "endpoints")
CLAIMS = GroupVersionResource("", "v1", "persistentvolumeclaims")
VOLUMES = GroupVersionResource("", "v1", "persistentvolumes")
DEPLOYMENTS = GroupVersionResource("apps", "v1", "deployments")
REPLICA_SETS = GroupVersionResource("apps", "v1", "replicasets")
STATEFUL_SETS = GroupVersionResource("apps", "v1", "statefulsets")
DAEMON_SETS = GroupVersionResource("apps", "v1", "daemonsets")
REVISIONS = GroupVersionResource("apps", "v1", "controllerrevisions")
JOBS = GroupVersionResource("batch", "v1", "jobs")
CRON_JOBS = GroupVersionResource("batch", "v1", "cronjobs")
SLICES = GroupVersionResource("discovery.k8s.io", "v1", "endpointslices")
STORAGE_CLASSES = GroupVersionResource("storage.k8s.io", "v1", "storageclasses")
DISRUPTION_BUDGETS = GroupVersionResource("policy", "v1", "poddisruptionbudgets")
