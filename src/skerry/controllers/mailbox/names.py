"""What the mailbox controller reads and writes."""

from __future__ import annotations

from skerry.api.kinds import GroupVersionResource

NAME = "mailbox-controller"
SYNC_TARGETS = GroupVersionResource("workload.kcp.io", "v1alpha1", "synctargets")
WORKSPACES = GroupVersionResource("tenancy.kcp.io", "v1alpha1", "workspaces")
BINDINGS = GroupVersionResource("apis.kcp.io", "v1alpha1", "apibindings")

SYNC_TARGET_ANNOTATION = "edge.kcp.io/sync-target-name"
