"""Keeps one pod of a DaemonSet on every node that should have one.

Reads DaemonSets, Pods, Nodes and ControllerRevisions. Writes pods, revisions and the status.

Invariants: a pod names its node by affinity and is bound by the scheduler, so that its room is
accounted; no more nodes are without an available pod by our doing than ``maxUnavailable`` says.
"""
