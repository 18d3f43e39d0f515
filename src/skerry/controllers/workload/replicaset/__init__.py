"""Keeps as many pods as a ReplicaSet wants.

Reads ReplicaSets and Pods. Writes pods (created, deleted, adopted, released) and the ReplicaSet's
status.

Invariants: a pod is deleted only while it is controlled by this ReplicaSet's uid. Pods that end
are replaced; pods on their way out are neither counted nor touched.
"""
