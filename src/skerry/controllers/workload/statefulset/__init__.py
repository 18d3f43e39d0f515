"""Keeps a StatefulSet's pods: numbered, each with its own claims, changed one after the other.

Reads StatefulSets, Pods, PersistentVolumeClaims and ControllerRevisions. Writes pods, claims,
revisions and the status.

Invariants: two pods of one number never exist at once, because the name is the number. With the
default policy a number is started only when all lower ones are ready, and stopped only when all
higher ones have gone. Claims outlive their pods unless the retention policy says otherwise.
"""
