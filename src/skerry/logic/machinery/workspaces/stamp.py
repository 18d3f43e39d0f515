"""The mark that says in which logical cluster an object is."""

from __future__ import annotations

from skerry.api.objects import Object
from skerry.api.refs import CLUSTER_ANNOTATION


class ClusterStamp:
    """Marks each object with the logical cluster it is in."""

    def put(self, obj: Object, cluster: str) -> None:
        obj["metadata"].setdefault("annotations", {})[CLUSTER_ANNOTATION] = cluster

    def strip(self, obj: Object) -> None:
        metadata = obj.get("metadata")
        if not isinstance(metadata, dict):
            return
        annotations = metadata.get("annotations")
        if isinstance(annotations, dict) and CLUSTER_ANNOTATION in annotations:
            del annotations[CLUSTER_ANNOTATION]
            if not annotations:
                del metadata["annotations"]
