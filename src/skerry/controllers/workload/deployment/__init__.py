"""Rolls Deployments out: one ReplicaSet per pod template, replicas moved between them in steps.

Reads Deployments, ReplicaSets and Pods. Writes ReplicaSets (created, resized, adopted, released,
old ones deleted beyond the history limit), the Deployment's revision annotation and its status.

Invariants: the pods wanted of all ReplicaSets together never exceed replicas plus surge by a step
taken here; a step never takes an available pod that ``maxUnavailable`` does not spare. Every
write carries the version it was decided on, so a decision on old facts is refused by the server.
"""
