"""Names of the volumes that an embedded edge provisions, and of their directories."""

from __future__ import annotations

from skerry.api.objects import Object


def provisioned_name(claim: Object) -> str:
    """Return the name of the PersistentVolume made for a claim."""
    return f"pvc-{claim['metadata']['uid']}"


def provisioned_path(root: str, claim: Object) -> str:
    """Return the directory of that volume below *root*; readable, and the claim's for ever."""
    metadata = claim["metadata"]
    return f"{root}/{provisioned_name(claim)}_{metadata['namespace']}_{metadata['name']}"
