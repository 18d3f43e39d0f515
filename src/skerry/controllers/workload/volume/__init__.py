"""Binds claims to volumes, and makes volumes for claims of the local class.

Reads PersistentVolumeClaims, PersistentVolumes and StorageClasses. Writes both of the first: a
claim without a class gets the default one, a claim of ours a new volume, any claim the smallest
volume that fits; a volume whose claim is gone is released, and deleted when that is its policy.

Invariants: a volume is bound to one claim, by uid, and never to another while that one lives. A
volume is deleted only after its claim was seen to be gone by name and uid. The directory behind a
volume is the node agent's to remove.
"""
